"""Options that several commands share, and blocks of options that a command takes as one parameter.

A block is a frozen dataclass whose fields are options. A command with a parameter of that type has all of them:
`expanded` replaces the parameter by the options in the signature that typer reads, and builds the block for the call.
"""

import dataclasses
import functools
import inspect
import pathlib
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import typer
import typer.core

from gdlx.propnet.common import limits as limiting

# Former names of options, which are still accepted: command -> {former: current}.
RENAMED: Mapping[str, Mapping[str, str]] = {"solve": {"--net": "--network"}}

DEFAULT_LIMITS = limiting.Limits()
DEFAULT_NODES = limiting.NODES
READING, LIMITS, RESULT, STOPPING = "Reading the game", "Limits", "Results and progress", "Stopping"

Game = Annotated[str, typer.Argument(metavar="GAME", help="A library name, e.g. goofspiel:cards=4, or a path.")]
GameOrResume = Annotated[
    str | None, typer.Argument(metavar="[GAME]", help="A library name, e.g. goofspiel:cards=4, or a path.")
]
MaxNodes = Annotated[
    int, typer.Option(min=1, help="Refuse games with more joint actions than this in one step.", rich_help_panel=LIMITS)
]
Payoff = Annotated[
    Literal["auto", "zero-sum", "goal"],
    typer.Option(
        help="Payoffs: goal values as they are, or shifted to sum to zero; auto: zero-sum if possible.",
        rich_help_panel=READING,
    ),
]
Checkpoint = Annotated[float, typer.Option(min=0.0, help="Seconds between checkpoints.", rich_help_panel=RESULT)]


@dataclasses.dataclass(frozen=True)
class Compiling:
    """How to read a rulesheet, and the limits of compiling it."""

    gdl: Annotated[
        int | None,
        typer.Option(
            "--gdl",
            min=1,
            max=2,
            help="Read as GDL (1) or GDL-II (2); by default the rulesheet decides.",
            rich_help_panel=READING,
        ),
    ] = None
    fold_case: Annotated[
        bool, typer.Option("--fold-case", help="Convert all names to lower case.", rich_help_panel=READING)
    ] = False
    max_seconds: Annotated[
        float, typer.Option(min=0.1, help="Stop compiling after this many seconds.", rich_help_panel=LIMITS)
    ] = DEFAULT_LIMITS.seconds
    max_memory: Annotated[int, typer.Option(min=64, help="Stop compiling at this many MB.", rich_help_panel=LIMITS)] = (
        DEFAULT_LIMITS.memory_mb
    )
    max_rules: Annotated[
        int, typer.Option(min=1, help="Stop grounding at this many ground rules.", rich_help_panel=LIMITS)
    ] = DEFAULT_LIMITS.rules

    @property
    def limits(self) -> limiting.Limits:
        return limiting.Limits(self.max_seconds, self.max_memory, self.max_rules)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with each block parameter replaced by the options of the block."""
    hints = typing.get_type_hints(command, include_extras=True)
    blocks: dict[str, Any] = {name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        options = [(name, hints[name], parameter.default)]
        if name in blocks:
            types = typing.get_type_hints(hints[name], include_extras=True)
            options = [(field.name, types[field.name], field.default) for field in dataclasses.fields(hints[name])]
        parameters += [
            inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
            for option, kind, default in options
        ]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        built = {
            name: kind(**{field.name: values.pop(field.name) for field in dataclasses.fields(kind)})
            for name, kind in blocks.items()
        }
        command(**values, **built)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


class Command(typer.core.TyperCommand):
    """A command with plain-text help: options without a panel first, then one section for each panel."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                default = "Arguments" if parameter.param_type_name == "argument" else "Options"
                panel = getattr(parameter, "rich_help_panel", None) or default
                sections.setdefault(panel, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def require_writable(output: pathlib.Path, suffixes: tuple[str, ...]) -> None:
    """Raise unless the output file can be written, before the long work starts."""
    if output.suffix.lower() not in suffixes:
        raise typer.BadParameter(f"{output} must end in {' or '.join(suffixes)}")
    if not output.resolve().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {output.parent} to write {output.name} into")


def refuse_changes(context: typer.Context, kind: str, fixed: Iterable[str]) -> None:
    """Raise if an option would change the settings of the run that is resumed."""
    refuse(context, ("seed", *fixed), f"a resumed {kind} keeps its settings", " with --resume")


def refuse(context: typer.Context, names: Iterable[str], why: str, when: str = "") -> None:
    """Raise if one of these options is on the command line."""
    for name in names:
        if is_given(context, name):
            spelling = {param.name: max(param.opts, key=len) for param in context.command.params}
            raise typer.BadParameter(f"{why}: leave out {spelling.get(name, f'--{name}')}{when}")


def is_given(context: typer.Context, name: str) -> bool:
    """Return whether an option is on the command line; the seed is a global option."""
    owner = context if name != "seed" else context.parent
    source = owner.get_parameter_source(name) if owner is not None else None
    return source is not None and source.name == "COMMANDLINE"


def current_names(command: str, arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Replace former names of options by the current ones; also return a note for each replaced name.

    >>> current_names("solve", ["kuhn_poker", "--net=FOLDER"])
    (['kuhn_poker', '--network=FOLDER'], ['--net is now called --network'])
    """
    renamed = RENAMED.get(command, {})
    current: list[str] = []
    notes: list[str] = []
    for number, argument in enumerate(arguments):
        if argument == "--":
            return [*current, *arguments[number:]], notes
        name, has_value, value = argument.partition("=")
        if name in renamed:
            notes.append(f"{name} is now called {renamed[name]}")
            argument = renamed[name] + has_value + value
        current.append(argument)
    return current, notes
