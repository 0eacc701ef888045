"""Folders that tests read."""

import os
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
# Rulesheets by other authors, which are not part of the project; our own cover the same without them.
CORPUS = pathlib.Path(os.environ.get("GDLX_CORPUS", ROOT.parent / "shared" / "gdl" / "corpus"))


def module_file(name: str) -> pathlib.Path:
    """The file of a module.

    >>> module_file("gdlx.envs.env") == ROOT / "envs" / "env.py"
    True
    """
    return ROOT.joinpath(*name.split(".")[1:]).with_suffix(".py")
