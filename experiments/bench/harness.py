"""The benchmark harness: figures with targets that are computed, taken beside a peer where there is one.

A benchmark NAME is the module `gdlx.experiments.NAME_bench` with a function `figures()` that yields each
figure as soon as it is known. A figure that misses its target is reported, never raised; so is a peer that is missing.
"""

import dataclasses
import importlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

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
    "train": "networks that learn games, beside OpenSpiel's Deep CFR",
    "start": "first results and compile times of every library game",
}


_STOPPED = "stopped early"


@dataclasses.dataclass(frozen=True)
class Target:
    """A bound on a figure's value, or on its ratio to the peer; which side is good is the figure's to say."""

    bound: float
    of: Literal["value", "ratio"] = "value"


@dataclasses.dataclass(frozen=True)
class Figure:
    """One measured number. `ratio` says how many times better than the peer it is, 2 being twice as good."""

    name: str
    value: float | None  # None where nothing was measured; the note says why
    unit: str
    better: Literal["lower", "higher"] = "lower"
    peer: str | None = None
    peer_value: float | None = None
    target: Target | None = None
    note: str | None = None
    benchmark: str | None = None  # whose figure it is; `run` fills it in

    @property
    def ratio(self) -> float | None:
        if self.peer_value is None or self.value is None:
            return None
        if self.better == "lower":
            return self.peer_value / self.value if self.value else None
        return self.value / self.peer_value if self.peer_value else None

    @property
    def holds(self) -> bool | None:
        """Whether the target is met; None without a target, or where the peer it needs is missing."""
        if self.target is None or self.value is None:
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

    def cells(self) -> tuple[str, ...]:
        """As in a table under HEADER."""
        return (
            self.name,
            "" if self.value is None else f"{self.value:.3g} {self.unit}".rstrip(),
            "" if self.peer_value is None else f"{self.peer_value:.3g} {self.unit}".rstrip(),
            "" if self.ratio is None else f"{self.ratio:.3g}x",
            self.note or self.peer or "",
            self.target_text() or "",
            {True: "yes", False: "NO", None: ""}[self.holds],
        )


HEADER = ("figure", "value", "peer's", "ratio", "peer", "target", "holds")


def missing_peer(name: str, peer: str, value: float | None = None, unit: str = "", **more: Any) -> Figure:
    """A figure whose peer is not there to compare with; some have no value of ours either."""
    return Figure(name, value, unit, peer=peer, note=f"peer {peer} is not installed: skipped", **more)


def run(names: Iterable[str]) -> Iterator[Figure]:
    """The figures of some benchmarks, each as soon as it is known."""
    for name in names:
        try:
            for figure in importlib.import_module(f"gdlx.experiments.bench.{name}_bench").figures():
                yield dataclasses.replace(figure, benchmark=name)
        except Exception as error:  # what was measured before must not be lost, nor what others measure after it
            note = f"{type(error).__name__}: {error}"
            yield Figure(f"{name} {_STOPPED}", None, "", note=note, benchmark=name)


def is_failure(figure: Figure) -> bool:
    """Whether it stands for all that a benchmark has not measured."""
    return figure.value is None and figure.name == f"{figure.benchmark} {_STOPPED}"


def table(figures: Sequence[Figure]) -> "rich.table.Table":
    import rich.markup
    import rich.table

    shown = rich.table.Table(HEADER[0], box=None, pad_edge=False)
    for column in HEADER[1:4]:
        shown.add_column(column, justify="right")
    for column in HEADER[4:]:
        shown.add_column(column)
    for figure in figures:
        *cells, holds = map(rich.markup.escape, figure.cells())
        shown.add_row(*cells, f"[bold red]{holds}[/]" if figure.holds is False else holds)
    return shown
