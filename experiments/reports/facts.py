"""Facts about a game, if it can still be loaded; more of them if it is small enough to unroll."""

from typing import NamedTuple

from gdlx.envs import game_facts, game_spec, payoffs
from gdlx.envs.trees import game_tree
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import errors, limits
from gdlx.solvers import tasks

_MAX_HISTORIES = 3e6  # of the largest game that is unrolled for a report, in a few seconds
_SECONDS = 60.0  # time limit for grounding a game that is not in the cache


class LoadedGame(NamedTuple):
    """A game that could be loaded."""

    game: game_spec.GameSpec
    net: propnet.PropNet
    tree: game_tree.GameTree | None  # None if the game is too large
    digest: str  # of the tree
    histories: float  # an estimate if there is no tree
    units: payoffs.Payoffs
    payoff_range: tuple[float, float]


def load_game(game: game_spec.GameSpec) -> LoadedGame | str:
    """Loads a game, or returns why it cannot be loaded."""
    try:
        return _loaded(game)
    except (errors.UserError, OSError) as error:
        return str(error).partition("\n")[
            0
        ]  # the other lines may quote the rulesheet, which should not be published with the page


def _loaded(game: game_spec.GameSpec) -> LoadedGame:
    net = _compile(game)
    known = game_facts.probe(net)
    estimate = known.histories(enough=_MAX_HISTORIES)
    if estimate.is_truncated or estimate.total > _MAX_HISTORIES:
        units, bounds = known.payoffs(game.payoff), known.payoff_range(game.payoff)
        return LoadedGame(game, net, None, "", estimate.total, units, bounds)
    tree = game_spec.unroll_game(game, net=net)
    units = payoffs.Payoffs(tree.offset, tree.zero_sum, True)
    return LoadedGame(game, net, tree, tasks.tree_digest(tree), sum(tree.counts.histories), units, tree.payoff_range)


def _compile(game: game_spec.GameSpec) -> propnet.PropNet:
    return game.compile(limits.Limits(seconds=_SECONDS), saved=True)


def describe_game(subject: LoadedGame) -> list[tuple[str, str]]:
    """Pairs of a name and a text."""
    net, tree = subject.net, subject.tree
    low, high = subject.payoff_range
    facts = []
    for role in net.roles:
        percepts = "" if role.is_random else f", {_many(len(role.percepts), 'percept')}"
        facts.append((f"role {role.name}", f"{_many(len(role.moves), 'move')}{percepts}"))
    facts.append(("propnet", f"{_many(net.gates, 'gate')}, {_many(len(net.initial), 'register')}"))
    facts.append(("payoffs", f"from {low:g} to {high:g}, {'zero-sum' if subject.units.zero_sum else 'not zero-sum'}"))
    if tree is None:
        facts.append(("size", f"more than {_MAX_HISTORIES:,.0f} histories: not unrolled for this report"))
        return facts
    for player in tree.players:
        facts.append((f"decisions of {player.name}", f"{_many(player.sets, 'information set')} with a choice"))
    facts.append(("unrolled", f"{sum(tree.counts.nodes):,} nodes for {subject.histories:,.0f} histories"))
    return facts


def _many(count: int, what: str) -> str:
    """
    >>> _many(1, "move"), _many(2000, "gate")
    ('1 move', '2,000 gates')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"
