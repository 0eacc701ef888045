"""Beliefs during a match: the states consistent with a player's observations, for agents that search from them."""

import contextlib
import warnings

import numpy as np

from gdlx.envs import host
from gdlx.envs.packed import packed_env
from gdlx.envs.views import history, public
from gdlx.players.agents import agent
from gdlx.propnet.common import errors
from gdlx.solvers.search import beliefs

# As many lanes whether states are enumerated or sampled, so that one program serves both.
BUDGET = beliefs.BeliefBudget(size=2**12, states=2**12, seconds=2.0)


class MatchBeliefs:
    """The beliefs of one player in one match, which assume that the others play uniformly."""

    def __init__(self, context: agent.PlayerContext) -> None:
        self._context = context
        self._tracker: beliefs.BeliefTracker | None = None

    def at(self, view: history.ActionObservationHistory) -> beliefs.Belief:
        """The distribution over states, given the player's history."""
        if self._tracker is None:
            seed = int(self._context.random.integers(2**31))
            self._tracker = beliefs.BeliefTracker(self._context.arena.packed, view, budget=BUDGET, seed=seed)
        belief = self._tracker.update(view)
        remark_if_poor(belief.report, view)
        return belief

    def sample(self, view: history.ActionObservationHistory, count: int) -> packed_env.PackedState:
        """`count` states, sampled from the belief."""
        return self.at(view).sample(self._context.arena.packed, count, self._context.random)


def remark_if_poor(report: beliefs.Report, view: history.ActionObservationHistory) -> None:
    """Warns if an agent searches from a belief that has collapsed, or that is biased; once for each player."""
    who = f"{view.game.players[view.player]} in {view.game.name}"
    if report.biased:
        warnings.warn(
            f"the belief of {who} is biased: a SAT solver found its states, in an unknown selection",
            errors.Remark,
            stacklevel=2,
        )
    elif report.collapsed:
        warnings.warn(
            f"the belief of {who} has collapsed to few states, although there may be more", errors.Remark, stacklevel=2
        )


def warm_up(arena: agent.Arena, count: int) -> None:
    """Tracks the beliefs of each player in a random match, so that all programs are compiled.

    `count` is that of `sample`.
    """
    for player in range(arena.env.num_players):
        random = np.random.default_rng(player)
        view = play_random_match(arena, random)[player]
        # The states of a match may be hard to find, whoever plays it.
        with contextlib.suppress(beliefs.NoConsistentStateError):
            MatchBeliefs(agent.PlayerContext(arena, player, random)).sample(view, count)


def play_random_match(arena: agent.Arena, random: np.random.Generator) -> list[history.ActionObservationHistory]:
    """The histories of all players at the end of a random match."""
    nodes = host.HostEnv(arena.env.propnet, arena.env.payoffs, arena.steps)
    position = nodes.position(arena.env.propnet.initial.tobytes())
    views = [history.ActionObservationHistory(arena.env, player, legal) for player, legal in enumerate(position.legal)]
    for step in range(arena.steps):
        if position.terminal or position.unplayable:
            break
        joint = tuple(int(random.choice(legal)) for legal in position.legal)
        chance = int(random.choice(position.chance)) if position.chance else 0
        registers, percepts = nodes.transition(position.registers, joint, chance)
        position = nodes.position(registers)
        is_over = step + 1 == arena.steps
        views = [
            view.after(history.Event(move, seen, () if is_over else legal))
            for view, move, seen, legal in zip(views, joint, percepts, position.legal, strict=True)
        ]
    return views


def is_fully_observable(arena: agent.Arena) -> bool:
    """Whether all players see every move and there is no chance, so that all players know the state."""
    public_moves = public.find_public_info(arena.env.propnet).moves
    return not arena.env.num_chance_actions and all(shown.any(axis=1).all() for shown in public_moves)
