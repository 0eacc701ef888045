"""Parses option values from text, according to the type of the field they are for."""

import math
import types
import typing
from typing import Any, Literal

_TAKES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_MANY = {int: "whole numbers", float: "numbers", str: "texts"}


def parse_value(text: str, hint: Any) -> Any:
    """Parses text as a value of the type `hint`; raises ValueError if it is not one.

    >>> parse_value("128, 64", tuple[int, ...]), parse_value("0.5", float | None)
    ((128, 64), 0.5)
    """
    kind = _kind(hint)
    origin = typing.get_origin(kind)
    if origin is tuple:
        return _values(text, typing.get_args(kind))
    named = _named(kind)
    if named is not None:
        if text not in named:
            raise ValueError(text)
        return named[text]
    if kind is float and not math.isfinite(float(text)):
        raise ValueError(text)
    return kind(text)


def format_value(value: Any) -> str:
    """Formats a value so that `parse_value` returns it.

    >>> format_value(True), format_value([128, 64]), format_value(0.5)
    ('true', '128,64', '0.5')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(format_value, value)) if isinstance(value, list | tuple) else str(value)


def describe_type(hint: Any) -> str:
    """Describes a type in words.

    >>> describe_type(tuple[int, ...]), describe_type(Literal["mlp", "residual"])
    ('whole numbers with commas between', 'mlp or residual')
    """
    kind = _kind(hint)
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        count = "" if parts[-1] is ... else f"{len(parts)} "
        return f"{count}{_MANY[parts[0]]} with commas between"
    return " or ".join(parts) if origin is Literal else _TAKES[kind]


def _kind(hint: Any) -> Any:
    """The member of a union such as `int | None` that is not None."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        (hint,) = (part for part in typing.get_args(hint) if part is not type(None))
    return hint


def _named(kind: Any) -> dict[str, Any] | None:
    if typing.get_origin(kind) is Literal:
        return {choice: choice for choice in typing.get_args(kind)}
    return {"true": True, "false": False} if kind is bool else None


def _values(text: str, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    parts = [part.strip() for part in text.split(",")]
    if kinds[-1] is ...:
        kinds = (kinds[0],) * len(parts)
    if len(parts) != len(kinds):
        raise ValueError(text)
    return tuple(parse_value(part, kind) for part, kind in zip(parts, kinds, strict=True))
