"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

from gdlx import cli, envs, experiments, nets, players, propnet, solvers

ROOMS = (propnet, envs, solvers, nets, players, experiments, cli)
MODULES = ["gdlx"] + [
    module.name
    for room in ROOMS
    for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
