"""`gdlx games`: what the library holds."""

import dataclasses

import typer

from gdlx.cli import console
from gdlx.propnet import library


def games(context: typer.Context) -> None:
    """List the games of the library and their parameters."""
    found = [library.get(name) for name in library.names()]
    if console.options(context).json:
        console.emit({"games": [_as_json(game) for game in found]})
        return
    import rich.table

    table = rich.table.Table("game", "what it is", "parameters", box=None, pad_edge=False)
    for game in found:
        defaults = " ".join(f"{name}={parameter.default}" for name, parameter in game.parameters.items())
        table.add_row(game.name, game.summary, defaults)
    console.show(table)


def _as_json(game: library.Game) -> dict[str, object]:
    parameters = {name: dataclasses.asdict(parameter) for name, parameter in game.parameters.items()}
    return {"name": game.name, "summary": game.summary, "parameters": parameters}
