"""Imports go one way: propnet <- envs <- solvers <- nets <- players <- experiments <- cli."""

import ast
import pathlib
from collections.abc import Iterator

import pytest

from gdlx.tests.helpers import paths

ROOT = paths.ROOT
LAYERS = ("propnet", "envs", "solvers", "nets", "players", "experiments", "cli")
FILES = sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))


def imports(tree: ast.AST) -> Iterator[str]:
    """The dotted names a module imports, anywhere in it; a relative import keeps its dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from (f"{module}.{name.name}" for name in node.names)


def violations(layer: str, text: str) -> list[str]:
    """The imports that a module of a layer must not have."""
    allowed = {*LAYERS[: LAYERS.index(layer) + 1], "__version__"}
    wrong = []
    for name in imports(ast.parse(text)):
        parts = name.split(".")
        if (
            name.startswith(".")
            or (parts[0] == "gdlx" and len(parts) > 1 and parts[1] not in allowed)
            or parts[0] in LAYERS
            or (layer == "propnet" and parts[0] in ("jax", "jaxlib", "flax", "optax", "chex"))
        ):
            wrong.append(name)
    return wrong


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_its_layer_and_those_below(path: pathlib.Path) -> None:
    assert violations(path.relative_to(ROOT).parts[0], path.read_text()) == []


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        ("propnet", "import gdlx.envs"),
        ("propnet", "from gdlx import solvers"),
        ("propnet", "def f():\n    import jax.numpy"),
        ("envs", "from gdlx.solvers.exact import cfr"),
        ("experiments", "from gdlx import cli"),
        ("cli", "from . import console"),
        ("cli", "from propnet import source"),
    ],
)
def test_a_forbidden_import_is_detected(layer: str, text: str) -> None:
    assert violations(layer, text)


def test_every_folder_with_code_is_a_layer() -> None:
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} == set(LAYERS)


def test_the_top_level_has_no_other_module() -> None:
    assert [path.name for path in ROOT.glob("*.py")] == ["__init__.py"]


def _reached(start: str) -> set[str]:
    """The modules of propnet that one of them imports, directly or indirectly."""
    reached, work = {start}, [start]
    while work:
        for name in imports(ast.parse((ROOT / "propnet" / f"{work.pop()}.py").read_text())):
            module = name.removeprefix("gdlx.propnet.").replace(".", "/")
            if module not in reached and (ROOT / "propnet" / f"{module}.py").exists():
                reached.add(module)
                work.append(module)
    return reached


def test_the_interpreter_and_the_compiler_share_no_analysis_of_the_rules() -> None:
    """So that comparing them can reveal an error in either."""
    judge, compiler = _reached("datalog/interpreter"), _reached("circuits/compiler")
    assert {"datalog/stratify", "grounding/ground", "circuits/build"} <= compiler
    assert "datalog/interpreter" not in compiler
    text = ("diagnostics", "ground_terms", "infix", "kif", "parser", "rulesheet", "source", "terms")
    assert judge & compiler == {
        *(
            "datalog/program",
            "datalog/joins",
            "datalog/safety",
            "common/graphs",
        ),  # evaluation and rewriting of any rules
        *(f"syntax/{module}" for module in text),
        *(f"common/{module}" for module in ("errors", "bounded_files", "limits", "deadlines")),
        "common/text/plurals",
        "common/text/printable",  # nothing about rules
    }
    assert judge - compiler == {"datalog/interpreter"}
