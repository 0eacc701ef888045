"""From whatever names a game to its GameSpec, propnet and GameTree."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from gdlx.envs import env, game_facts, payoffs
from gdlx.envs.bridges import open_spiel_tree
from gdlx.envs.trees import game_tree, tree_cache, unroll
from gdlx.envs.trees.estimates import block_estimate
from gdlx.envs.trees.factored import private_registers, symmetry_group, unroll_blocks
from gdlx.propnet import games
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import errors, limits
from gdlx.propnet.syntax import rulesheet


class GameSpec(NamedTuple):
    """A game and how to read its rules: all that is needed to unroll the same game again.

    Attributes:
      spec: a library name, with parameters or without (`goofspiel:cards=4`), the path of a rulesheet, or `spiel:`
        and the name of a game of OpenSpiel, which has no propnet but can be unrolled.
      payoff: how goal values become payoffs; see `gdlx.make`.
      goal_conflict: `"refuse"` terminal states in which a player has several goal values or none, or take the `"max"`.
      gdl: 1 or 2 to read the rulesheet as GDL or GDL-II; None to decide it from the text.
      fold_case: whether names that differ only by case are the same.
      rules: the text of the rulesheet, if the game was specified by it; `spec` is then only a name.

    >>> GameSpec("rps", payoff="goal").compile().name
    'rps'
    """

    spec: str
    payoff: payoffs.PayoffMode = "auto"
    goal_conflict: unroll.GoalConflictMode = "refuse"
    gdl: int | None = None
    fold_case: bool = False
    rules: str | None = None

    @property
    def is_open_spiel(self) -> bool:
        """Whether this is a game of OpenSpiel, which has no rules."""
        return self.rules is None and self.spec.startswith(games.OPEN_SPIEL)

    def compile(
        self,
        within: limits.Limits = limits.Limits(),
        *,
        saved: bool = False,
        report: Callable[[Any], None] | None = None,
    ) -> propnet.PropNet:
        """Returns the propnet; `within`, `saved` and `report` are as in `games.compile_game`."""
        return games.compile_game(self, within=within, saved=saved, report=report)


class ResolvedGame(NamedTuple):
    """A game and, if it was named by one of them, its propnet or tree."""

    game: GameSpec
    compiled: propnet.PropNet | None = None
    tree: game_tree.GameTree | None = None

    def compile(self, within: limits.Limits = limits.Limits()) -> propnet.PropNet:
        """Returns the propnet, and compiles it if there is none yet."""
        if self.tree is not None:
            raise errors.UserError(
                f"the tree of {self.tree.name} has no rules to play by: pass what it was unrolled from"
            )
        return self.compiled or self.game.compile(within, saved=True)


# Whatever names a game.
GameLike = (
    games.GameName | GameSpec | rulesheet.Rulesheet | propnet.PropNet | env.Env | game_tree.GameTree | ResolvedGame
)


def resolve(game: GameLike | None = None, *, rules: str | None = None) -> ResolvedGame:
    """Returns the game that an argument names.

    Args:
      game: a library name, with parameters or without; the path of a rulesheet, as text or a `pathlib.Path`; `spiel:`
        and the name of a game of OpenSpiel; a `GameSpec`, `Rulesheet`, `PropNet`, `Env` or `GameTree`.
      rules: the text of a rulesheet, instead of `game`.

    Returns:
      The game. A path stays a path, also if it is the name of a library game. An environment keeps its payoffs.

    Raises:
      UserError: it names no game.

    >>> resolve("kuhn_poker").game.spec
    'kuhn_poker'
    >>> resolve(rules="(role you)").game.spec
    'rules'
    """
    games.require_one(game, rules)
    if rules is not None:
        return ResolvedGame(GameSpec(games.RULES_NAME, rules=rules))
    match game:
        case ResolvedGame():
            return game
        case GameSpec():
            return ResolvedGame(game)
        case str():
            if not game.startswith(games.OPEN_SPIEL) and not games.is_propnet_file(game):
                games.find_source(game)  # raises if there is no such game
            return ResolvedGame(GameSpec(game))
        case os.PathLike():
            path = os.fspath(game)
            return ResolvedGame(GameSpec(path if os.path.dirname(path) else os.path.join(os.curdir, path)))
        case rulesheet.Rulesheet():
            return ResolvedGame(GameSpec(game.name), games.compile_game(game))
        case propnet.PropNet():
            return ResolvedGame(GameSpec(game.name), game)
        case env.Env():
            return ResolvedGame(
                GameSpec(game.propnet.name, "zero-sum" if game.payoffs.zero_sum else "goal"), game.propnet
            )
        case game_tree.GameTree():
            return ResolvedGame(GameSpec(game.name), tree=game)
    raise games.wrong_type(game)


def unroll_game(
    game: "GameLike | None" = None,
    *,
    rules: str | None = None,
    depth: int | None = None,
    max_nodes: int = unroll.MAX_NODES,
    keep_edges: bool = False,
    list_terminals: bool = False,
    symmetries: bool = False,
    within: limits.Limits = limits.Limits(),
    propnet: propnet.PropNet | None = None,
    cached: bool = True,
    report: Callable[[int, int], None] | None = None,
) -> game_tree.GameTree:
    """Unrolls a game to its tree of merged histories.

    Large games in which players keep something to themselves are unrolled in blocks (`GameTree.blocks`).

    Args:
      game: a library name, a path, `spiel:NAME` for a game of OpenSpiel, a `GameSpec`, `Rulesheet`, `PropNet` or `Env`.
      rules: the text of the rulesheet, instead of `game`.
      depth: number of joint actions to unroll; None for the whole game.
      max_nodes: limit on the joint actions that lead to one level, and in proportion on blocks; for a game of
        OpenSpiel, on all histories, and 3,000,000 by default.
      keep_edges: whether to store the nodes and edges of every level, which sampling needs and exact solving does not.
      list_terminals: whether to refuse games that would be unrolled in blocks, because each terminal is needed.
      symmetries: whether to keep one of all information sets that symmetries of the rules exchange. Policies of such a
        tree give the same probabilities wherever they are exchanged, and are evaluated as in the whole game.
      within: limits of compiling.
      propnet: the propnet of the game, if it is already compiled.
      cached: whether to look for the tree in the cache on disk, and to store it there if unrolling takes seconds.
      report: called as `report(step, nodes)` after every level.

    Returns:
      The `GameTree`.

    Raises:
      TooLargeError: if the game has too many nodes, or does not end.
      GoalConflictError: if a player has several goal values or none in a terminal state, and the game refuses that.
      PayoffError: if the goals contradict the payoff mode.
      GdlError: if the rulesheet is unusable.
      UserError: if `symmetries` is combined with what needs the whole tree, or passed for a game of OpenSpiel.

    >>> import gdlx
    >>> gdlx.unroll("kuhn_poker").information_sets
    {'player1': 6, 'player2': 6}
    >>> gdlx.unroll("leduc_poker", symmetries=True).information_sets
    {'player1': 144, 'player2': 144}
    >>> gdlx.unroll(gdlx.GameSpec("rps"), depth=1)
    GameTree(rps: 10 nodes, 2 information sets)
    """
    resolved = resolve(game, rules=rules)
    if symmetries and (depth is not None or keep_edges or resolved.game.is_open_spiel or resolved.tree is not None):
        raise errors.UserError(
            "symmetries are found in rules, and left out of whole trees without edges: "
            "`symmetries=` does not go with `depth=`, `keep_edges=`, a game of OpenSpiel or an unrolled one"
        )
    if resolved.tree is not None:
        return resolved.tree
    if resolved.game.is_open_spiel:
        return _unroll_open_spiel(resolved.game, depth, max_nodes, keep_edges)
    if propnet is None:
        propnet = resolved.compiled or resolved.game.compile(within, saved=True)
    game, network = resolved.game, propnet
    if list_terminals and depth is None and not keep_edges and prefers_blocks(propnet, max_nodes):
        raise game_tree.TerminalsInBlocksError(
            f"{game.spec} has more than {max(max_nodes, limits.NODES):,} joint actions in one step, which are "
            "unrolled in blocks, and this needs each terminal listed",
            "Use the CFR family, which works on blocks, or a smaller game",
        )

    group = symmetry_group.build(propnet) if symmetries else None

    def build() -> game_tree.GameTree:
        return _unroll(game, network, depth, max_nodes, keep_edges, group, report)

    if not cached:
        return build()
    options = {
        "payoff": game.payoff,
        "goal_conflict": game.goal_conflict,
        "depth": depth,
        "max_nodes": max_nodes,
        "keep_edges": keep_edges,
        "symmetries": group is not None,
    }
    return tree_cache.load_or_unroll(network, options, build)


def _unroll(
    game: GameSpec,
    propnet: propnet.PropNet,
    depth: int | None,
    max_nodes: int,
    keep_edges: bool,
    group: symmetry_group.Group | None,
    report: Callable[[int, int], None] | None,
) -> game_tree.GameTree:
    """Unrolls a propnet in blocks if that pays, else node by node."""
    if group is not None or (depth is None and not keep_edges and prefers_blocks(propnet, max_nodes)):
        max_blocks = (limits.BLOCKS if group is None else limits.SYMMETRIC_BLOCKS) * max_nodes // limits.NODES
        histories = game_facts.probe(propnet).histories()
        if group is None and not histories.is_truncated:
            block_estimate.require_fit(propnet, histories.histories, max_blocks)
        return unroll_blocks.unroll(
            propnet,
            game.payoff,
            max_blocks=max_blocks,
            max_members=limits.MEMBERS * max_nodes // limits.NODES,
            goal_conflict=game.goal_conflict,
            report=report,
            group=group,
        )
    return unroll.unroll(
        propnet,
        game.payoff,
        depth=depth,
        max_nodes=max_nodes,
        keep_edges=keep_edges,
        goal_conflict=game.goal_conflict,
        report=report,
    )


def prefers_blocks(propnet: propnet.PropNet, max_nodes: int = limits.NODES) -> bool:
    """Whether a game has too many histories to list, and registers that make blocks larger than nodes.

    >>> prefers_blocks(games.compile_game("phantom_ttt")), prefers_blocks(games.compile_game("leduc_poker"))
    (True, False)
    """
    listed = max(max_nodes, limits.NODES)
    if max(game_facts.probe(propnet).histories(enough=listed).histories) <= listed:
        return False
    return bool((private_registers.find_owners(propnet) >= 0).any())


def _unroll_open_spiel(game: GameSpec, depth: int | None, max_nodes: int, keep_edges: bool) -> game_tree.GameTree:
    if depth is not None:
        raise errors.UserError(f"{game.spec} is a game of OpenSpiel, which is unrolled as a whole: leave out `depth=`")
    most = open_spiel_tree.MAX_NODES if max_nodes == unroll.MAX_NODES else max_nodes
    return open_spiel_tree.build_tree(game.spec.removeprefix(games.OPEN_SPIEL), keep_edges=keep_edges, max_nodes=most)
