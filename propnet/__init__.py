"""Compiles the text of a rulesheet to a propnet: parse, check, interpret, ground, build, simplify, emit.

Nothing in this package imports jax or depends on environments or solvers.
docs/development/architecture.md describes the files; `gdlx.propnet.library` has the games that come with gdlx.
"""

from typing import TYPE_CHECKING

from gdlx.propnet.common import lazy

if TYPE_CHECKING:
    from gdlx.propnet.checks.checker import CheckReport as CheckReport
    from gdlx.propnet.circuits.propnet import PropNet as PropNet
    from gdlx.propnet.circuits.propnet import Role as Role
    from gdlx.propnet.common.errors import UserError as UserError
    from gdlx.propnet.common.limits import Limits as Limits
    from gdlx.propnet.datalog.interpreter import Interpreter as Interpreter
    from gdlx.propnet.games import check_game as check
    from gdlx.propnet.games import check_game as check_game
    from gdlx.propnet.games import compile_game as compile  # noqa: A004 - as in jax
    from gdlx.propnet.games import compile_game as compile_game
    from gdlx.propnet.games import load_rulesheet as load_rulesheet
    from gdlx.propnet.io.files import load_propnet as load_propnet
    from gdlx.propnet.io.files import save_propnet as save_propnet
    from gdlx.propnet.symmetries.symmetries import Symmetries as Symmetries
    from gdlx.propnet.symmetries.symmetries import find_symmetries as find_symmetries
    from gdlx.propnet.syntax.diagnostics import Diagnostic as Diagnostic
    from gdlx.propnet.syntax.diagnostics import GdlError as GdlError
    from gdlx.propnet.syntax.rulesheet import Rulesheet as Rulesheet

_MODULES = {
    "CheckReport": "gdlx.propnet.checks.checker",
    "Diagnostic": "gdlx.propnet.syntax.diagnostics",
    "GdlError": "gdlx.propnet.syntax.diagnostics",
    "Interpreter": "gdlx.propnet.datalog.interpreter",
    "Limits": "gdlx.propnet.common.limits",
    "PropNet": "gdlx.propnet.circuits.propnet",
    "Role": "gdlx.propnet.circuits.propnet",
    "Rulesheet": "gdlx.propnet.syntax.rulesheet",
    "Symmetries": "gdlx.propnet.symmetries.symmetries",
    "UserError": "gdlx.propnet.common.errors",
    "check": "gdlx.propnet.games:check_game",
    "check_game": "gdlx.propnet.games",
    "compile": "gdlx.propnet.games:compile_game",
    "compile_game": "gdlx.propnet.games",
    "find_symmetries": "gdlx.propnet.symmetries.symmetries",
    "load_propnet": "gdlx.propnet.io.files",
    "load_rulesheet": "gdlx.propnet.games",
    "save_propnet": "gdlx.propnet.io.files",
}
__all__ = [
    "CheckReport",
    "Diagnostic",
    "GdlError",
    "Interpreter",
    "Limits",
    "PropNet",
    "Role",
    "Rulesheet",
    "Symmetries",
    "UserError",
    "check",
    "check_game",
    "compile",
    "compile_game",
    "find_symmetries",
    "load_propnet",
    "load_rulesheet",
    "save_propnet",
]
__getattr__, __dir__ = lazy.attach(__name__, _MODULES)
