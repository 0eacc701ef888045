"""Agents by name: `NAME`, `NAME:option=value,option=value`, or the path of a saved solution or of a policy file.

`entries` lists the names; options are the fields of an agent's class.
"""

import dataclasses
import difflib
import importlib
import math
import pathlib
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from gdlx.players import agent, entries
from gdlx.solvers import results

_FILES = (".csv", ".json")
_Values = str | int | float | bool | None


def find(text: str) -> agent.Agent:
    """
    >>> find("random").name
    'random'
    """
    name, _, options = text.partition(":")
    if name == "net" and options and "=" not in options.partition(",")[0].partition("/")[0]:
        return _made(text, name, {"folder": options})
    if name in entries.ENTRIES:
        return _made(text, name, _split(name, options))
    path = pathlib.Path(text)
    if path.suffix.lower() in _FILES:
        return _made(text, "fixed", {"file": text})
    if text and (path / results.CONFIG).exists():
        return _made(text, "solution", {"folder": text})
    if (text and path.is_dir()) or "/" in text or "\\" in text:
        what = f"has no {results.CONFIG}" if path.is_dir() else "is not there"
        raise agent.WrongAgent(f"{text} is no saved solution: the folder {what}; make one with `gdlx solve`")
    near = " or ".join(difflib.get_close_matches(name, entries.ENTRIES, n=2, cutoff=0.5))
    raise agent.WrongAgent(
        f"there is no agent {name!r}{f' (is it {near}?)' if near else ''}; there are {', '.join(entries.ENTRIES)}, "
        "and the folders that `gdlx solve` makes"
    )


def options_of(name: str) -> dict[str, str]:
    """The options of an agent, and what each takes.

    >>> options_of("fixed")
    {'file': 'a text'}
    """
    kind = _kind(name)
    return {option: _takes(kind.hints[option]) for option in kind.options}


class _Kind(NamedTuple):
    make: Any
    options: Mapping[str, "dataclasses.Field[Any]"]
    hints: Mapping[str, Any]


def _kind(name: str) -> _Kind:
    entry = entries.ENTRIES[name]
    module = importlib.import_module(f"gdlx.players.{entry.module}")
    found = getattr(module, entry.kind)
    fields = {field.name: field for field in dataclasses.fields(found) if field.init and field.name != "name"}
    return _Kind(found, fields, typing.get_type_hints(found))


def _split(name: str, options: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in filter(None, options.split(",")):
        key, has_value, value = (piece.strip() for piece in part.partition("="))
        if not has_value:
            raise agent.WrongAgent(f"{part!r} is no option of {name}: write {name}:option=value,option=value")
        if key in found:
            raise agent.WrongAgent(f"{name} is given its option {key} twice")
        found[key] = value
    return found


def _made(text: str, name: str, given: Mapping[str, str]) -> agent.Agent:
    kind = _kind(name)
    known = f"its options: {', '.join(kind.options)}" if kind.options else "it has no options"
    values: dict[str, _Values] = {}
    for key, value in given.items():
        if key not in kind.options:
            raise agent.WrongAgent(f"{name} has no option {key!r}; {known}")
        try:
            values[key] = _value(value, kind.hints[key])
        except ValueError:
            takes = _takes(kind.hints[key])
            raise agent.WrongAgent(f"{key} of {name} takes {takes}, not {value!r}; {known}") from None
    for field in kind.options.values():
        if field.name not in values and field.default is dataclasses.MISSING:
            raise agent.WrongAgent(f"{name} needs {field.name}: write {name}:{field.name}=..")
    found: agent.Agent = kind.make(name=text, **values)
    return found


def _alternatives(hint: Any) -> list[Any]:
    """Those of `int | None` and the like, without None."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return [part for part in typing.get_args(hint) if part is not type(None)]
    return [hint]


def _value(text: str, hint: Any) -> _Values:
    (kind,) = _alternatives(hint)
    is_choice = typing.get_origin(kind) is Literal
    named = {choice: choice for choice in typing.get_args(kind)} if is_choice else {"true": True, "false": False}
    if is_choice or kind is bool:
        if text not in named:
            raise ValueError(text)
        return named[text]
    if kind is float and not math.isfinite(float(text)):
        raise ValueError(text)
    value: _Values = kind(text)
    return value


_TAKES = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def _takes(hint: Any) -> str:
    (kind,) = _alternatives(hint)
    return " or ".join(typing.get_args(kind)) if typing.get_origin(kind) is Literal else _TAKES[kind]
