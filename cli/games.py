"""The command `games`: list the games of the library."""

import dataclasses
from typing import Annotated

import typer

from gdlx.cli import console
from gdlx.propnet import library

_SIZES = ("registers", "gates", "operations")


def games(
    context: typer.Context,
    sizes: Annotated[bool, typer.Option("--sizes", help="Also show the sizes of their propnets.")] = False,
) -> None:
    """List the games of the library and their parameters."""
    options = console.options(context)
    entries = [library.get(name) for name in library.names()]
    measured = _sizes(options, entries) if sizes else {}
    if options.json:
        console.emit({"games": [_as_json(game) | measured.get(game.name, {}) for game in entries]})
        return
    rows = []
    for game in entries:
        defaults = " ".join(f"{name}={parameter.default}" for name, parameter in game.parameters.items())
        numbers = [str(measured[game.name][name]) for name in _SIZES] if sizes else []
        rows.append((game.name, game.summary, defaults, *numbers))
    console.show_table(("game", "description", "parameters", *(_SIZES if sizes else ())), rows, _SIZES)


def _sizes(options: console.Options, entries: list[library.Game]) -> dict[str, dict[str, object]]:
    from gdlx.propnet import games
    from gdlx.propnet.circuits import measure

    measured = {}
    with console.progress(options, "compiling", len(entries)) as advance:
        for game in entries:
            all_sizes = measure.sizes(games.compile_game(game.name), always_count=True)
            measured[game.name] = {name: all_sizes[name] for name in _SIZES}
            advance(game.name)
    return measured


def _as_json(game: library.Game) -> dict[str, object]:
    parameters = {name: dataclasses.asdict(parameter) for name, parameter in game.parameters.items()}
    return {"name": game.name, "summary": game.summary, "parameters": parameters}
