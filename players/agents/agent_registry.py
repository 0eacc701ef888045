"""Agents by name: `NAME`, `NAME:option=value,option=value`, the path of a saved solution or of a policy file, or
`MODULE:CLASS` for a class of one's own.

`entries` lists the names. The options of an agent are the fields of its class.
"""

import dataclasses
import importlib
import pathlib
import re
import typing
from collections.abc import Mapping
from typing import Any, NamedTuple

from gdlx.players.agents import agent, entries, imported_agents
from gdlx.propnet.common import options
from gdlx.propnet.common.text import suggestions
from gdlx.propnet.syntax import diagnostics
from gdlx.solvers.runs import policy_files, result_folder

_NEXT = re.compile(r",(?=\s*\w+\s*=|\s*$)")  # option, so that paths may have commas


def make_agent(text: str) -> agent.Agent:
    """Builds an agent from text, as in `gdlx match`.

    Args:
      text: the name of an agent with or without options, the folder of a saved solution, a policy file, or
        `module:Class` with or without options.

    Returns:
      The agent; its name is the text.

    Raises:
      AgentError: unknown agent or option, or a value that the option does not take.

    >>> make_agent("random").name
    'random'
    >>> make_agent("uct:trees=8,iterations=100").trees
    8
    """
    name, _, arguments = text.partition(":")
    name = entries.RENAMED.get(name, name)
    if name == "network" and arguments:
        return _instantiate(text, _find_class(name), {"folder": arguments.removeprefix("folder=")})
    if name in entries.ENTRIES:
        kind = _find_class(name)
        return _instantiate(text, kind, _split(kind, arguments))
    path = pathlib.Path(text)
    if path.suffix.lower() in policy_files.SUFFIXES:
        return _instantiate(text, _find_class("fixed"), {"file": text})
    if text and (path / result_folder.CONFIG).exists():
        return _instantiate(text, _find_class("solution"), {"folder": text})
    if (imported := imported_agents.parse(text)) is not None:
        return _instantiate_imported(text, imported)
    if (text and path.is_dir()) or "/" in text or "\\" in text:
        problem = f"has no {result_folder.CONFIG}" if path.is_dir() else "does not exist"
        raise agent.AgentError(f"{text} is not a saved solution: the folder {problem}; create one with `gdlx solve`")
    near = suggestions.is_it(name, entries.ENTRIES)
    raise agent.AgentError(
        f"there is no agent {name!r}{near}; there are {', '.join(entries.ENTRIES)}, "
        "the folders that `gdlx solve` writes, and classes of your own as MODULE:CLASS"
    )


def describe_options(name: str) -> dict[str, str]:
    """The options of an agent by name, and the type of each in words.

    >>> describe_options("fixed")
    {'file': 'a text'}
    """
    return _find_class(name).describe()


class _AgentClass(NamedTuple):
    name: str  # in messages
    make: Any
    options: Mapping[str, "dataclasses.Field[Any]"]
    hints: Mapping[str, Any]

    def describe(self) -> dict[str, str]:
        return {option: options.describe_type(self.hints[option]) for option in self.options}


def _find_class(name: str) -> _AgentClass:
    entry = entries.ENTRIES[name]
    module = importlib.import_module(f"gdlx.players.agents.{entry.module}")
    return _agent_class(name, getattr(module, entry.class_name))


def _agent_class(name: str, agent_class: Any) -> _AgentClass:
    fields = {field.name: field for field in dataclasses.fields(agent_class) if field.init and field.name != "name"}
    return _AgentClass(name, agent_class, fields, typing.get_type_hints(agent_class))


def _instantiate_imported(text: str, name: imported_agents.ImportedName) -> agent.Agent:
    """Dataclasses with a field `name` may have options; other classes are called without arguments."""
    made = imported_agents.load_class(name)
    with imported_agents.explain_failures(name):
        if dataclasses.is_dataclass(made) and any(field.name == "name" for field in dataclasses.fields(made)):
            kind = _agent_class(f"{name.module}:{name.class_name}", made)
            return _instantiate(text, kind, _split(kind, name.options))
        if name.options:
            raise agent.AgentError(f"{text}: only a dataclass with the field `name: str` has options")
        return imported_agents.make_plain(made, text)


def _split(kind: _AgentClass, arguments: str) -> dict[str, str]:
    """The text of every option."""
    values: dict[str, str] = {}
    name, known = kind.name, kind.describe()
    renamed = entries.RENAMED_OPTIONS.get(name, {})
    last = ""
    for part in filter(None, _NEXT.split(arguments)):
        key, has_value, value = (piece.strip() for piece in part.partition("="))
        key = renamed.get(key, key)
        if key not in known and known.get(last) == options.describe_type(str):  # part of a path, not an option
            values[last] += f",{part}"
            continue
        if not has_value:
            raise agent.AgentError(f"{part!r} is not an option of {name}: write {name}:option=value,option=value")
        if key in values:
            raise agent.AgentError(f"the option {key} of {name} is specified twice")
        values[key], last = value, key
    return values


def _instantiate(text: str, kind: _AgentClass, texts: Mapping[str, str]) -> agent.Agent:
    name = kind.name
    known = f"its options: {', '.join(kind.options)}" if kind.options else "it has no options"
    values: dict[str, Any] = {}
    for key, value in texts.items():
        if key not in kind.options:
            raise agent.AgentError(f"{name} has no option {diagnostics.shorten(repr(key))}; {known}")
        try:
            values[key] = options.parse_value(value, kind.hints[key])
        except ValueError:
            takes, shown = options.describe_type(kind.hints[key]), diagnostics.shorten(repr(value))
            raise agent.AgentError(f"{key} of {name} takes {takes}, not {shown}; {known}") from None
    for field in kind.options.values():
        if field.name not in values and field.default is dataclasses.MISSING:
            raise agent.AgentError(f"{name} needs {field.name}: write {name}:{field.name}=..")
    instance: agent.Agent = kind.make(name=text, **values)
    return instance
