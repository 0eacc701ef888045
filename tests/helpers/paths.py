"""Folders that tests read from."""

import os
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
# Sheets by other authors, which are no part of the project; own sheets cover the same without them.
CORPUS = pathlib.Path(os.environ.get("GDLX_CORPUS", ROOT.parent / "shared" / "gdl" / "corpus"))
