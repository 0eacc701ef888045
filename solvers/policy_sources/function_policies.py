"""Policies that are functions of information sets, asked for many at once: of a tree, or of matches in progress."""

import abc
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs import env as envs
from gdlx.envs.trees import game_tree, infoset_keys
from gdlx.propnet.common import user_modules
from gdlx.solvers import tabular_policies

BATCH = 2**15  # information sets that a function is asked for at once
_ROUNDING = 1e-4  # of probabilities: functions may compute in single precision

# Returns the probability [N, A] of every move at N information sets, 0 for moves that are not legal. A row of NaN says
# that there is no policy for this information set.
PolicyFunction = Callable[["InformationSets"], npt.ArrayLike]


class InformationSets(abc.ABC):
    """Information sets of one player, all with a choice: what a policy function is asked for.

    Axes: N information sets, A moves of the player, T joint actions before the latest of these information sets,
    Q percepts of the player.

    Attributes:
      game: the name of the game.
      player: the number of the player.
      player_name: its name.
      moves: [A] the name of every move of the player.
      percepts: [Q] the name of every percept of the player.
      legal: bool[N, A], whether a move is legal.
      steps: int32[N], joint actions before.
      texts: [N] what the player has done and seen, as `gdlx evaluate` prints it; in a game of OpenSpiel, its string.
      made: int32[N, T], the player's own moves, forced ones included; -1 after the last.
      seen: bool[N, T, Q], the percepts after each joint action; none after the last.
      keys: uint32[N, 2], the keys of the information sets, as in `State.info_key`.

    >>> import gdlx
    >>> infosets = TreeInformationSets(gdlx.unroll("kuhn_poker"), player=0, begin=0, end=6)
    >>> infosets.moves
    ('bet', 'call', 'check', 'fold', 'noop')
    >>> infosets.texts[3], infosets.legal[3].tolist()
    ('(dealt queen); check; (opponent_did bet)', [False, True, False, True, False])
    """

    player: int

    def __repr__(self) -> str:
        return f"InformationSets({game_tree.one_line(self.game)}: {len(self)} of {self.player_name})"

    def __len__(self) -> int:
        return len(self.steps)

    @property
    @abc.abstractmethod
    def game(self) -> str: ...

    @property
    @abc.abstractmethod
    def player_name(self) -> str: ...

    @property
    @abc.abstractmethod
    def moves(self) -> tuple[str, ...]: ...

    @property
    @abc.abstractmethod
    def percepts(self) -> tuple[str, ...]: ...

    @property
    @abc.abstractmethod
    def legal(self) -> npt.NDArray[np.bool_]: ...

    @property
    @abc.abstractmethod
    def steps(self) -> npt.NDArray[np.int32]: ...

    @property
    @abc.abstractmethod
    def texts(self) -> list[str]: ...

    @property
    @abc.abstractmethod
    def made(self) -> npt.NDArray[np.int32]: ...

    @property
    @abc.abstractmethod
    def seen(self) -> npt.NDArray[np.bool_]: ...

    @property
    @abc.abstractmethod
    def keys(self) -> npt.NDArray[np.uint32]: ...


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TreeInformationSets(InformationSets):
    """Those of an unrolled game, from number `begin` to before `end` of `tree.players[player]`."""

    tree: game_tree.GameTree
    player: int
    begin: int
    end: int

    @property
    def _of(self) -> game_tree.Player:
        return self.tree.players[self.player]

    @property
    def game(self) -> str:
        return self.tree.name

    @property
    def player_name(self) -> str:
        return self._of.name

    @functools.cached_property
    def moves(self) -> tuple[str, ...]:
        player = self._of
        if isinstance(player.views, game_tree.InfosetTree):
            return player.action_names
        names = dict(zip(player.action.tolist(), player.action_name.tolist(), strict=True))
        return tuple(player.action_names[names[n]] if n in names else "" for n in range(max(names) + 1))

    @property
    def percepts(self) -> tuple[str, ...]:
        return self._views.percept_names

    @functools.cached_property
    def legal(self) -> npt.NDArray[np.bool_]:
        table = np.zeros((len(self), len(self.moves)), np.bool_)
        table[self.rows_and_moves] = True
        return table

    @property
    def steps(self) -> npt.NDArray[np.int32]:
        return self._of.step[self.begin : self.end]

    @property
    def texts(self) -> list[str]:
        player = self._of
        if isinstance(player.views, game_tree.InfosetTree):
            return list(player.labels[self.begin : self.end])
        return [player.views[view] for view in player.view[self.begin : self.end].tolist()]

    @functools.cached_property
    def made(self) -> npt.NDArray[np.int32]:
        return self._history[0]

    @functools.cached_property
    def seen(self) -> npt.NDArray[np.bool_]:
        rows = np.concatenate([self._views.percepts, np.zeros((1, len(self.percepts)), np.bool_)])
        return rows[self._history[1]]

    @functools.cached_property
    def keys(self) -> npt.NDArray[np.uint32]:
        most = max(len(player.action_names) for player in self.tree.players)
        return infoset_keys.compute_infoset_keys(self.tree, self.player, most)[:, self.begin : self.end].T

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


