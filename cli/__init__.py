"""The command line: one function per command, in the module of its name; this module puts them together.

A command takes `context: typer.Context` and finds the global options with `console.options(context)`. It
raises what goes wrong: `main` alone turns errors into a paragraph and an exit code.
"""

import gc
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Literal

import typer
import typer.core

import gdlx
from gdlx.cli import (
    bench,
    check,
    console,
    doctor,
    evaluate,
    experiment,
    games,
    info,
    match,
    play,
    playout,
    report,
    results,
    shared_options,
    show,
    solve,
    sweep,
    tournament,
    train,
)
from gdlx.cli import compile as compile_command
from gdlx.propnet.common import errors
from gdlx.propnet.syntax import diagnostics

# What jax calls the devices. Not its alias "gpu", which fails unless CUDA, ROCm and oneAPI are all there.
_PLATFORMS = {"cpu": "cpu", "gpu": "cuda", "tpu": "tpu"}
_COMMANDS = (
    games.games,
    check.check,
    show.show,
    info.info,
    compile_command.compile,
    playout.playout,
    solve.solve,
    evaluate.evaluate,
    train.train,
    match.match,
    tournament.tournament,
    play.play,
    sweep.sweep,
    results.results,
    report.report,
    experiment.experiment,
    bench.bench,
    doctor.doctor,
)
_EPILOG = """Global options, before or after the command: --device cpu|gpu|tpu, --x64, --seed N, --quiet,
--json, --version; gdlx --help explains them."""

app = typer.Typer(add_completion=False, rich_markup_mode=None)
for _command in _COMMANDS:
    app.command(epilog=_EPILOG, cls=shared_options.Command)(shared_options.expanded(_command))


@app.callback(invoke_without_command=True, epilog="Options may also follow the command.")
def _globals(
    context: typer.Context,
    device: Annotated[
        Literal["cpu", "gpu", "tpu"] | None,
        typer.Option(help="Compute on this device (gpu: CUDA) instead of the best that jax finds."),
    ] = None,
    x64: Annotated[bool, typer.Option("--x64", help="Compute in double precision.")] = False,
    seed: Annotated[int, typer.Option(min=-(2**63), max=2**63 - 1, help="Seed of everything random.", metavar="N")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress and no remarks on stderr.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Check, compile, play and solve games given by their rules in GDL-II."""
    context.obj = console.Options(device, x64, seed, quiet, json)
    # jax reads these when it is first imported, which is later, and only by the commands that need it.
    if device:
        os.environ["JAX_PLATFORMS"] = _PLATFORMS[device]
    if x64:
        os.environ["JAX_ENABLE_X64"] = "1"
    if version:
        if json:
            console.emit({"version": gdlx.__version__})
        else:
            console.say(f"gdlx {gdlx.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


_GROUP = typer.main.get_command(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code: 0, 1 error, 2 usage, 70 a bug in gdlx, 130 Ctrl-C."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Importing jax makes many objects and no garbage: to look for it among them takes a fifth of that time.
    gc.set_threshold(50_000)
    # Closed standard streams are None in Python; what is said then goes nowhere, as it would in any program.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal that lacks a character must not stop a command
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _run(given or ["--help"])
        sys.stdout.flush()
    except OSError as error:
        # stdout cannot be written. Python flushes it once more when it exits, which now goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # which is a reader that has gone: `gdlx games | head -1`
            console.fail(f"cannot write the output: {error.strerror}", as_json=False)
        code = 1
    if arguments is None:
        _leave_threads(code)
    return code


def _leave_threads(code: int) -> None:
    """Agents that never answer may still compute, and Python breaks down if it ends as usual then."""
    worker = sys.modules.get("gdlx.players.matches.worker")
    if worker is not None and worker.is_anybody_left():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(arguments: Sequence[str]) -> int:
    front, rest = hoist(arguments)
    as_json = "--json" in front
    try:
        with _GROUP.make_context("gdlx", [*front, *rest]) as context:
            _GROUP.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    except typer.TyperException as error:
        console.fail(_usage(error), as_json=as_json)
        return error.exit_code
    except diagnostics.GdlError as error:
        console.fail(console.in_options(str(error)), as_json=as_json, label="")
        return 1
    except errors.UserError as error:
        console.fail(console.in_options(str(error)) if error.names_options else str(error), as_json=as_json)
        return 1
    except BrokenPipeError:
        raise
    except OSError as error:
        what = error.strerror or str(error)
        console.fail(what if error.filename is None else f"{error.filename}: {what}", as_json=as_json)
        return 1
    except (KeyboardInterrupt, typer.Abort):
        console.fail("interrupted", as_json=as_json, label="")
        return 130
    except Exception as error:
        if os.environ.get("GDLX_DEBUG") == "1":
            traceback.print_exc()
        what = f"{type(error).__name__}: {error}".rstrip(": ")
        console.fail(
            f"this is a bug in gdlx, please report it ({what}). GDLX_DEBUG=1 shows where it happened.",
            as_json=as_json,
        )
        return 70
    return 0


def hoist(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The global options, wherever they stand before a `--`, and the other arguments.

    >>> hoist(["show", "kuhn_poker", "--seed", "1", "--json"])
    (['--seed', '1', '--json'], ['show', 'kuhn_poker'])
    """
    options = (option for option in _GROUP.params if isinstance(option, typer.core.TyperOption))
    takes_value = {name: not option.is_flag for option in options for name in option.opts}
    front: list[str] = []
    rest: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        name, has_value, _ = argument.partition("=")
        if argument == "--":
            rest += [argument, *remaining]
        elif name not in takes_value:
            rest.append(argument)
        elif has_value or not takes_value[name]:
            front.append(argument)
        elif (value := next(remaining, None)) is not None:
            front += [argument, value]
        else:
            return [*front, argument], []  # so that the parser complains of the missing value
    return front, rest


def _usage(error: typer.TyperException) -> str:
    context: typer.Context | None = getattr(error, "ctx", None)
    message = " ".join(error.format_message().split())
    end = "" if message.endswith((".", "?")) else "."
    return f"{message}{end} See '{context.command_path if context else 'gdlx'} --help'."
