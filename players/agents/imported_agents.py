"""Agents of other people's modules, named `module:Class`, as in `gdlx match kuhn_poker my_agent:MyAgent random`."""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

from gdlx.players.agents import agent
from gdlx.propnet.common import user_modules
from gdlx.propnet.common.text import suggestions


class ImportedName(NamedTuple):
    """The parts of `package.module:Class:option=value`."""

    module: str
    class_name: str
    options: str


def parse(text: str) -> ImportedName | None:
    """Returns the parts of the name of an imported agent; None if the text is none.

    >>> parse("my_agents.bold:Bold:cards=3")
    ImportedName(module='my_agents.bold', class_name='Bold', options='cards=3')
    >>> parse("mccfr:seconds=1")
    """
    name = user_modules.parse(text)
    return None if name is None else ImportedName(*name)


def load_class(name: ImportedName) -> type:
    """Imports the class of an agent, from the current folder or Python's path.

    Raises:
      AgentError: there is no such module or class, the module fails, or the class is not that of an agent.
    """
    module = user_modules.import_module(name.module, "agent", agent.AgentError)
    member = getattr(module, name.class_name, None)
    agents = [key for key, value in vars(module).items() if _is_agent_class(value)]
    if member is None:
        near = suggestions.near_names(name.class_name, agents, most=1) or agents[:3]
        there = f"there is {', '.join(near)}" if near else "there is no agent in it"
        raise agent.AgentError(f"{name.module} has no class {name.class_name}; {there}")
    if not isinstance(member, type) or not _is_agent_class(member):
        what = "has no method `start_match(context, clock)`" if isinstance(member, type) else "is not a class"
        raise agent.AgentError(f"{name.module}:{name.class_name} is not an agent: it {what}")
    return member


def make_plain(agent_class: type, text: str) -> agent.Agent:
    """Makes an agent of a class without options, and names it."""
    instance = agent_class()
    object.__setattr__(instance, "name", text)
    return instance  # type: ignore[no-any-return]


@contextlib.contextmanager
def explain_failures(name: ImportedName) -> Iterator[None]:
    """Turns whatever the constructor of a class raises into an AgentError."""
    try:
        yield
    except agent.AgentError:
        raise
    except Exception as error:
        what = user_modules.describe(error)
        raise agent.AgentError(f"{name.module}:{name.class_name} cannot be made: {what}") from error


def _is_agent_class(value: object) -> bool:
    return isinstance(value, type) and callable(getattr(value, "start_match", None))