class PlayedArrays(NamedTuple):
    """What one player knows in matches in progress, as in `InformationSets`."""

    legal: npt.NDArray[np.bool_]  # [N, A]
    made: npt.NDArray[np.int32]  # [N, T]
    was_choice: npt.NDArray[np.bool_]  # [N, T] whether there was another legal move
    seen: npt.NDArray[np.bool_]  # [N, T, Q]
    keys: npt.NDArray[np.uint32]  # [N, 2]

    def take(self, rows: npt.NDArray[np.int64]) -> "PlayedArrays":
        """Returns some of the matches."""
        return PlayedArrays(self.legal[rows], self.made[rows], self.was_choice[rows], self.seen[rows], self.keys[rows])


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PlayedInformationSets(InformationSets):
    """Those that matches in progress have reached, all after the same number of joint actions."""

    env: envs.Env
    player: int
    arrays: PlayedArrays

    @property
    def legal(self) -> npt.NDArray[np.bool_]:
        return self.arrays.legal

    @property
    def made(self) -> npt.NDArray[np.int32]:
        return self.arrays.made

    @property
    def seen(self) -> npt.NDArray[np.bool_]:
        return self.arrays.seen

    @property
    def keys(self) -> npt.NDArray[np.uint32]:
        return self.arrays.keys

    @property
    def game(self) -> str:
        return self.env.name

    @property
    def player_name(self) -> str:
        return self.env.players[self.player]

    @property
    def moves(self) -> tuple[str, ...]:
        return self.env.propnet.players[self.player].moves

    @property
    def percepts(self) -> tuple[str, ...]:
        return self.env.propnet.players[self.player].percepts

    @property
    def steps(self) -> npt.NDArray[np.int32]:
        return np.full(len(self.made), self.made.shape[1], np.int32)

    @property
    def texts(self) -> list[str]:
        return [self._text(row) for row in range(len(self))]

    def take(self, rows: npt.NDArray[np.int64]) -> "PlayedInformationSets":
        """Returns some of these information sets."""
        return PlayedInformationSets(self.env, self.player, self.arrays.take(rows))

    def _text(self, row: int) -> str:
        events = []
        for move, percepts, was_choice in zip(self.made[row], self.seen[row], self.arrays.was_choice[row], strict=True):
            seen = [self.percepts[n] for n in np.flatnonzero(percepts)]
            events.append(", ".join([self.moves[move]] * bool(was_choice) + seen))
        return "; ".join(event for event in events if event) or "start"


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

    >>> import gdlx
    >>> tree = gdlx.unroll("biased_rps")
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
        infosets = TreeInformationSets(tree, number, begin, min(begin + BATCH, player.sets))
        table = probabilities(function, name, infosets)
        policy[player.first[begin] : player.first[infosets.end]] = table[infosets.rows_and_moves]
    return policy


def probabilities(function: PolicyFunction, name: str, infosets: InformationSets) -> tabular_policies.Policy:
    """Returns the probability [N, A] of every move; rows of NaN where the function has no policy.

    Raises:
      PolicyError: the function fails, or returns something else.
    """
    return _require_probabilities(_call(function, name, infosets), name, infosets)


def require_sums(table: tabular_policies.Policy, name: str, infosets: InformationSets) -> tabular_policies.Policy:
    """Returns probabilities [N, A] without rounding errors; raises PolicyError unless they are some."""
    total = table.sum(axis=1)
    wrong = (np.abs(total - 1) > _ROUNDING) | (table < -_ROUNDING).any(axis=1)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        where = f"{infosets.player_name}, {game_tree.one_line(infosets.texts[row])}"
        raise tabular_policies.PolicyError(
            f"{name} returned probabilities that add up to {total[row]:g}, not 1, or a negative one, at {where}"
        )
    positive = np.maximum(table, 0)
    normalised: tabular_policies.Policy = positive / positive.sum(axis=1, keepdims=True)
    return normalised


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
