"""Options that several commands take, said once, and blocks of options that commands take as one parameter.

A block is a frozen dataclass whose fields are options. A command that has a parameter of that type has all of them:
`expanded` puts the options into its signature, where typer finds them, and the block together when it is called.
"""

import dataclasses
import functools
import inspect
import pathlib
import typing
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

import typer
import typer.core

from gdlx.propnet.common import limits as limiting

DEFAULT_LIMITS = limiting.Limits()
DEFAULT_NODES = limiting.NODES
READING, LIMITS, RESULT, STOPPING = "How the game is read", "Limits", "Result and progress", "When to stop"

Game = Annotated[str, typer.Argument(metavar="GAME", help="A library name, e.g. goofspiel:cards=4, or a path.")]
GameOrResume = Annotated[
    str | None, typer.Argument(metavar="[GAME]", help="A library name, e.g. goofspiel:cards=4, or a path.")
]
MaxNodes = Annotated[
    int, typer.Option(min=1, help="Refuse games with more joint moves than this in one step.", rich_help_panel=LIMITS)
]
Payoff = Annotated[
    Literal["auto", "zero-sum", "goal"],
    typer.Option(help="What payoffs are made of.", rich_help_panel=READING),
]
Checkpoint = Annotated[float, typer.Option(min=0.0, help="Seconds between checkpoints.", rich_help_panel=RESULT)]


@dataclasses.dataclass(frozen=True)
class Compiling:
    """How a rulesheet is read, and what compiling it may use."""

    gdl: Annotated[
        int | None,
        typer.Option(
            "--gdl",
            min=1,
            max=2,
            help="Read as GDL (1) or GDL-II (2), whatever the sheet says.",
            rich_help_panel=READING,
        ),
    ] = None
    fold_case: Annotated[
        bool, typer.Option("--fold-case", help="Read all names in lower case.", rich_help_panel=READING)
    ] = False
    max_seconds: Annotated[
        float, typer.Option(min=0.1, help="Stop grounding after this time.", rich_help_panel=LIMITS)
    ] = DEFAULT_LIMITS.seconds
    max_memory: Annotated[int, typer.Option(min=64, help="Stop grounding at this many MB.", rich_help_panel=LIMITS)] = (
        DEFAULT_LIMITS.memory_mb
    )
    max_rules: Annotated[
        int, typer.Option(min=1, help="Stop grounding at this many ground rules.", rich_help_panel=LIMITS)
    ] = DEFAULT_LIMITS.rules

    @property
    def limits(self) -> limiting.Limits:
        return limiting.Limits(self.max_seconds, self.max_memory, self.max_rules)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of a block in place of every parameter that is one."""
    hints = typing.get_type_hints(command, include_extras=True)
    blocks: dict[str, Any] = {name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        options = [(name, hints[name], parameter.default)]
        if name in blocks:
            own = typing.get_type_hints(hints[name], include_extras=True)
            options = [(field.name, own[field.name], field.default) for field in dataclasses.fields(hints[name])]
        parameters += [
            inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
            for option, kind, default in options
        ]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        made = {
            name: kind(**{field.name: given.pop(field.name) for field in dataclasses.fields(kind)})
            for name, kind in blocks.items()
        }
        command(**given, **made)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


class Command(typer.core.TyperCommand):
    """Help in plain text, its options in sections: those without a panel first, then panel by panel."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
                panel = getattr(parameter, "rich_help_panel", None) or usual
                sections.setdefault(panel, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def require_writable(output: pathlib.Path, suffixes: tuple[str, ...]) -> None:
    """Before the long work, not after it."""
    if output.suffix.lower() not in suffixes:
        raise typer.BadParameter(f"{output} must end in {' or '.join(suffixes)}")
    if not output.resolve().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {output.parent} to write {output.name} into")


def refuse_changes(context: typer.Context, kind: str, fixed: Iterable[str]) -> None:
    """What is gone on with goes on as it began."""
    refuse(context, ("seed", *fixed), f"a {kind} goes on as it began", " with --resume")


def refuse(context: typer.Context, names: Iterable[str], why: str, when: str = "") -> None:
    """Options that would do nothing."""
    for name in names:
        if is_given(context, name):
            spelt = {param.name: max(param.opts, key=len) for param in context.command.params}
            raise typer.BadParameter(f"{why}: leave out {spelt.get(name, f'--{name}')}{when}")


def is_given(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line; the seed is one of all commands."""
    owner = context if name != "seed" else context.parent
    source = owner.get_parameter_source(name) if owner is not None else None
    return source is not None and source.name == "COMMANDLINE"
