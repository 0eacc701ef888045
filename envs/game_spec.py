"""From a game's name to its GameTree."""

from collections.abc import Callable
from typing import NamedTuple

from gdlx.envs import payoffs
from gdlx.envs.trees import game_tree, unroll
from gdlx.propnet import games
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import limits


class GameSpec(NamedTuple):
    """A game and how to read its rules: all that is needed to unroll the same game again.

    Attributes:
      spec: a library name, with parameters or without (`goofspiel:cards=4`), or the path of a rulesheet.
      payoff: how goal values become payoffs; see `gdlx.make`.
      goal_conflict: `"refuse"` terminal states in which a player has several goal values or none, or take the `"max"`.
      gdl: 1 or 2 to read the rulesheet as GDL or GDL-II; None to decide it from the text.
      fold_case: whether names that differ only by case are the same.

    >>> GameSpec("rps", payoff="goal").compile().name
    'rps'
    """

    spec: str
    payoff: payoffs.PayoffMode = "auto"
    goal_conflict: unroll.GoalConflictMode = "refuse"
    gdl: int | None = None
    fold_case: bool = False

    def compile(self, within: limits.Limits = limits.Limits(), *, saved: bool = False) -> propnet.PropNet:
        """Returns the propnet; `within` and `saved` are as in `games.compile_game`."""
        return games.compile_game(self.spec, gdl=self.gdl, fold_case=self.fold_case, within=within, saved=saved)


def unroll_game(
    game: GameSpec | str,
    *,
    depth: int | None = None,
    max_nodes: int = unroll.MAX_NODES,
    keep_edges: bool = False,
    within: limits.Limits = limits.Limits(),
    net: propnet.PropNet | None = None,
    report: Callable[[int, int], None] | None = None,
) -> game_tree.GameTree:
    """Unrolls a game to its tree of merged histories.

    Args:
      game: the game, or its library name or path as a string.
      depth: number of joint actions to unroll; None for the whole game.
      max_nodes: limit on the joint actions that lead to one level.
      keep_edges: whether to store the nodes and edges of every level, which sampling needs and exact solving does not.
      within: limits of grounding.
      net: the propnet of the game, if it is already compiled.
      report: called as `report(step, nodes)` after every level.

    Returns:
      The `GameTree`.

    Raises:
      TooLargeError: if the game has too many nodes, or does not end.
      GoalConflictError: if a player has several goal values or none in a terminal state, and the game refuses that.
      PayoffError: if the goals contradict the payoff mode.
      GdlError: if the rulesheet is unusable.

    >>> unroll_game("kuhn_poker").information_sets
    {'player1': 6, 'player2': 6}
    >>> unroll_game(GameSpec("rps"), depth=1)
    GameTree(rps: 10 nodes, 2 information sets)
    """
    if isinstance(game, str):
        game = GameSpec(game)
    if net is None:
        net = game.compile(within)
    return unroll.unroll(
        net,
        game.payoff,
        depth=depth,
        max_nodes=max_nodes,
        keep_edges=keep_edges,
        goal_conflict=game.goal_conflict,
        report=report,
    )
