"""The command `show`: the rules of a game, a random match, why an atom holds, or the propnet as a drawing."""

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
        typer.Option(metavar="ATOM", help="Explain why an atom holds or not, e.g. '(legal x noop)'."),
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option(metavar="MOVES", help="With --why: after this joint move, in role order; may be repeated."),
    ] = None,
    play: Annotated[bool, typer.Option("--play", help="Show one match of random moves (see --seed).")] = False,
    dot: Annotated[bool, typer.Option("--dot", help="Print the network as Graphviz text.")] = False,
    *,
    compiling: shared_options.Compiling,
) -> None:
    """Print the rules of a game, its network, a random match, or why something holds in it."""
    given = console.options(context)
    if after and why is None:
        raise typer.BadParameter("--after goes with --why")
    if (why is not None) + play + dot > 1:
        raise typer.BadParameter("--why, --play and --dot are three different answers; ask for one")
    if dot:
        from gdlx.propnet.io import dot as drawing

        net = loading.load_propnet(given, game, compiling.gdl, compiling.fold_case, compiling.limits)
        text = drawing.to_dot(net)
        _answer(given, {"game": game, "dot": text}, text.rstrip("\n").splitlines())
        return
    source = games.find_source(game)
    if why is None and not play:
        _answer(given, {"game": game, "text": source.text}, source.text.rstrip("\n").splitlines())
        return
    sheet = checker.check(source, fold_case=compiling.fold_case, gdl=compiling.gdl).require_usable()
    rules = interpreter.Interpreter(sheet)
    if why is not None:
        lines = explain.explain_atom(rules, why, after or [])
        _answer(given, {"game": game, "why": lines}, lines)
    else:
        lines = list(transcript.random_match(rules, given.seed))
        _answer(given, {"game": game, "match": lines}, lines)


def _answer(given: console.Options, result: dict[str, object], lines: list[str]) -> None:
    if given.json:
        console.emit(result)
    else:
        console.say(*lines)
