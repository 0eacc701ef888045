"""Output of commands: results go to stdout, everything else to stderr.

rich is imported only where it is needed, so that `--json`, errors and plain text start fast.
"""

import contextlib
import dataclasses
import json
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import typer

from gdlx.cli import narrow_tables
from gdlx.propnet.common import errors
from gdlx.propnet.common.text import printable

if TYPE_CHECKING:
    import rich.console
    import rich.progress
    import rich.segment

_UNWRAPPED = 10_000

# Library arguments whose command-line options have different names.
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
    """The global options; a command reads them with `options(context)`."""

    device: Literal["cpu", "gpu", "tpu"] | None = None
    x64: bool = False
    seed: int = 0
    quiet: bool = False
    json: bool = False


def options(context: typer.Context) -> Options:
    """Return the global options of the running command."""
    global_options = context.find_object(Options)
    if global_options is None:
        raise RuntimeError("a command ran outside of the gdlx application")
    return global_options


def stdout() -> "rich.console.Console":
    return _console(stderr=False)


def stderr() -> "rich.console.Console":
    return _console(stderr=True)


def _console(*, stderr: bool) -> "rich.console.Console":
    """Return a console that wraps lines only on a terminal: in a pipe or a file each row stays on one line."""
    import rich.console

    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return rich.console.Console(stderr=stderr, highlight=False, width=None if terminal else _UNWRAPPED)


def say(*lines: str) -> None:
    """Print plain lines on stdout; if `progress` shows a bar, above the bar."""
    sys.stdout.writelines(f"{printable.printable_lines(line)}\n" for line in lines)


def show(renderable: "rich.console.RenderableType") -> None:
    """Print a table or another rich renderable on stdout, without trailing blanks.

    A table that is too wide for the terminal loses columns rather than digits.
    """
    import rich.table

    console = stdout()
    dropped: list[str] = []
    if isinstance(renderable, rich.table.Table) and console.width < _UNWRAPPED:
        renderable, dropped = narrow_tables.fit_table(renderable, console.width)
    with console.capture() as captured:
        console.print(_Sanitised(renderable))
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().split("\n")[:-1])
    if dropped:
        write_stderr(f"columns left out: {', '.join(dropped)}; widen the terminal, or use --json")


def show_table(columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Iterable[str] = ()) -> None:
    """Print a table of plain texts; the columns of numbers are aligned to the right, and never wrapped or cut."""
    import rich.markup
    import rich.table

    table, right_justified = rich.table.Table(box=None, pad_edge=False), set(numbers)
    for column in columns:
        is_number = column in right_justified
        table.add_column(
            rich.markup.escape(column), justify="right" if is_number else "left", no_wrap=is_number, overflow="fold"
        )
    for row in rows:
        table.add_row(*map(rich.markup.escape, row))
    show(table)


class _Sanitised:
    """A renderable whose text is printable; the styles that rich adds around it are kept."""

    def __init__(self, renderable: "rich.console.RenderableType") -> None:
        self._renderable = renderable

    def __rich_console__(
        self, console: "rich.console.Console", options: "rich.console.ConsoleOptions"
    ) -> "Iterator[rich.segment.Segment]":
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else segment._replace(text=printable.printable_lines(segment.text))


def remark(options: Options, text: str) -> None:
    """Print a remark on stderr, unless `--quiet`."""
    if not options.quiet:
        stderr().print(f"remark: {printable.printable_lines(text)}", markup=False)


@contextlib.contextmanager
def warnings_as_remarks(*, quiet: bool) -> Iterator[None]:
    """Print warnings of the class `errors.Remark` as remarks, unless `quiet`."""
    shown = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
        if not issubclass(category, errors.Remark):
            shown(message, category, *place, **options)
        elif not quiet:
            write_stderr(f"remark: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("default", errors.Remark)
        warnings.showwarning = show
        yield


def write_stderr(text: str) -> None:
    """Print plain text on stderr."""
    sys.stderr.write(f"{printable.printable_lines(text)}\n")


def emit(result: object) -> None:
    """Print the JSON object that is the output of a command under `--json`."""
    say(json.dumps(result, indent=2, allow_nan=False))


def in_options(message: str, elsewhere: Mapping[str, str] = types.MappingProxyType({})) -> str:
    """Replace library arguments in an error message by command-line options (see `errors.UserError`).

    Args:
      message: the message.
      elsewhere: options that the running command lacks, each with a command that has it, which is then named.

    >>> in_options("take a smaller `max_steps=`, or use `payoff='goal'` and `jax_enable_x64=True`")
    'take a smaller --max-steps, or use --payoff goal and --x64'
    >>> in_options("use `payoff='goal'`", {"--payoff": "solve"})
    'use --payoff goal (an option of `gdlx solve`)'
    """

    def option(argument: re.Match[str]) -> str:
        name, value = argument.groups()
        flag = _OPTIONS.get(name, f"--{name.replace('_', '-')}")
        text = flag if value in ("", "True") else f"{flag} {value.strip(_QUOTES)}"
        return text + (f" (an option of `gdlx {elsewhere[flag]}`)" if flag in elsewhere else "")

    return _ARGUMENT.sub(option, message)


def fail(message: str, *, as_json: bool, label: str = "error: ") -> None:
    """Print an error message on stderr, and under `--json` also as an object on stdout."""
    write_stderr(f"{label}{message}")
    if as_json:
        emit({"error": message})


@contextlib.contextmanager
def progress(options: Options, label: str, total: int | None = None) -> Iterator[Callable[[str], None]]:
    """Show a progress bar on stderr; call the yielded function after each step, with a note on the current state.

    Shows nothing under `--quiet` or `--json`, or if stderr is not a terminal.
    """
    if is_silent(options):
        yield lambda note: None
        return
    with _bar() as bar:
        task = bar.add_task(printable.printable(label), total=total)
        yield lambda note: bar.update(task, advance=1, description=_described(label, note) if note else label)


@contextlib.contextmanager
def progress_of_many(options: Options, label: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """Like `progress`, for steps that finish several at a time: call the function with their number and a note."""
    if is_silent(options):
        yield lambda count, note: None
        return
    with _bar() as bar:
        task = bar.add_task(printable.printable(label), total=total)

        def report(count: int, note: str) -> None:
            bar.update(task, advance=count, description=_described(label, note) if note else None)

        yield report


def _described(label: str, note: str) -> str:
    return printable.printable(f"{label}: {note}")


def is_silent(options: Options) -> bool:
    """Return whether progress bars are hidden."""
    return options.quiet or options.json or not sys.stderr.isatty()


def _bar() -> "rich.progress.Progress":
    import rich.progress

    columns = (
        rich.progress.SpinnerColumn(),
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.MofNCompleteColumn(),
        rich.progress.TimeElapsedColumn(),
    )
    # Print other output of the command above the bar, but never redirect a pipe or a file to the terminal.
    redirect = sys.stdout.isatty()
    return rich.progress.Progress(*columns, console=stderr(), transient=True, redirect_stdout=redirect)
