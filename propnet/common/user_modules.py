"""Modules of users, imported by name: from the current folder first, then from Python's path."""

import contextlib
import importlib
import os
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

from gdlx.propnet.common import errors
from gdlx.propnet.common.text import printable

_NAME = re.compile(r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*):(?P<attribute>[^\W\d]\w*)(?::(?P<options>.*))?", re.DOTALL)
_LONGEST = 300  # characters of the message of somebody else's error


class QualifiedName(NamedTuple):
    """The parts of `package.module:attribute:options`."""

    module: str
    attribute: str
    options: str


def parse(text: str) -> QualifiedName | None:
    """Returns the parts of a name; None if the text is none.

    >>> parse("my_policies.bold:bluff")
    QualifiedName(module='my_policies.bold', attribute='bluff', options='')
    >>> parse("policy.csv")
    """
    match = _NAME.fullmatch(text)
    return None if match is None else QualifiedName(match["module"], match["attribute"], match["options"] or "")


def import_module(name: str, kind: str, error_type: type[errors.UserError]) -> ModuleType:
    """Imports a module; raises an error of the type, which calls what it should contain by its kind."""
    try:
        with _current_folder_first():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise error_type(
                f"the module {name} cannot be imported: it needs {error.name}, which is not there"
            ) from error
        raise error_type(
            f"there is no {kind} and no module {error.name!r}: {error.name.replace('.', os.sep)}.py is neither in the "
            "current folder nor on Python's path"
        ) from None
    except (Exception, SystemExit) as error:  # it is the code of somebody else, which may do anything
        raise error_type(f"the module {name} cannot be imported: {describe(error)}") from error


def describe(error: BaseException) -> str:
    """Returns the type and the message of somebody else's error, safe to print.

    >>> describe(KeyError("card"))
    "KeyError: 'card'"
    """
    return printable.printable(f"{type(error).__name__}: {error}")[:_LONGEST]


@contextlib.contextmanager
def _current_folder_first() -> Iterator[None]:
    """The current folder is searched first, and later last: what the module imports while it runs is found, too."""
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
        if here not in sys.path:
            sys.path.append(here)
