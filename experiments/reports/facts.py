"""Facts about a game, if it can still be loaded; more of them if it is small enough to unroll."""

from typing import NamedTuple

from gdlx.envs import game_facts, game_spec, payoffs
from gdlx.envs.trees import game_tree
from gdlx.propnet import games
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import errors, limits
from gdlx.propnet.common.text import plurals, printable
from gdlx.solvers import tasks

_MAX_HISTORIES = 3e6  # of the largest game that is unrolled for a report, in a few seconds
_MAX_RULES = 200_000  # characters of a rulesheet that are shown
_SECONDS = 60.0  # time limit for grounding a game that is not in the cache


class LoadedGame(NamedTuple):
    """A game that could be loaded."""

    game: game_spec.GameSpec
    propnet: propnet.PropNet | None  # None of a game of OpenSpiel
    tree: game_tree.GameTree | None  # None if the game is too large
    digest: str  # of the tree
    histories: float  # an estimate if there is no tree
    units: payoffs.Payoffs
    payoff_range: tuple[float, float]
    rules: str = ""  # the text of the rulesheet; empty if the game has none
    rules_digest: str = ""  # of the propnet

    def is_that_of(self, digest: str) -> bool:
        """Whether a result with this digest was made with the rules that the game has now."""
        return digest in (self.digest, self.rules_digest)


def load_game(game: game_spec.GameSpec) -> LoadedGame | str:
    """Loads a game, or returns why it cannot be loaded."""
    try:
        return _loaded(game)
    except (errors.UserError, OSError) as error:
        return str(error).partition("\n")[
            0
        ]  # the other lines may quote the rulesheet, which should not be published with the page


def _loaded(game: game_spec.GameSpec) -> LoadedGame:
    if game.is_open_spiel:
        return _unrolled(game, game_spec.unroll_game(game), None)
    propnet = _compile(game)
    known = game_facts.probe(propnet)
    estimate = known.histories(enough=_MAX_HISTORIES)
    if estimate.is_truncated or estimate.total > _MAX_HISTORIES:
        units, bounds = known.payoffs(game.payoff), known.payoff_range(game.payoff)
        return LoadedGame(game, propnet, None, "", estimate.total, units, bounds, _rules(game), known.digest)
    loaded = _unrolled(game, game_spec.unroll_game(game, propnet=propnet), propnet)
    return loaded._replace(rules=_rules(game), rules_digest=known.digest)


def _unrolled(game: game_spec.GameSpec, tree: game_tree.GameTree, propnet: propnet.PropNet | None) -> LoadedGame:
    units = payoffs.Payoffs(tree.offset, tree.zero_sum, True)
    histories = float(sum(tree.counts.histories))
    return LoadedGame(game, propnet, tree, tasks.tree_digest(tree), histories, units, tree.payoff_range)


def _rules(game: game_spec.GameSpec) -> str:
    """The text of a rulesheet that has been compiled."""
    if games.is_propnet_file(game.spec) and game.rules is None:
        return ""
    source = games.find_source(rules=game.rules) if game.rules is not None else games.find_source(game.spec)
    return printable.printable_lines(source.text[:_MAX_RULES]) + (" .." if len(source.text) > _MAX_RULES else "")


def _compile(game: game_spec.GameSpec) -> propnet.PropNet:
    return game.compile(limits.Limits(seconds=_SECONDS), saved=True)


def describe_game(subject: LoadedGame) -> list[tuple[str, str]]:
    """Pairs of a name and a text."""
    propnet, tree = subject.propnet, subject.tree
    low, high = subject.payoff_range
    facts = [] if propnet is None else _propnet_facts(propnet)
    facts.append(("payoffs", f"from {low:g} to {high:g}, {'zero-sum' if subject.units.zero_sum else 'not zero-sum'}"))
    if tree is None:
        facts.append(("size", f"more than {_MAX_HISTORIES:,.0f} histories: not unrolled for this report"))
        return facts
    for player in tree.players:
        facts.append((f"decisions of {player.name}", f"{plurals.count(player.sets, 'information set')} with a choice"))
    facts.append(("unrolled", f"{sum(tree.counts.nodes):,} nodes for {subject.histories:,.0f} histories"))
    return facts


def _propnet_facts(propnet: propnet.PropNet) -> list[tuple[str, str]]:
    facts = []
    for role in propnet.roles:
        percepts = "" if role.is_random else f", {plurals.count(len(role.percepts), 'percept')}"
        facts.append((f"role {role.name}", f"{plurals.count(len(role.moves), 'move')}{percepts}"))
    return [
        *facts,
        (
            "propnet",
            f"{plurals.count(propnet.gates, 'gate')}, {plurals.count(len(propnet.initial), 'register')}",
        ),
    ]
