"""The games that come with gdlx: own rulesheets, written from the rules that their comments name.

>>> print(text("rps:n=5").splitlines()[0])
; Rock-paper-scissors with 5 signs.
"""

import difflib

from gdlx.propnet.library import (
    connect_four,
    game,
    goofspiel,
    gops,
    hidden_marks,
    latent_tictactoe,
    leduc_poker,
    liars_dice,
    meier,
    princess_and_monster,
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
    found.name: found
    for found in (
        *static.GAMES,
        *rps.GAMES,
        *hidden_marks.GAMES,
        connect_four.GAME,
        goofspiel.GAME,
        gops.GAME,
        latent_tictactoe.GAME,
        leduc_poker.GAME,
        liars_dice.GAME,
        meier.GAME,
        princess_and_monster.GAME,
        repeated_rps.GAME,
        simultaneous_breakthrough.GAME,
        smallest.GAME,
    )
}


def names() -> tuple[str, ...]:
    """The names of all games, sorted."""
    return tuple(sorted(_GAMES))


def get(name: str) -> Game:
    """The game of that name."""
    if name in _GAMES:
        return _GAMES[name]
    close = difflib.get_close_matches(name, names(), n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else f"the library has {', '.join(names())}."
    raise LibraryError(f"There is no game {name!r} in the library: {hint}")


def parse_spec(spec: str) -> tuple[Game, dict[str, int | str]]:
    """Read `name` or `name:parameter=value,...`; the settings returned hold every parameter of the game.

    >>> found, settings = parse_spec("goofspiel:cards=4")
    >>> found.name, settings
    ('goofspiel', {'cards': 4, 'info': 'imperfect', 'order': 'ascending'})
    """
    name, colon, rest = spec.partition(":")
    found = get(name)
    settings = {key: parameter.default for key, parameter in found.parameters.items()}
    given: set[str] = set()
    for item in rest.split(",") if colon else ():
        key, equals, value = (part.strip() for part in item.partition("="))
        if not (key and equals and value):
            raise LibraryError(f"In {spec!r}, {item!r} is not of the form parameter=value.")
        if key not in found.parameters:
            known = f"its parameters are {', '.join(settings)}" if settings else "it has none"
            raise LibraryError(f"In {spec!r}, {name} has no parameter {key!r}: {known}.")
        if key in given:
            raise LibraryError(f"In {spec!r}, {key} is given twice: keep one of them.")
        given.add(key)
        read = found.parameters[key].read(value)
        if read is None:
            allowed = found.parameters[key].allowed
            raise LibraryError(f"In {spec!r}, {key} must be {allowed}, not {value!r}.")
        settings[key] = read
    return found, settings


def text(spec: str) -> str:
    """The rulesheet of a game, with the parameters that the spec gives and the defaults of the others."""
    found, settings = parse_spec(spec)
    return found.build(**settings)
