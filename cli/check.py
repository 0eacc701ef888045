"""The command `check`: report all mistakes in rulesheets, optionally also by playing the game."""

import collections
from typing import Annotated, Any

import typer

from gdlx.cli import console, shared_options
from gdlx.propnet import games
from gdlx.propnet.checks import checker
from gdlx.propnet.common import errors
from gdlx.propnet.common.text import plurals
from gdlx.propnet.syntax import diagnostics

_SHOWN_PER_CODE = 10


def check(
    context: typer.Context,
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Paths or library names.")],
    play: Annotated[
        bool,
        typer.Option("--play", help="Also play the game: is it finite, is it playable, are its goals well defined?"),
    ] = False,
    *,
    compiling: shared_options.Compiling,
) -> None:
    """Report all mistakes in rulesheets; exit with 1 if any is an error."""
    options = console.options(context)
    reports = []
    with console.progress(options, "checking", len(files)) as advance:
        for file in files:
            report = _examine(file, compiling, play, options.seed)
            reports.append(report)
            if not options.json:
                console.say(*_lines(report))
            advance("")
    if options.json:
        console.emit({"files": [_as_json(report) for report in reports]})
    raise typer.Exit(int(any(report.failed for report in reports)))


class _Checked:
    """The result for one file: its diagnostics, or why it cannot be read, and statistics of play."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.diagnostics: tuple[diagnostics.Diagnostic, ...] = ()
        self.unreadable = ""
        self.played: dict[str, object] | None = None

    @property
    def failed(self) -> bool:
        return bool(self.unreadable or self.of(diagnostics.Severity.ERROR))

    def of(self, severity: diagnostics.Severity) -> list[diagnostics.Diagnostic]:
        return [problem for problem in self.diagnostics if problem.severity is severity]


def _examine(file: str, compiling: shared_options.Compiling, play: bool, seed: int) -> _Checked:
    checked = _Checked(file)
    try:
        report = checker.check(games.find_source(file), fold_case=compiling.fold_case, gdl=compiling.gdl)
    except (OSError, errors.UserError) as error:  # reported with the others, so that all files are checked
        checked.unreadable = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return checked
    checked.diagnostics = report.diagnostics
    if play and not report.errors:
        from gdlx.propnet.checks import by_playing

        try:
            findings = by_playing.check_by_playing(games.compile_game(report.sheet, within=compiling.limits), seed)
        except diagnostics.GdlError as error:
            checked.diagnostics += error.diagnostics
            return checked
        checked.diagnostics += findings.problems
        checked.played = {
            "exhaustive": findings.exhaustive,
            "states": findings.states,
            "matches": findings.matches,
            "longest": findings.longest,
            "best_goal": findings.best_goal,
        }
    return checked


def _as_json(checked: _Checked) -> dict[str, object]:
    unreadable = {"code": "unreadable", "message": checked.unreadable, "line": None, "column": None, "hint": ""}
    problems = [_problem_as_json(problem) for problem in checked.of(diagnostics.Severity.ERROR)]
    warnings = [_problem_as_json(problem) for problem in checked.of(diagnostics.Severity.WARNING)]
    result: dict[str, object] = {
        "file": checked.file,
        "errors": [unreadable] if checked.unreadable else problems,
        "warnings": warnings,
    }
    if checked.played:
        result["play"] = checked.played
    return result


def _problem_as_json(problem: diagnostics.Diagnostic) -> dict[str, object]:
    described = problem.as_json()
    return {name: console.in_options(value) if isinstance(value, str) else value for name, value in described.items()}


def _lines(checked: _Checked) -> list[str]:
    if checked.unreadable:
        return [f"{_name(checked.file)}: error: {checked.unreadable}"]
    lines = []
    counts: collections.Counter[str] = collections.Counter()
    for problem in checked.diagnostics:
        counts[problem.code] += 1
        if counts[problem.code] <= _SHOWN_PER_CODE:
            lines += [console.in_options(problem.render(_name(checked.file))), ""]
    for code, number in counts.items():
        if number > _SHOWN_PER_CODE:
            lines += [f"{_name(checked.file)}: and {number - _SHOWN_PER_CODE} more [{code}]; --json lists all", ""]
    if checked.played:
        lines.append(f"{_name(checked.file)}: {_play_line(checked.played)}")
    errors, warnings = (len(checked.of(severity)) for severity in diagnostics.Severity)
    summary = f"{plurals.count(errors, 'error')}, {plurals.count(warnings, 'warning')}" if checked.diagnostics else "ok"
    return [*lines, f"{_name(checked.file)}: {summary}"]


def _name(file: str) -> str:
    """A file name that is safe to print: it may contain control sequences of the terminal."""
    return diagnostics.shorten(file, 1_000)


def _play_line(played: dict[str, Any]) -> str:
    how = "all states explored" if played["exhaustive"] else "played at random"
    states, longest = plurals.count(played["states"], "state"), plurals.count(played["longest"], "joint action")
    return f"{how}: {states}, {played['matches']} terminal, longest match {longest}"
