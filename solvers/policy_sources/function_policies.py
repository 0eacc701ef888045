"""Policies that are functions of information sets, asked for many at once."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gdlx.envs.trees import game_tree, infoset_keys
from gdlx.propnet.common import user_modules
from gdlx.solvers import tabular_policies

BATCH = 2**15  # information sets that a function is asked for at once
_ROUNDING = 1e-4  # of probabilities: functions may compute in single precision

# Returns the probability [N, A] of every move at N information sets, 0 for moves that are not legal. A row of NaN says
# that there is no policy for this information set.
PolicyFunction = Callable[["InformationSets"], npt.ArrayLike]


@dataclasses.dataclass(frozen=True, eq=False)
class InformationSets:
    """Information sets of one player, all with a choice: what a policy function is asked for.

    Axes: N information sets, A moves of the player, T joint actions before the latest of these information sets,
    Q percepts of the player.

    Attributes:
      tree: the unrolled game.
      player: the number of the player.
      begin: these are the information sets from here ..
      end: .. to before here, in the order of `tree.players[player]`.

    >>> from gdlx.envs import game_spec
    >>> infosets = InformationSets(game_spec.unroll_game("kuhn_poker"), player=0, begin=0, end=6)
    >>> infosets.moves
    ('bet', 'call', 'check', 'fold', 'noop')
    >>> infosets.texts[3], infosets.legal[3].tolist()
    ('(dealt queen); check; (opponent_did bet)', [False, True, False, True, False])
    """

    tree: game_tree.GameTree
    player: int
    begin: int
    end: int

    def __repr__(self) -> str:
        return f"InformationSets({game_tree.one_line(self.tree.name)}: {len(self)} of {self.player_name})"

    def __len__(self) -> int:
        return self.end - self.begin

    @property
    def _of(self) -> game_tree.Player:
        return self.tree.players[self.player]

    @property
    def player_name(self) -> str:
        return self._of.name

    @functools.cached_property
    def moves(self) -> tuple[str, ...]:
        """[A] the name of every move of the player."""
        player = self._of
        if isinstance(player.views, game_tree.InfosetTree):
            return player.action_names
        names = dict(zip(player.action.tolist(), player.action_name.tolist(), strict=True))
        return tuple(player.action_names[names[n]] if n in names else "" for n in range(max(names) + 1))

    @property
    def percepts(self) -> tuple[str, ...]:
        """[Q] the name of every percept of the player."""
        return self._views.percept_names

    @functools.cached_property
    def legal(self) -> npt.NDArray[np.bool_]:
        """[N, A] whether a move is legal."""
        table = np.zeros((len(self), len(self.moves)), np.bool_)
        table[self.rows_and_moves] = True
        return table

    @property
    def steps(self) -> npt.NDArray[np.int32]:
        """[N] joint actions before."""
        return self._of.step[self.begin : self.end]

    @property
    def texts(self) -> list[str]:
        """[N] what the player has done and seen, as `gdlx evaluate` prints it; in a game of OpenSpiel, its string."""
        player = self._of
        if isinstance(player.views, game_tree.InfosetTree):
            return list(player.labels[self.begin : self.end])
        return [player.views[view] for view in player.view[self.begin : self.end].tolist()]

    @functools.cached_property
    def made(self) -> npt.NDArray[np.int32]:
        """[N, T] the player's own moves, forced ones included; -1 after the last."""
        return self._history[0]

    @functools.cached_property
    def seen(self) -> npt.NDArray[np.bool_]:
        """[N, T, Q] the percepts after each joint action; none after the last."""
        rows = np.concatenate([self._views.percepts, np.zeros((1, len(self.percepts)), np.bool_)])
        return rows[self._history[1]]

    @functools.cached_property
    def keys(self) -> npt.NDArray[np.uint32]:
        """[N, 2] the keys of the information sets, as in `State.info_key`."""
        views = (player.action_names for player in self.tree.players)
        keys = infoset_keys.compute_infoset_keys(self.tree, self.player, max(map(len, views)))
        return keys[:, self.begin : self.end].T

    @property
    def rows_and_moves(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Where `legal` is true, in the order of the player's sequences."""
        first = self._of.first[self.begin : self.end + 1]
        return np.repeat(np.arange(len(self)), np.diff(first)), self._of.action[first[0] : first[-1]]

    @property
    def _views(self) -> game_tree.InfosetTree:
        views = self._of.views
        if not isinstance(views, game_tree.InfosetTree):
            raise tabular_policies.PolicyError(
                f"{self.tree.name} is a game of OpenSpiel, which has no moves and percepts of players: use `texts`"
            )
        return views

    @functools.cached_property
    def _history(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """[N, T] moves, and rows of percepts; -1 for none."""
        views, longest = self._views, int(self.steps.max(initial=0))
        made = np.full((len(self), longest), -1, np.int32)
        seen = np.full((len(self), longest), -1, np.int64)
        rows, at, time = np.arange(len(self)), self._of.view[self.begin : self.end], self.steps.astype(np.int64) - 1
        while len(rows):
            is_later = views.parent[at] >= 0
            rows, at, time = rows[is_later], at[is_later], time[is_later]
            made[rows, time] = views.move[at]
            seen[rows, time] = views.percept[at]
            parent = views.parent[at]
            waits = np.zeros(len(at), np.int64) if views.waits is None else views.waits[at].astype(np.int64)
            for step in range(int(waits.max(initial=0))):
                waiting = waits > step
                made[rows[waiting], time[waiting] - 1 - step] = views.forced[parent[waiting]]
            at, time = parent, time - 1 - waits
        return made, seen


def tabulate(function: PolicyFunction, name: str, tree: game_tree.GameTree) -> list[tabular_policies.Policy]:
    """Asks a function for its policy at all information sets.

    Args:
      function: see `PolicyFunction`.
      name: of the function, for errors.
      tree: the unrolled game.

    Returns:
      The probability of every sequence, for each player; NaN at information sets for which the function has none.

    Raises:
      PolicyError: the function fails, or does not return probabilities of the legal moves.

    >>> from gdlx.envs import game_spec
    >>> tree = game_spec.unroll_game("biased_rps")
    >>> tabulate(lambda infosets: [[0, 1, 0]] * len(infosets), "rock", tree)[0].tolist()
    [1.0, 0.0, 1.0, 0.0]
    """
    return [_tabulate_player(function, name, tree, number) for number in range(len(tree.players))]


def _tabulate_player(
    function: PolicyFunction, name: str, tree: game_tree.GameTree, number: int
) -> tabular_policies.Policy:
    player = tree.players[number]
    policy = np.ones(player.sequences)
    for begin in range(0, player.sets, BATCH):
        infosets = InformationSets(tree, number, begin, min(begin + BATCH, player.sets))
        table = _require_probabilities(_call(function, name, infosets), name, infosets)
        policy[player.first[begin] : player.first[infosets.end]] = table[infosets.rows_and_moves]
    return policy


def _call(function: PolicyFunction, name: str, infosets: InformationSets) -> Any:
    try:
        return np.asarray(function(infosets), np.float64)
    except tabular_policies.PolicyError:
        raise
    except Exception as error:  # it is the code of somebody else, which may do anything
        raise tabular_policies.PolicyError(f"{name} failed for {infosets!r}: {user_modules.describe(error)}") from error


def _require_probabilities(table: Any, name: str, infosets: InformationSets) -> tabular_policies.Policy:
    if table.shape != infosets.legal.shape:
        raise tabular_policies.PolicyError(
            f"{name} returned an array of shape {table.shape} for {len(infosets)} information sets of "
            f"{infosets.player_name}, who has {len(infosets.moves)} moves: return an array of shape "
            f"{infosets.legal.shape}"
        )
    is_missing = np.isnan(table).all(axis=1)
    wrong = ~infosets.legal & (np.abs(table) > _ROUNDING) & ~is_missing[:, None]
    wrong |= np.isnan(table) & infosets.legal & ~is_missing[:, None]
    if wrong.any():
        row, move = (int(n) for n in np.argwhere(wrong)[0])
        what = "is not legal" if not infosets.legal[row, move] else "is legal"
        raise tabular_policies.PolicyError(
            f"{name} returned the probability {table[row, move]:g} of {infosets.moves[move]}, which {what}, at "
            f"{infosets.player_name}, {game_tree.one_line(infosets.texts[row])}"
        )
    return np.asarray(table, np.float64)
