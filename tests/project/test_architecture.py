"""docs/development/architecture.md names every module of the layers below the command line."""

import ast
import pathlib
import re

import pytest

from gdlx.tests.helpers import paths

_LAYERS = ("propnet", "envs", "solvers", "nets", "players")
_LISTED_ELSEWHERE = ("propnet/library", "propnet/circuits/passes")  # a game, a pass a file


@pytest.mark.parametrize("layer", _LAYERS)
def test_every_module_is_named(layer: str) -> None:
    text = (paths.ROOT / "docs" / "development" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:[\w/]+/)?(\w+)(?:\.py)?`", text))
    modules = [path for path in (paths.ROOT / layer).rglob("*.py") if path.stem != "__init__"]
    listed = [path for path in modules if not path.relative_to(paths.ROOT).as_posix().startswith(_LISTED_ELSEWHERE)]
    assert len(listed) > 10
    assert [str(path.relative_to(paths.ROOT)) for path in sorted(listed) if path.stem not in named] == []


def test_named_folders_exist() -> None:
    text = (paths.ROOT / "docs" / "development" / "architecture.md").read_text(encoding="utf-8")
    files = re.findall(r"`((?:propnet|envs|solvers|nets|players|experiments|cli)/[\w/]+\.py)`", text)
    assert len(files) > 15
    assert [name for name in files if not pathlib.Path(paths.ROOT, name).exists()] == []


def test_sub_packages_export_nothing() -> None:
    """Names are public in packages only. `propnet.library` is a stage of its own: the games and how they are found."""
    packages = [
        path.parent
        for layer in (*_LAYERS, "experiments", "cli")
        for path in (paths.ROOT / layer).rglob("*/__init__.py")
    ]
    inner = [package for package in packages if package != paths.ROOT / "propnet" / "library"]
    assert len(inner) > 20
    for package in inner:
        tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), package
        assert len(tree.body) == 1, package
