"""The benchmark harness: measured figures, compared with a target and with a peer where there is one.

A benchmark NAME is the module `gdlx.experiments.bench.NAME_bench` with a function `figures()` that yields each figure
as soon as it is measured. A missed target or a missing peer is reported, and is not an error.
"""

import dataclasses
import importlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import rich.table

BENCHMARKS = {
    "read": "reading and checking rulesheets, and the start of the command line",
    "compile": "from rulesheets to simplified propnets: time, memory, sizes and growth",
    "playout": "bit-packed random play, beside pgx and beside C",
    "step": "environments in a program of a user, beside pgx",
    "cfr": "exact solving, beside OpenSpiel's C++ and one run after another",
    "large": "games of ten billion histories, exactly: counts, time and memory",
    "mccfr": "sampled solving, beside OpenSpiel's C++",
    "search": "bounds estimated by play, beside exact exploitability; first moves in a large game",
    "infoset": "information sets counted, listed and sampled, beside Richards (2012) and rejection",
    "sweep": "a thousand runs at once, beside one after the other; and a report on a hundred",
    "train": "networks that learn games, beside OpenSpiel's Deep CFR",
    "start": "first results and compile times of every library game",
}


_STOPPED = "stopped early"


@dataclasses.dataclass(frozen=True)
class Target:
    """A bound on the value of a figure, or on its ratio to the peer; `Figure.better` says which side is good."""

    bound: float
    of: Literal["value", "ratio"] = "value"


@dataclasses.dataclass(frozen=True)
class Figure:
    """One measured number. `ratio` is how many times better than the peer it is: 2 is twice as good."""

    name: str
    value: float | None  # None if nothing was measured; `note` says why
    unit: str
    better: Literal["lower", "higher"] = "lower"
    peer: str | None = None
    peer_value: float | None = None
    target: Target | None = None
    note: str | None = None
    benchmark: str | None = None  # the name of its benchmark, set by `run`

    @property
    def ratio(self) -> float | None:
        if self.peer_value is None or self.value is None:
            return None
        if self.better == "lower":
            return self.peer_value / self.value if self.value else None
        return self.value / self.peer_value if self.peer_value else None

    @property
    def holds(self) -> bool | None:
        """Whether the target is met; None without a target, or if the peer that it needs is missing."""
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
        """The row of a table with the columns of HEADER."""
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
    """A figure whose peer is not installed; `value` is ours, if it was measured."""
    return Figure(name, value, unit, peer=peer, note=f"peer {peer} is not installed: skipped", **more)


def run(names: Iterable[str]) -> Iterator[Figure]:
    """Runs benchmarks, and yields each figure as soon as it is measured."""
    for name in names:
        try:
            for figure in importlib.import_module(f"gdlx.experiments.bench.{name}_bench").figures():
                yield dataclasses.replace(figure, benchmark=name)
        except Exception as error:  # so that earlier figures and the other benchmarks are not lost
            note = f"{type(error).__name__}: {error}"
            yield Figure(f"{name} {_STOPPED}", None, "", note=note, benchmark=name)


def is_failure(figure: Figure) -> bool:
    """Whether the figure says that a benchmark failed."""
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
