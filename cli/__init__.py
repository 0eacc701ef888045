"""The command line. Each command is a function in the module of the same name; this module registers them.

A command takes `context: typer.Context` and reads the global options with `console.options(context)`. Commands raise
exceptions; only `main` turns them into an error message and an exit code.
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

# Platform names of jax. Not its alias "gpu", which fails unless CUDA, ROCm and oneAPI are all installed.
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
--json, --version; see gdlx --help."""

app = typer.Typer(add_completion=False, rich_markup_mode=None)
for _command in _COMMANDS:
    app.command(epilog=_EPILOG, cls=shared_options.Command)(shared_options.expanded(_command))


@app.callback(invoke_without_command=True, epilog="These options may also follow the command.")
def _globals(
    context: typer.Context,
    device: Annotated[
        Literal["cpu", "gpu", "tpu"] | None,
        typer.Option(help="Run on this device (gpu: CUDA); by default jax chooses."),
    ] = None,
    x64: Annotated[bool, typer.Option("--x64", help="Compute in double precision.")] = False,
    seed: Annotated[
        int, typer.Option(min=-(2**63), max=2**63 - 1, help="Seed of all random numbers.", metavar="N")
    ] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no progress bars and remarks.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Check, compile, simulate and solve games described in GDL-II."""
    context.obj = console.Options(device, x64, seed, quiet, json)
    # jax reads these variables when it is first imported, which only the commands that need it do, and later.
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
    """Run a command line and return its exit code.

    Args:
      arguments: the arguments after `gdlx`; by default those of this process, which then exits at once if threads of
        agents still run.

    Returns:
      0 on success, 1 on an error, 2 on wrong usage, 70 on a bug in gdlx, 130 after Ctrl-C.

    >>> main(["--version", "--quiet"])  # doctest: +ELLIPSIS
    gdlx ...
    0
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Importing jax allocates many objects and no garbage; collecting it would take a fifth of the import time.
    gc.set_threshold(50_000)
    # Python sets closed standard streams to None; discard their output, as other programs do.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # do not fail on a character that the terminal lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _run(words or ["--help"])
        sys.stdout.flush()
    except OSError as error:
        # stdout cannot be written. Python flushes it again at exit; send that to /dev/null.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # the reader has closed the pipe: `gdlx games | head -1`
            console.fail(f"cannot write the output: {error.strerror}", as_json=False)
        code = 1
    if arguments is None:
        _exit_if_threads_run(code)
    return code


def _exit_if_threads_run(code: int) -> None:
    """Exit at once if threads of agents still compute: the usual shutdown of Python would crash."""
    if "gdlx.players.matches.clock_worker" not in sys.modules:
        return
    from gdlx.players.matches import clock_worker

    if clock_worker.has_running_threads():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(arguments: Sequence[str]) -> int:
    front, rest = hoist(arguments)
    as_json = "--json" in front
    rest, notes = shared_options.current_names(rest[0] if rest else "", rest)
    for note in notes if "--quiet" not in front else ():
        sys.stderr.write(f"remark: {note}\n")
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
    """Separate the global options, wherever they occur before a `--`, from the other arguments.

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
            return [*front, argument], []  # the parser then reports the missing value
    return front, rest


def _usage(error: typer.TyperException) -> str:
    context: typer.Context | None = getattr(error, "ctx", None)
    message = " ".join(error.format_message().split())
    end = "" if message.endswith((".", "?")) else "."
    return f"{message}{end} See '{context.command_path if context else 'gdlx'} --help'."
