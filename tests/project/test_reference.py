"""The public API: every name is importable, documented and in the reference, which is as the docstrings are."""

import ast
import importlib
import importlib.util
import inspect
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

import gdlx
from gdlx.tests.helpers import paths

GENERATOR = paths.ROOT / "docs" / "generate_reference.py"


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_reference", GENERATOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = _generator()
SYMBOLS = {f"{package}.{name}": value for package, name, value in GENERATE.public_symbols()}


@pytest.mark.parametrize("page", ["api", "cli"])
def test_the_reference_is_up_to_date(page: str) -> None:
    text = GENERATE.api() if page == "api" else GENERATE.command_line()
    written = (paths.ROOT / "docs" / "reference" / f"{page}.md").read_text()
    assert written == text, "run `make reference`"


def test_every_public_name_is_in_the_reference() -> None:
    written = (paths.ROOT / "docs" / "reference" / "api.md").read_text()
    assert [name for name in SYMBOLS if f"### `{name}`" not in written] == []


@pytest.mark.parametrize("name", SYMBOLS)
def test_a_public_name_is_documented(name: str) -> None:
    value = SYMBOLS[name]
    doc = inspect.getdoc(value)
    assert doc
    if inspect.isfunction(value):
        for parameter in inspect.signature(value).parameters.values():
            assert f"{parameter.name}:" in doc or parameter.kind is parameter.VAR_KEYWORD, parameter.name
        assert "Args:" in doc or not inspect.signature(value).parameters


# In the docstring of the class itself: one that it inherits would show another class.
@pytest.mark.parametrize("name", [name for name in SYMBOLS if callable(SYMBOLS[name])])
def test_a_public_name_has_an_example(name: str) -> None:
    assert ">>>" in (SYMBOLS[name].__doc__ or "")


@pytest.mark.parametrize("name", [name for name in gdlx.__all__ if inspect.isfunction(getattr(gdlx, name))])
def test_the_example_of_a_function_of_gdlx_calls_it_so(name: str) -> None:
    assert f"gdlx.{name}(" in (getattr(gdlx, name).__doc__ or "").partition(">>>")[2]


@pytest.mark.parametrize("package", GENERATE.PACKAGES)
def test_type_checkers_see_the_same_names(package: str) -> None:
    module = importlib.import_module(package)
    tree = ast.parse(inspect.getsource(module))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    imported = {
        alias.asname: f"{node.module}{'' if alias.name == alias.asname else ':' + alias.name}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    declared: dict[str, Any] = {
        name: "gdlx" if where.endswith(":") else where for name, where in vars(module)["_MODULES"].items()
    }
    assert imported == declared


def test_importing_gdlx_is_light() -> None:
    show = "import gdlx, sys; dir(gdlx); print(sorted({'jax', 'numpy', 'clingo'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_unknown_names_are_refused_as_python_does() -> None:
    with pytest.raises(AttributeError, match=r"module 'gdlx\.envs' has no attribute 'nonsense'"):
        importlib.import_module("gdlx.envs").nonsense  # noqa: B018
