"""Arguments and options that several commands take, said once."""

import pathlib
from collections.abc import Iterable
from typing import Annotated

import typer

from gdlx.propnet import limits as limiting

DEFAULT_LIMITS = limiting.Limits()

Game = Annotated[str, typer.Argument(metavar="GAME", help="A library name, e.g. goofspiel:cards=4, or a path.")]
Gdl = Annotated[
    int | None,
    typer.Option("--gdl", min=1, max=2, help="Read as GDL (1) or GDL-II (2), whatever the sheet says."),
]
FoldCase = Annotated[bool, typer.Option("--fold-case", help="Read all names in lower case.")]
MaxSeconds = Annotated[float, typer.Option(min=0.1, help="Stop grounding after this time.")]
MaxMemory = Annotated[int, typer.Option(min=64, help="Stop grounding at this many MB.")]
MaxRules = Annotated[int, typer.Option(min=1, help="Stop grounding at this many ground rules.")]
MaxNodes = Annotated[int, typer.Option(min=1, help="Refuse games with more joint moves than this in one step.")]
DEFAULT_NODES = limiting.NODES


def limits(max_seconds: float, max_memory: int, max_rules: int) -> limiting.Limits:
    return limiting.Limits(max_seconds, max_memory, max_rules)


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
