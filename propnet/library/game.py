"""A game of the library: a name, its parameters, and a pure function that returns its rulesheet."""

import dataclasses
import re
from collections.abc import Callable, Mapping

from gdlx.propnet.common import errors

Value = int | str

_INTEGER = re.compile("-?[0-9]{1,18}")


class LibraryError(errors.UserError, ValueError):
    """Raised for a game, a parameter or a combination of parameters that the library does not have."""


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of a game: one of `choices` or, if those are None, an integer from `minimum` to `maximum`."""

    default: Value
    help: str
    choices: tuple[Value, ...] | None = None
    minimum: int = 0
    maximum: int = 0

    @property
    def allowed(self) -> str:
        """Describes the allowed values in words, for the end of a sentence.

        >>> Parameter(default=5, minimum=2, maximum=9, help="cards in a hand").allowed
        'an integer from 2 to 9'
        """
        if self.choices is None:
            return f"an integer from {self.minimum} to {self.maximum}"
        listed = [str(choice) for choice in self.choices]
        if len(listed) > 12:
            listed = [*listed[:3], "...", listed[-1]]
        return "one of " + ", ".join(listed)

    def read(self, text: str) -> Value | None:
        """Parses the text of a value; returns None if it is not allowed."""
        if self.choices is not None:
            return next((choice for choice in self.choices if str(choice) == text), None)
        if not _INTEGER.fullmatch(text):
            return None
        return int(text) if self.minimum <= int(text) <= self.maximum else None


@dataclasses.dataclass(frozen=True)
class Game:
    """A game of the library. `build` takes every parameter by name and returns the text of the rulesheet."""

    name: str
    summary: str
    build: Callable[..., str]
    parameters: Mapping[str, Parameter] = dataclasses.field(default_factory=dict)
