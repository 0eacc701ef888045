"""One-line reprs of objects with many fields: only what differs from the defaults, and shortened."""

import dataclasses
import reprlib
from typing import Any

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 40


def show_changes(value: Any) -> str:
    """Shows a dataclass or named tuple with those fields that are not at their defaults.

    Args:
      value: an instance of a class whose `__repr__` this may be.

    >>> from typing import NamedTuple
    >>> class Run(NamedTuple):
    ...     game: str
    ...     iterations: int = 1_000
    ...     seed: int = 0
    >>> show_changes(Run("rps", seed=3))
    "Run(game='rps', seed=3)"
    """
    defaults = {name: _SHORT.repr(default) for name, default in _defaults(type(value)).items()}
    names = [f.name for f in dataclasses.fields(value) if f.repr] if dataclasses.is_dataclass(value) else value._fields
    shown = {name: _SHORT.repr(getattr(value, name)) for name in names}
    changed = ", ".join(f"{name}={text}" for name, text in shown.items() if defaults.get(name) != text)
    return f"{type(value).__name__}({changed})"


def _defaults(kind: type) -> dict[str, Any]:
    if not dataclasses.is_dataclass(kind):
        return dict(getattr(kind, "_field_defaults", {}))
    factories = {f.name: f.default_factory for f in dataclasses.fields(kind)}
    made = {name: factory() for name, factory in factories.items() if factory is not dataclasses.MISSING}
    given = {f.name: f.default for f in dataclasses.fields(kind) if f.default is not dataclasses.MISSING}
    return made | given
