"""What there is to know of a game, as far as it can still be loaded and is not too large to unroll."""

from typing import NamedTuple

from gdlx.envs import game_facts, game_spec, payoffs
from gdlx.envs.trees import game_tree
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import errors, limits
from gdlx.solvers import tasks

_MAX_HISTORIES = 3e6  # histories of the largest game that is unrolled for a report: a few seconds
_SECONDS = 60.0  # to ground a game that is no longer in the cache


class LoadedGame(NamedTuple):
    """A game that could be loaded."""

    game: game_spec.GameSpec
    net: propnet.PropNet
    tree: game_tree.GameTree | None  # None where it is too large
    digest: str  # of the tree
    histories: float  # about
    units: payoffs.Payoffs
    payoff_range: tuple[float, float]


def load_game(game: game_spec.GameSpec) -> LoadedGame | str:
    """The game, or why it cannot be loaded."""
    try:
        return _loaded(game)
    except (errors.UserError, OSError) as error:
        return str(error).partition("\n")[0]  # what follows may quote the sheet, and the page may be passed on


def _loaded(game: game_spec.GameSpec) -> LoadedGame:
    net = _compile(game)
    known = game_facts.probe(net)
    guess = known.histories(enough=_MAX_HISTORIES)
    if guess.is_truncated or guess.total > _MAX_HISTORIES:
        units, bounds = known.payoffs(game.payoff), known.payoff_range(game.payoff)
        return LoadedGame(game, net, None, "", guess.total, units, bounds)
    tree = game_spec.unroll_game(game, net=net)
    units = payoffs.Payoffs(tree.offset, tree.zero_sum, True)
    return LoadedGame(game, net, tree, tasks.tree_digest(tree), sum(tree.counts.histories), units, tree.payoff_range)


def _compile(game: game_spec.GameSpec) -> propnet.PropNet:
    return game.compile(limits.Limits(seconds=_SECONDS), saved=True)


def describe_game(subject: LoadedGame) -> list[tuple[str, str]]:
    """Names and what to say of them."""
    net, tree = subject.net, subject.tree
    low, high = subject.payoff_range
    found = []
    for role in net.roles:
        seen = "" if role.is_random else f", {_many(len(role.percepts), 'percept')}"
        found.append((f"role {role.name}", f"{_many(len(role.moves), 'move')}{seen}"))
    found.append(("network", f"{_many(net.gates, 'gate')}, {_many(len(net.initial), 'register')}"))
    found.append(("payoffs", f"from {low:g} to {high:g}, {'zero-sum' if subject.units.zero_sum else 'not zero-sum'}"))
    if tree is None:
        found.append(("size", f"more than {_MAX_HISTORIES:,.0f} histories: not unrolled for this report"))
        return found
    for player in tree.players:
        found.append((f"decisions of {player.name}", f"{_many(player.sets, 'information set')} with a choice"))
    found.append(("unrolled", f"{sum(tree.counts.nodes):,} nodes for {subject.histories:,.0f} histories"))
    return found


def _many(count: int, what: str) -> str:
    """
    >>> _many(1, "move"), _many(2000, "gate")
    ('1 move', '2,000 gates')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"
