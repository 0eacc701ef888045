"""The table of information sets that `evaluate` prints: reach, value, and the policy with the values of its actions."""

import collections
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gdlx.cli import console
from gdlx.propnet import games
from gdlx.propnet.common import errors
from gdlx.propnet.syntax import declaration_order

if TYPE_CHECKING:
    from gdlx.solvers import solution, tasks

_SHOWN_SETS = 40
_SHOWN_ACTIONS = 6  # of an information set, also if they are never played
_MAX_SORTED = 200_000  # information sets of a player; of more, these are listed unless all are asked for

Row = dict[str, Any]


def rows(
    task: "tasks.Task", solved: "solution.Solution", player: str | None, history: str | None, *, show_all: bool
) -> list[Row]:
    """Return the information sets of all players, or of one, in order of time and then as the rules mention names.

    Of a player with very many only the first, unless `show_all`.
    """
    numbers = range(len(solved.tree.players)) if player is None else [solved.player(player)]
    key = declaration_order.declaration_key(_rules(task))
    table: list[Row] = []
    for number in numbers:
        infosets = solved.tree.players[number]
        if history is not None:
            chosen = [solved.find_infoset(number, history)]
        elif infosets.sets > _MAX_SORTED:
            chosen = list(range(infosets.sets if show_all else _MAX_SORTED))
        else:
            steps, labels = infosets.step.tolist(), list(infosets.labels)
            chosen = sorted(range(infosets.sets), key=lambda n: (steps[n], key(labels[n])))
        table += _rows_of(task, solved, number, chosen)
    return table


def listed(table: list[Row]) -> dict[str, int]:
    """Return how many information sets of each player are in the list, for the JSON output."""
    return dict(collections.Counter(row["player"] for row in table))


def explain_limit(table: list[Row], solved: "solution.Solution") -> str | None:
    """Say of which players only the first information sets are in the list of whole players; None if of none."""
    totals = {player.name: player.sets for player in solved.tree.players}
    cut = [f"{count:,} of {totals[name]:,} of {name}" for name, count in listed(table).items() if count < totals[name]]
    return f"listed are the first information sets only, {' and '.join(cut)}; --all lists all" if cut else None


def _rows_of(task: "tasks.Task", solved: "solution.Solution", number: int, chosen: list[int]) -> Iterator[Row]:
    infosets = solved.tree.players[number]
    known = task.infoset_values(solved.policies, number)
    for decision in chosen:
        here = slice(int(infosets.first[decision]), int(infosets.first[decision + 1]))
        options = infosets.options(decision)
        row: Row = {
            "player": infosets.name,
            "history": infosets.labels[decision],
            "policy": dict(zip(options, solved.policies[number][here].tolist(), strict=True)),
        }
        if known is not None:
            values = [_finite(value) for value in known.action_value[here].tolist()]
            row |= {
                "reach": float(known.reach[decision]),
                "value": _finite(float(known.value[decision])),
                "action_values": dict(zip(options, values, strict=True)),
            }
        yield row


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _rules(task: "tasks.Task") -> str:
    """Return the text of the rules; "" where there is none, as for a game of OpenSpiel."""
    game = task.game
    try:
        return game.rules if game.rules is not None else games.find_source(game.spec).text
    except (errors.UserError, OSError):
        return ""


def show(table: list[Row], solved: "solution.Solution", *, is_whole: bool, show_all: bool) -> None:
    """Print the first information sets, or all that were found; `is_whole` if these are of whole players."""
    shown = table if show_all else table[:_SHOWN_SETS]
    has_values = any("value" in row for row in shown)
    columns = ("player", "history", *(("reach", "value") if has_values else ()), "policy")
    cells = []
    for row in shown:
        numbers = [f"{row['reach']:.1%}", _payoff(row["value"])] if has_values else []
        cells.append([row["player"], row["history"], *numbers, _policy(row)])
    console.say("")
    console.show_table(columns, cells, numbers=("reach", "value"))
    if has_values:
        console.say("in brackets: the expected payoff if the player takes that action there")
    players = {row["player"] for row in table}
    total = sum(player.sets for player in solved.tree.players if player.name in players) if is_whole else len(table)
    if len(shown) < total:
        console.say(f".. and {total - len(shown):,} more information sets; use --all, --player or -o policy.csv")


def _policy(row: Row) -> str:
    values = row.get("action_values", {})
    actions = sorted(row["policy"].items(), key=lambda pair: -pair[1])
    few = len(actions) <= _SHOWN_ACTIONS
    return ", ".join(
        f"{name} {p:.1%}" + (f" ({_payoff(values[name])})" if name in values else "")
        for name, p in actions
        if few or p >= 5e-4
    )


def _payoff(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 6) + 0.0:.4g}"  # without rounding errors, and no -0
