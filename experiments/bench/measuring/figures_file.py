"""Figures with the machine, the versions and the time of measurement, as JSON and as Markdown."""

import dataclasses
import datetime
import importlib.metadata
import itertools
import json
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from gdlx.experiments.bench import harness
from gdlx.experiments.bench.measuring import host_machine
from gdlx.propnet.common import atomic_files, bounded_files, errors
from gdlx.propnet.common.text import printable

_PACKAGES = ("gdlx", "jax", "jaxlib", "numpy", "clingo", "open_spiel", "pgx")


class BenchFileError(errors.UserError, ValueError):
    """A file that does not hold figures."""


@dataclasses.dataclass(frozen=True)
class BenchReport:
    """The figures measured so far."""

    machine: host_machine.HostInfo
    versions: Mapping[str, str | None]  # of gdlx, its dependencies and its peers; None if not installed
    when: str  # the start, in UTC
    figures: tuple[harness.Figure, ...] = ()
    complete: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "machine": dataclasses.asdict(self.machine),
            "versions": dict(self.versions),
            "when": self.when,
            "complete": self.complete,
            "figures": [_figure_to_json(figure) for figure in self.figures],
        }


def new_report() -> BenchReport:
    """An empty report, for this machine and now."""
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    return BenchReport(host_machine.describe(), {name: _version(name) for name in _PACKAGES}, now.isoformat())


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _figure_to_json(figure: harness.Figure) -> dict[str, Any]:
    target = figure.target
    return {
        "name": figure.name,
        "value": _number(figure.value),
        "unit": figure.unit,
        "peer": figure.peer,
        "peer_value": _number(figure.peer_value),
        "ratio": _number(figure.ratio),
        "target": figure.target_text(),
        "holds": figure.holds,
        "better": figure.better,
        "bound": None if target is None else target.bound,
        "bound_of": None if target is None else target.of,
        "note": figure.note,
        "benchmark": figure.benchmark,
    }


def _number(value: float | None) -> float | None:
    """JSON has neither infinities nor NaN."""
    return value if value is not None and math.isfinite(value) else None


def _host_from_json(fields: Mapping[str, Any]) -> host_machine.HostInfo:
    host = host_machine.HostInfo(**fields)
    memory = None if host.memory_gb is None else float(host.memory_gb)
    return host_machine.HostInfo(str(host.cpu), int(host.cores), memory, str(host.python), str(host.platform))


def _figure_from_json(fields: Mapping[str, Any]) -> harness.Figure:
    if fields["better"] not in ("lower", "higher") or fields["bound_of"] not in ("value", "ratio", None):
        raise ValueError(f"better is {fields['better']!r}, bound_of {fields['bound_of']!r}")
    target = None if fields["bound"] is None else harness.Target(float(fields["bound"]), fields["bound_of"])
    value, theirs = (None if x is None else float(x) for x in (fields["value"], fields["peer_value"]))
    peer, note, benchmark = (None if x is None else str(x) for x in map(fields.get, ("peer", "note", "benchmark")))
    return harness.Figure(
        str(fields["name"]), value, str(fields["unit"]), fields["better"], peer, theirs, target, note, benchmark
    )


def write(path: pathlib.Path, report: BenchReport) -> None:
    """Writes a report atomically, as Markdown if the name ends in .md, else as JSON."""

    if path.suffix.lower() == ".md":
        text = markdown(report)
    else:
        text = json.dumps(report.to_json(), indent=2, allow_nan=False) + "\n"
    atomic_files.write_atomically(path, text.encode())


def read(path: pathlib.Path) -> BenchReport:
    """Reads a report that `write` wrote as JSON."""
    advice = "pass a file that `gdlx bench NAME -o FILE.json` wrote"
    try:
        document = bounded_files.read_json(path)
    except bounded_files.FileError as error:
        raise BenchFileError(f"{path} cannot be used: {error.problem}; {advice}") from None
    try:
        return BenchReport(
            _host_from_json(document["machine"]),
            {str(name): version for name, version in document["versions"].items()},
            str(document["when"]),
            tuple(_figure_from_json(figure) for figure in document["figures"]),
            bool(document["complete"]),
        )
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        what = printable.printable(repr(error))[:200]
        raise BenchFileError(f"{path} does not hold the figures of benchmarks ({what}); {advice}") from None


def markdown(report: BenchReport) -> str:
    """A line about the machine, and a table for each benchmark."""
    parts = [about(report)]
    if not report.complete:
        parts.append("Not complete: measuring was stopped, or a benchmark failed.")
    for name, figures in itertools.groupby(report.figures, key=lambda figure: figure.benchmark):
        parts.append(f"### {name}: {harness.BENCHMARKS.get(name or '', '')}".rstrip(": "))
        parts.append(_rows([harness.HEADER, ("---",) * len(harness.HEADER), *(figure.cells() for figure in figures)]))
    return "\n\n".join(parts) + "\n"


def about(report: BenchReport) -> str:
    here = report.machine
    memory = "" if here.memory_gb is None else f", {here.memory_gb:g} GB"
    named = ", ".join(f"{name} {version or '(not installed)'}" for name, version in report.versions.items())
    date = report.when.partition("T")[0]
    return f"{date}, {here.cores} cores of {here.cpu}{memory}, {here.platform}, Python {here.python}; {named}."


def _rows(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)
