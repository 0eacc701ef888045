"""Policies of the other players as a function of what they know, for beliefs: networks, searches, people's models.

The function is asked once for each information set that the histories of a belief pass through.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gdlx.envs import env
from gdlx.envs.views import history
from gdlx.propnet.common import errors
from gdlx.propnet.simulate import joint_actions, machine
from gdlx.solvers.mccfr import table_policy

Floats = npt.NDArray[np.float64]
# Returns a probability for each of `view.legal`, in that order.
PolicyOfHistory = Callable[[history.ActionObservationHistory], npt.ArrayLike]
Policies = table_policy.TablePolicies | PolicyOfHistory

TREMBLE = 1e-6  # uniform fraction mixed into policies: an action of probability 0 must not make a match impossible
_ROUNDING = 1e-4  # of probabilities: functions may compute in single precision


class InvalidPolicyError(errors.UserError, ValueError):
    """A policy function returned something else than probabilities of the legal actions."""


def log_probability(game: env.Env, player: int, moves: npt.NDArray[np.int64], policy: PolicyOfHistory) -> Floats:
    """Returns the log probability of the moves of all but one player, chance included.

    Args:
      game: The game.
      player: The player whose moves do not count.
      moves: int64[N, T, roles], the moves of all roles in N histories.
      policy: The policy of the others.

    Raises:
      InvalidPolicyError: If the policy is not a distribution over the legal actions.

    >>> import gdlx
    >>> kuhn = gdlx.make("kuhn_poker")
    >>> deal = np.array([[[4, 4, 0]], [[4, 4, 2]]])  # both wait, and chance deals one of three cards
    >>> np.exp(log_probability(kuhn, 0, deal, lambda view: np.ones(len(view.legal)))).round(3).tolist()
    [0.333, 0.333]
    """
    net = game.propnet
    states = machine.for_propnet(net)
    sizes = [len(role.moves) for role in net.roles]
    percept_sizes = [len(role.percepts) for role in net.roles]
    number = len(moves)
    players = {n: role for role, n in enumerate(i for i, r in enumerate(net.roles) if not r.is_random)}
    total = np.zeros(number)
    state = states.initial(number)
    legal = machine.split_rows(states.legal(state), sizes)
    known = {
        role: _Known.start(game, players[role], legal[role]) for role in players if number and players[role] != player
    }
    for step in range(moves.shape[1]):
        chosen = [moves[:, step, role] for role in range(len(net.roles))]
        for role, rows in enumerate(legal):
            if role in known:
                total += known[role].log_probability(policy, chosen[role], len(rows))
            elif players.get(role) != player:
                total -= np.log(rows.sum(axis=0))
        state, sees = states.step(state, joint_actions.one_hot_rows(chosen, sizes))
        legal = machine.split_rows(states.legal(state), sizes)
        percepts = machine.split_rows(sees, percept_sizes)
        if step + 1 < moves.shape[1]:
            known = {role: views.after(chosen[role], percepts[role], legal[role]) for role, views in known.items()}
    return total


class _Known:
    """What one player knows in N histories."""

    def __init__(self, views: list[history.ActionObservationHistory], index: npt.NDArray[np.int64]) -> None:
        self._views = views  # the different ones
        self._index = index  # [N] which of them

    @classmethod
    def start(cls, game: env.Env, player: int, legal: machine.Rows) -> "_Known":
        first = tuple(np.flatnonzero(legal[:, 0]).tolist())
        view = history.ActionObservationHistory(game, player, first)
        return cls([view], np.zeros(legal.shape[1], np.int64))

    def after(self, chosen: npt.NDArray[np.int64], percepts: machine.Rows, legal: machine.Rows) -> "_Known":
        """What it knows after a joint action."""
        rows = np.concatenate([self._index[None], chosen[None], percepts, legal])
        _, example, index = np.unique(rows, axis=1, return_index=True, return_inverse=True)
        views = []
        for at in example.tolist():
            seen, may = (tuple(np.flatnonzero(part[:, at]).tolist()) for part in (percepts, legal))
            views.append(self._views[self._index[at]].after(history.Event(int(chosen[at]), seen, may)))
        return _Known(views, index.reshape(-1))

    def log_probability(self, policy: PolicyOfHistory, chosen: npt.NDArray[np.int64], size: int) -> Floats:
        """The log probability [N] of its moves."""
        table = np.zeros((len(self._views), size))
        for number, view in enumerate(self._views):
            table[number, list(view.legal)] = _probabilities(policy, view)
        return np.log(table[self._index, chosen])


def _probabilities(policy: PolicyOfHistory, view: history.ActionObservationHistory) -> Floats:
    uniform = np.full(len(view.legal), 1 / len(view.legal))
    if len(view.legal) == 1:
        return uniform
    given = np.asarray(policy(view), np.float64)
    if given.shape != uniform.shape or not (given >= 0).all() or abs(given.sum() - 1) > _ROUNDING:
        raise InvalidPolicyError(
            f"the policy of {view.game.players[view.player]} in {view.game.name} after joint action {view.step} must "
            f"be {len(view.legal)} probabilities, of {', '.join(view.legal_names)}; got {given.tolist()}"
        )
    mixed: Floats = given + TREMBLE * (uniform - given)
    return mixed
