"""Public names of packages, imported when they are first used: `import gdlx` and `gdlx check` load no JAX."""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def attach(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package that exports names of other modules.

    Args:
      package: its `__name__`.
      modules: for every public name, the module that defines it; `module:name` where it has another name there, and
        `module:` for the module itself.

    Returns:
      The two functions, to be assigned at the top level of the package.

    >>> get, names = attach("gdlx", {"make_agent": "gdlx.players.agents.agent_registry"})
    >>> names()
    ['__version__', 'make_agent']
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        path, has_other_name, symbol = modules[name].partition(":")
        module = importlib.import_module(path)
        value = module if has_other_name and not symbol else getattr(module, symbol or name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        version = {"__version__"} & set(vars(sys.modules[package]))
        return sorted({*modules, *version})

    return get, names
