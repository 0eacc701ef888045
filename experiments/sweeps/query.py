"""Queries over results on disk, by conditions such as `exploitability<0.001`, `game=kuhn_poker`, `algorithm~mccfr`."""

import dataclasses
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from gdlx.experiments.reports import contest_records, gather
from gdlx.propnet.common import errors
from gdlx.propnet.common.text import suggestions

Value = str | float | int | bool | None
Row = Mapping[str, Value]

_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}
_ONLY_NUMBERS = ("<", "<=", ">", ">=")
_TERM = re.compile(r"\s*([\w.+-]+?)\s*(<=|>=|!=|==|~|<|>|=)\s*(.*?)\s*", re.DOTALL)
FIRST = (
    "game",
    "algorithm",
    "seed",
    "iterations",
    "seconds",
    "samples",
    "exploitability",
    "games",
    "payoffs",
)


class QueryError(errors.UserError, ValueError):
    """A condition that cannot be parsed, or that no result can satisfy."""


class Condition(NamedTuple):
    name: str
    comparison: str
    value: str


def parse(text: str) -> Condition:
    """Parses a condition.

    >>> parse("exploitability < 1e-3")
    Condition(name='exploitability', comparison='<', value='1e-3')
    """
    match = _TERM.fullmatch(text)
    if match is None or not match[3]:
        raise QueryError(
            f"{text!r} is not a condition; write NAME=VALUE, or != < <= > >=, or ~ for part of a word, "
            "as in exploitability<0.001"
        )
    where = Condition(match[1], match[2].replace("==", "="), match[3])
    number = _number(where.value)
    if where.comparison in _ONLY_NUMBERS and (number is None or math.isnan(number)):
        raise QueryError(f"{text!r} compares by size, but {where.value!r} is not a number")
    return where


def rows(gathered: gather.GatheredRuns) -> list[Row]:
    """A row for each solution, training, match and tournament; `kind` says which of them it is."""
    return [*map(_row, gathered.runs), *map(_training_row, gathered.trainings), *map(_contest_row, gathered.contests)]


def _training_row(training: contest_records.TrainingRecord) -> Row:
    return {
        "folder": str(training.folder),
        "kind": "training",
        "game": training.game.spec,
        "algorithm": training.learner,
        "seed": training.seed,
        "iterations": training.iterations,
        "seconds": training.seconds,
        "exploitability": training.measured.get("exploitability"),
        **training.measured,
    }


def _contest_row(contest: contest_records.ContestRecord) -> Row:
    return {
        "folder": str(contest.folder),
        "kind": contest.kind,
        "game": contest.game.spec,
        "algorithm": None,
        "agents": " vs ".join(contest.agents),
        "seed": contest.seed,
        "exploitability": None,
        "games": contest.games,
        "payoffs": ", ".join(f"{one.agent} {one.payoff}" for one in contest.standings),
        "best_agent": contest.standings[0].agent,
        "best_payoff": contest.standings[0].payoff.mean,
    }


def _row(run: gather.RunRecord) -> Row:
    algorithm, last = run.config.algorithm, run.last
    row: dict[str, Value] = {
        "folder": str(run.folder),
        "kind": "solution",
        "game": run.config.game.spec,
        "algorithm": algorithm.name,
        "seed": run.seed,
        "iterations": last.iterations,
        "seconds": last.seconds,
        "samples": last.samples or None,
        "exploitability": last.exploitability,
        "nash_conv": last.nash_conv,
        "largest_improvement": max(last.improvements, default=None),
        "load": last.load,
        "x64": run.config.x64,
        "alternating": algorithm.alternating,
        "together": run.config.together,
    }
    row |= {f"value_{number}": value for number, value in enumerate(last.value, 1)}
    row |= {f"improvement_{number}": improvement for number, improvement in enumerate(last.improvements, 1)}
    row |= algorithm.settings._asdict()
    if algorithm.is_sampled:
        sampling = dataclasses.asdict(algorithm.sampling_config)
        # `beta` and `exploration` are also settings of regret matching; of `exploration` the sampler's is shown.
        row |= {name: value for name, value in sampling.items() if name != "beta"}
    return row


