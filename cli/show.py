"""The command `show`: the rules of a game, a random match, why an atom holds, or the propnet as a graph."""

from typing import Annotated

import typer

from gdlx.cli import console, loading, shared_options
from gdlx.propnet import games
from gdlx.propnet.checks import checker
from gdlx.propnet.datalog import explain, interpreter, transcript


def show(
    context: typer.Context,
    game: shared_options.Game,
    why: Annotated[
        str | None,
        typer.Option(metavar="ATOM", help="Explain why an atom holds or does not hold, e.g. '(legal x noop)'."),
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MOVES",
            help="With --why: after this joint action, in role order; may be repeated.",
        ),
    ] = None,
    play: Annotated[bool, typer.Option("--play", help="Print a match of random moves (see --seed).")] = False,
    dot: Annotated[bool, typer.Option("--dot", help="Print the propnet as a Graphviz graph.")] = False,
    *,
    compiling: shared_options.Compiling,
) -> None:
    """Print the rules of a game, its propnet, a random match, or why an atom holds."""
    options = console.options(context)
    if after and why is None:
        raise typer.BadParameter("--after needs --why")
    if (why is not None) + play + dot > 1:
        raise typer.BadParameter("--why, --play and --dot exclude each other; use one of them")
    if dot:
        from gdlx.propnet.io import dot as drawing

        propnet = loading.load_propnet(options, game, compiling.gdl, compiling.fold_case, compiling.limits)
        text = drawing.to_dot(propnet)
        _print(options, {"game": game, "dot": text}, text.rstrip("\n").splitlines())
        return
    source = games.find_source(game)
    if why is None and not play:
        _print(options, {"game": game, "text": source.text}, source.text.rstrip("\n").splitlines())
        return
    sheet = checker.check(source, fold_case=compiling.fold_case, gdl=compiling.gdl).require_usable()
    rules = interpreter.Interpreter(sheet)
    if why is not None:
        lines = explain.explain_atom(rules, why, after or [])
        _print(options, {"game": game, "why": lines}, lines)
    else:
        lines = list(transcript.random_match(rules, options.seed))
        _print(options, {"game": game, "match": lines}, lines)


def _print(options: console.Options, result: dict[str, object], lines: list[str]) -> None:
    if options.json:
        console.emit(result)
    else:
        console.say(*lines)
