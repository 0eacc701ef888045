"""From a game's name to its GameTree."""

from collections.abc import Callable
from typing import NamedTuple

from gdlx.envs import payoffs
from gdlx.envs.trees import game_tree, unroll
from gdlx.propnet import games
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import limits


class GameSpec(NamedTuple):
    """What a user names, and how it is to be read: all that is needed to unroll the same game again."""

    spec: str
    payoff: payoffs.PayoffMode = "auto"
    goal_conflict: unroll.GoalConflictMode = "refuse"
    gdl: int | None = None
    fold_case: bool = False

    def compile(self, within: limits.Limits = limits.Limits(), *, saved: bool = False) -> propnet.PropNet:
        """Its propnet; `within` and `saved` as in `games.compile_game`."""
        return games.compile_game(self.spec, gdl=self.gdl, fold_case=self.fold_case, within=within, saved=saved)


def unroll_game(
    game: GameSpec,
    *,
    depth: int | None = None,
    max_nodes: int = unroll.MAX_NODES,
    keep_edges: bool = False,
    within: limits.Limits = limits.Limits(),
    net: propnet.PropNet | None = None,
    report: Callable[[int, int], None] | None = None,
) -> game_tree.GameTree:
    """The unrolled game; `report(step, nodes)` hears of every level.

    >>> unroll_game(GameSpec("kuhn_poker")).information_sets
    {'player1': 6, 'player2': 6}
    """
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
