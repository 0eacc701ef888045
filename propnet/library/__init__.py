"""The games that come with gdlx: rulesheets written for gdlx, from the sources that their comments cite.

>>> print(text("rps:n=5").splitlines()[0])
; Rock-paper-scissors with 5 signs.
"""

from gdlx.propnet.common.text import suggestions
from gdlx.propnet.library import (
    battleship,
    connect_four,
    difference,
    game,
    goofspiel,
    gops,
    hidden_marks,
    hidden_stones,
    latent_tictactoe,
    leduc_poker,
    liars_dice,
    meier,
    oshi_zumo,
    princess_and_monster,
    racko,
    repeated_rps,
    rps,
    simultaneous_breakthrough,
    smallest,
    static,
)

Game = game.Game
LibraryError = game.LibraryError
Parameter = game.Parameter

__all__ = ["Game", "LibraryError", "Parameter", "get", "names", "parse_spec", "text"]

_GAMES = {
    entry.name: entry
    for entry in (
        *static.GAMES,
        *rps.GAMES,
        *hidden_marks.GAMES,
        *hidden_stones.GAMES,
        battleship.GAME,
        connect_four.GAME,
        difference.GAME,
        goofspiel.GAME,
        gops.GAME,
        latent_tictactoe.GAME,
        leduc_poker.GAME,
        liars_dice.GAME,
        meier.GAME,
        oshi_zumo.GAME,
        princess_and_monster.GAME,
        racko.GAME,
        repeated_rps.GAME,
        simultaneous_breakthrough.GAME,
        smallest.GAME,
    )
}


def names() -> tuple[str, ...]:
    """Lists the games of the library. It takes no arguments.

    Returns:
      The names of all games, sorted. Most games have parameters, which follow the name: `goofspiel:cards=4`.

    >>> import gdlx
    >>> "kuhn_poker" in gdlx.games()
    True
    """
    return tuple(sorted(_GAMES))


def get(name: str) -> Game:
    """Returns the game of that name; raises LibraryError if there is none."""
    if name in _GAMES:
        return _GAMES[name]
    close = suggestions.near_names(name, names())
    hint = f"did you mean {' or '.join(close)}?" if close else f"the library has {', '.join(names())}."
    raise LibraryError(f"There is no game {name!r} in the library: {hint}")


def parse_spec(spec: str) -> tuple[Game, dict[str, int | str]]:
    """Parses `name` or `name:parameter=value,...`; the returned settings have every parameter of the game.

    >>> goofspiel, settings = parse_spec("goofspiel:cards=4")
    >>> goofspiel.name, settings
    ('goofspiel', {'cards': 4, 'info': 'imperfect', 'order': 'ascending'})
    """
    name, colon, rest = spec.partition(":")
    chosen = get(name)
    settings = {key: parameter.default for key, parameter in chosen.parameters.items()}
    specified: set[str] = set()
    for item in rest.split(",") if colon else ():
        key, equals, value = (part.strip() for part in item.partition("="))
        if not (key and equals and value):
            raise LibraryError(f"In {spec!r}, {item!r} is not of the form parameter=value.")
        if key not in chosen.parameters:
            known = f"its parameters are {', '.join(settings)}" if settings else "it has none"
            raise LibraryError(f"In {spec!r}, {name} has no parameter {key!r}: {known}.")
        if key in specified:
            raise LibraryError(f"In {spec!r}, {key} is specified twice: keep one of them.")
        specified.add(key)
        parsed = chosen.parameters[key].read(value)
        if parsed is None:
            allowed = chosen.parameters[key].allowed
            raise LibraryError(f"In {spec!r}, {key} must be {allowed}, not {value!r}.")
        settings[key] = parsed
    return chosen, settings


def text(spec: str) -> str:
    """Returns the rulesheet of a game, with the parameters of the spec and defaults for the others."""
    chosen, settings = parse_spec(spec)
    return chosen.build(**settings)
