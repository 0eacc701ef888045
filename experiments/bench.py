"""The benchmark harness: figures with targets that are computed, taken beside a peer where there is one.

A benchmark NAME is the module `gdlx.experiments.NAME_bench` with a function `figures()` that yields each
figure as soon as it is known. A figure that misses its target is reported, never raised.
"""

import dataclasses
import importlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from gdlx.experiments import machine

if TYPE_CHECKING:
    import rich.table

BENCHMARKS = {
    "read": "reading and checking rulesheets, and the start of the command line",
    "compile": "from rulesheets to simplified networks: time, memory, sizes and growth",
    "playout": "random play in words, beside pgx and beside C",
    "cfr": "exact solving, beside OpenSpiel's C++ and one run after another",
    "mccfr": "sampled solving, beside OpenSpiel's C++",
    "search": "bounds found by playing, beside exact exploitability",
    "sweep": "a thousand runs at once, beside one after the other; and a report on a hundred",
    "start": "first results and compile times of every library game",
}


@dataclasses.dataclass(frozen=True)
class Target:
    """A bound on a figure's value, or on its ratio to the peer; which side is good is the figure's to say."""

    bound: float
    of: Literal["value", "ratio"] = "value"


@dataclasses.dataclass(frozen=True)
class Figure:
    """One measured number. `ratio` says how many times better than the peer it is, 2 being twice as good."""

    name: str
    value: float
    unit: str
    better: Literal["lower", "higher"] = "lower"
    peer: str | None = None
    peer_value: float | None = None
    target: Target | None = None

    @property
    def ratio(self) -> float | None:
        if self.peer_value is None:
            return None
        if self.better == "lower":
            return self.peer_value / self.value if self.value else None
        return self.value / self.peer_value if self.peer_value else None

    @property
    def holds(self) -> bool | None:
        """Whether the target is met; None without a target, or where the peer it needs is missing."""
        if self.target is None:
            return None
        if self.target.of == "ratio":
            return None if self.ratio is None else self.ratio >= self.target.bound
        return self.value <= self.target.bound if self.better == "lower" else self.value >= self.target.bound

    def target_text(self) -> str | None:
        if self.target is None:
            return None
        if self.target.of == "ratio":
            return f">= {self.target.bound:g}x"
        return f"{'<=' if self.better == 'lower' else '>='} {self.target.bound:g} {self.unit}".rstrip()

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "peer": self.peer,
            "peer_value": self.peer_value,
            "ratio": self.ratio,
            "target": self.target_text(),
            "holds": self.holds,
        }


def run(names: Iterable[str]) -> Iterator[Figure]:
    """The figures of some benchmarks, each as soon as it is known."""
    for name in names:
        try:
            yield from importlib.import_module(f"gdlx.experiments.{name}_bench").figures()
        except Exception as error:  # what was measured before must not be lost, nor what others measure after it
            yield Figure(f"{name} stopped early", 0.0, "", peer=f"{type(error).__name__}: {error}")


def as_json(figures: Sequence[Figure]) -> dict[str, object]:
    return {
        "machine": dataclasses.asdict(machine.describe()),
        "figures": [figure.as_json() for figure in figures],
    }


def table(figures: Sequence[Figure]) -> "rich.table.Table":
    import rich.table

    shown = rich.table.Table("figure", box=None, pad_edge=False)
    for column in ("value", "peer's", "ratio"):
        shown.add_column(column, justify="right")
    for column in ("peer", "target", "holds"):
        shown.add_column(column)
    for f in figures:
        shown.add_row(
            f.name,
            f"{f.value:.3g} {f.unit}",
            "" if f.peer_value is None else f"{f.peer_value:.3g} {f.unit}",
            "" if f.ratio is None else f"{f.ratio:.3g}x",
            f.peer or "",
            f.target_text() or "",
            {True: "yes", False: "[bold red]NO[/]", None: ""}[f.holds],
        )
    return shown
