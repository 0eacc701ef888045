"""What commands print, and where: results on stdout, everything else on stderr.

rich is imported only by what needs it, so that `--json`, errors and plain text start fast.
"""

import contextlib
import dataclasses
import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

import typer

if TYPE_CHECKING:
    import rich.console
    import rich.progress

_UNWRAPPED = 10_000

# Arguments of the library whose options have other names than theirs.
_OPTIONS = {
    "Limits.rules": "--max-rules",
    "Limits.seconds": "--max-seconds",
    "Limits.memory_mb": "--max-memory",
    "jax_enable_x64": "--x64",
    "moves": "--after",
}
_QUOTES = "'\""
_ARGUMENT = re.compile(r"`([A-Za-z]\w*(?:\.\w+)?)=([^`\s]*)`")


@dataclasses.dataclass(frozen=True)
class Options:
    """The global options, as every command finds them with `options(context)`."""

    device: Literal["cpu", "gpu", "tpu"] | None = None
    x64: bool = False
    seed: int = 0
    quiet: bool = False
    json: bool = False


def options(context: typer.Context) -> Options:
    found = context.find_object(Options)
    if found is None:
        raise RuntimeError("a command ran outside of the gdlx application")
    return found


def stdout() -> "rich.console.Console":
    return _console(stderr=False)


def stderr() -> "rich.console.Console":
    return _console(stderr=True)


def _console(*, stderr: bool) -> "rich.console.Console":
    """A console that wraps lines on a terminal only: in a pipe or a file a row stays one line."""
    import rich.console

    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return rich.console.Console(stderr=stderr, highlight=False, width=None if terminal else _UNWRAPPED)


def say(*lines: str) -> None:
    """Plain lines on stdout; while `progress` shows a bar they go above it."""
    sys.stdout.writelines(f"{line}\n" for line in lines)


def show(renderable: "rich.console.RenderableType") -> None:
    """A table or another thing of rich on stdout, without the blanks that rich pads lines with."""
    console = stdout()
    with console.capture() as drawn:
        console.print(renderable)
    say(*(line.rstrip() for line in drawn.get().splitlines()))


def remark(given: Options, text: str) -> None:
    """What a user may want to know beside the result."""
    if not given.quiet:
        stderr().print(f"remark: {text}", markup=False)


def emit(result: object) -> None:
    """The one JSON object that a command prints under `--json`."""
    say(json.dumps(result, indent=2, allow_nan=False))


def in_options(message: str) -> str:
    """A message of the library, with options in place of arguments (see `errors.UserError`).

    >>> in_options("take a smaller `max_steps=`, or use `payoff='goal'` and `jax_enable_x64=True`")
    'take a smaller --max-steps, or use --payoff goal and --x64'
    """
    return _ARGUMENT.sub(_option, message)


def _option(argument: re.Match[str]) -> str:
    name, value = argument.groups()
    option = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
    return option if value in ("", "True") else f"{option} {value.strip(_QUOTES)}"


def fail(message: str, *, as_json: bool, label: str = "error: ") -> None:
    """One paragraph for a person, and under `--json` also an object for a program."""
    sys.stderr.write(f"{label}{message}\n")
    if as_json:
        emit({"error": message})


@contextlib.contextmanager
def progress(given: Options, label: str, total: int | None = None) -> Iterator[Callable[[str], None]]:
    """A progress bar on stderr; call what it yields after each step, with a word on the next one.

    Shows nothing under `--quiet` or `--json`, or where stderr is not a terminal.
    """
    if is_silent(given):
        yield lambda note: None
        return
    with _bar() as bar:
        task = bar.add_task(label, total=total)
        yield lambda note: bar.update(task, advance=1, description=f"{label}: {note}" if note else label)


@contextlib.contextmanager
def progress_of_many(given: Options, label: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """The same for many things that finish several at a time: call it with how many, and a word on what comes."""
    if is_silent(given):
        yield lambda count, note: None
        return
    with _bar() as bar:
        task = bar.add_task(label, total=total)

        def report(count: int, note: str) -> None:
            bar.update(task, advance=count, description=f"{label}: {note}" if note else None)

        yield report


def is_silent(given: Options) -> bool:
    return given.quiet or given.json or not sys.stderr.isatty()


def _bar() -> "rich.progress.Progress":
    import rich.progress

    columns = (
        rich.progress.SpinnerColumn(),
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.MofNCompleteColumn(),
        rich.progress.TimeElapsedColumn(),
    )
    # What a command prints meanwhile goes above the bar, but never from a pipe or a file to the terminal.
    above = sys.stdout.isatty()
    return rich.progress.Progress(*columns, console=stderr(), transient=True, redirect_stdout=above)