def filter_rows(table: Sequence[Row], questions: Iterable[Condition]) -> list[Row]:
    """Returns the rows that satisfy all conditions; a row without the column satisfies only `!=`."""
    matching = list(table)
    for where in questions:
        require_names(table, [where.name])
        _require_kind(table, where)
        matching = [row for row in matching if _holds(row.get(where.name), where)]
    return matching


def full_name(name: str) -> str:
    """The name of a column, of which one has a shorter form.

    >>> full_name("improvement")
    'largest_improvement'
    """
    return "largest_improvement" if name == "improvement" else name


def require_names(table: Sequence[Row], names: Iterable[str]) -> None:
    known = list(dict.fromkeys(name for row in table for name in row))
    for name in names:
        if known and name not in known:
            near = suggestions.near_names(name, known, most=1)
            raise QueryError(f"no result has a {name!r}; {f'is it {near[0]}?' if near else ', '.join(known)}")


def _require_kind(table: Sequence[Row], where: Condition) -> None:
    """Raises an error for a condition that no row can satisfy, because it compares words with numbers."""
    known = [row[where.name] for row in table if row.get(where.name) is not None]
    is_word = [isinstance(value, str | bool) for value in known]
    if where.comparison in _ONLY_NUMBERS and known and all(is_word):
        raise QueryError(f"{where.name} is not a number, so it has no order; use {where.name}= or {where.name}~")
    if where.comparison in ("=", "!=") and known and not any(is_word) and _number(where.value) is None:
        raise QueryError(f"{where.name} is a number in all results, and {where.value!r} is not")


def _holds(value: Value, where: Condition) -> bool:
    if value is None:
        return where.comparison == "!="
    if where.comparison == "~":
        return where.value.lower() in str(value).lower()
    number = _number(where.value)
    if isinstance(value, str | bool) or number is None:
        same = str(value).lower() == where.value.lower()
        return {"=": same, "!=": not same}.get(where.comparison, False)
    return _COMPARED[where.comparison](float(value), number)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def sort_rows(table: Sequence[Row], name: str, *, descending: bool = False) -> list[Row]:
    """Sorts numbers by size and words alphabetically; rows without a value come last."""
    require_names(table, [name])

    def key(row: Row) -> tuple[float, str]:
        value = row[name]
        return (math.inf, value) if isinstance(value, str) else (float(value or 0), "")

    known = [row for row in table if row.get(name) is not None]
    unknown = [row for row in table if row.get(name) is None]
    # Games of one or of several players have no exploitability; the largest improvement says as much.
    if name == "exploitability" and any(row.get("largest_improvement") is not None for row in unknown):
        unknown = sort_rows(unknown, "largest_improvement", descending=descending)
    return sorted(known, key=key, reverse=descending) + unknown


def columns(table: Sequence[Row]) -> list[str]:
    """The main columns, those in which solutions of one algorithm differ, and at the end the folder."""
    names = dict.fromkeys(name for row in table for name in row)
    by_algorithm: dict[Value, list[Row]] = {}
    for row in table:
        if row["kind"] == "solution":
            by_algorithm.setdefault(row["algorithm"], []).append(row)
    kinds = ["kind"] if len({row["kind"] for row in table}) > 1 else []
    first = kinds + [name for name in FIRST if any(row.get(name) is not None for row in table)]
    if any(row.get("exploitability") is None and row.get("largest_improvement") is not None for row in table):
        first.append("largest_improvement")
    differing = [
        name
        for name in names
        if name not in (*FIRST, "folder", "kind", "together")
        and not name.startswith(("value_", "improvement_", "largest_", "nash_conv"))
        and any(len({row.get(name) for row in group}) > 1 for group in by_algorithm.values())
    ]
    leading = len(kinds) + sum(name in first for name in ("game", "algorithm"))
    return [*first[:leading], *differing, *first[leading:], "folder"]
