"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

from gdlx import cli, envs, experiments, nets, players, propnet, solvers
from gdlx.tests.helpers import paths

LAYERS = (propnet, envs, solvers, nets, players, experiments, cli)
MODULES = [
    module.name
    for layer in LAYERS
    for module in pkgutil.walk_packages(layer.__path__, f"{layer.__name__}.")
    if not module.ispkg and ">>>" in paths.module_file(module.name).read_text()
]


def test_there_are_examples() -> None:
    assert len(MODULES) > 40


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0
