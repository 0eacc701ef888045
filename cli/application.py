"""The application: registers the commands, each of which is a function in the module of the same name.

A command takes `context: typer.Context` and reads the global options with `console.options(context)`. Commands raise
exceptions; only `run` turns them into an error message and an exit code.
"""

import os
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
    failures,
    games,
    info,
    infoset,
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
from gdlx.propnet.common import errors, interrupts
from gdlx.propnet.syntax import diagnostics

# Platform names of jax. Not its alias "gpu", which fails unless CUDA, ROCm and oneAPI are all installed.
_PLATFORMS = {"cpu": "cpu", "gpu": "cuda", "tpu": "tpu"}
_COMMANDS = (
    games.games,
    check.check,
    show.show,
    info.info,
    infoset.infoset,
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
_COMMAND_PARAMETERS = {name: command.params for name, command in getattr(_GROUP, "commands", {}).items()}


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code; output that cannot be written raises OSError."""
    front, rest = hoist(arguments)
    as_json = "--json" in front
    rest, notes = shared_options.current_names(rest[0] if rest else "", rest)
    for note in notes if "--quiet" not in front else ():
        console.write_stderr(f"remark: {note}")
    try:
        with (
            console.warnings_as_remarks(quiet="--quiet" in front),
            _GROUP.make_context("gdlx", [*front, *rest]) as context,
        ):
            _GROUP.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    except typer.TyperException as error:
        console.fail(_usage(error, rest[0] if rest else ""), as_json=as_json)
        return error.exit_code
    except diagnostics.GdlError as error:
        console.fail(console.in_options(str(error), _options_elsewhere(rest)), as_json=as_json, label="")
        return 1
    except errors.UserError as error:
        message = console.in_options(str(error), _options_elsewhere(rest)) if error.names_options else str(error)
        console.fail(message, as_json=as_json)
        return 1
    except BrokenPipeError:
        raise
    except OSError as error:
        what = error.strerror or str(error)
        console.fail(what if error.filename is None else f"{error.filename}: {what}", as_json=as_json)
        return 1
    except (KeyboardInterrupt, typer.Abort):
        console.fail("interrupted", as_json=as_json, label="")
        return interrupts.exit_code()
    except Exception as error:
        return _unexpected(error, rest, as_json=as_json)
    return 0


def _options_of(command: str) -> set[str]:
    """The options of a command, and the names of the arguments that it takes by position."""
    return {max(param.opts, key=len) for param in _COMMAND_PARAMETERS.get(command, ())}


def _options_elsewhere(arguments: Sequence[str]) -> dict[str, str]:
    """The options that the command of these arguments lacks, each with a command that has it."""
    command_options = _options_of(arguments[0]) if arguments else set()
    last_first = sorted(_COMMAND_PARAMETERS, key=lambda name: name == "solve")  # the one with most of them decides
    return {option: name for name in last_first for option in _options_of(name) - command_options}


def _unexpected(error: Exception, arguments: Sequence[str], *, as_json: bool) -> int:
    """Report an exception that no command raises on purpose, and return the exit code."""
    if interrupts.is_cause_of(error):
        console.fail("interrupted", as_json=as_json, label="")
        return interrupts.exit_code()
    if os.environ.get("GDLX_DEBUG") == "1":
        traceback.print_exc()
    if (lacking := failures.explain(error, _options_of(arguments[0]) if arguments else ())) is not None:
        console.fail(console.in_options(lacking), as_json=as_json)
        return 1
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    console.fail(
        f"this is a bug in gdlx, please report it ({what}). GDLX_DEBUG=1 shows where it happened.", as_json=as_json
    )
    return 70


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


_OUTPUTS = ("-o", "--output", "--out", "--folder", "--dir")  # what other commands and programs call the same


def _usage(error: typer.TyperException, command: str) -> str:
    context: typer.Context | None = getattr(error, "ctx", None)
    message = " ".join(error.format_message().split())
    end = "" if message.endswith((".", "?")) else "."
    params = context.command.params if context else ()
    if getattr(error, "option_name", None) in _OUTPUTS and any("--results" in param.opts for param in params):
        end += " The folder for results is --results DIR."
    named = f"gdlx {command}" if command in _COMMAND_PARAMETERS else "gdlx"  # the parser does not know its context
    return f"{message}{end} See '{context.command_path if context else named} --help'."
