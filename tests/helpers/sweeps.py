"""Shared by tests of sweeps."""

import csv
import pathlib
from typing import Any

from gdlx.experiments.sweeps import config

GRID: dict[str, Any] = {
    "games": ["kuhn_poker", "smallest:numbers=3,steps=1"],
    "iterations": 30,
    "seeds": 2,
    "algorithms": [
        {"name": "dcfr", "alpha": [1.0, 1.5], "gamma": [1.0, 2.0]},
        {"name": "cfr+", "simultaneous": [False, True]},
        {"name": "os-mccfr", "batch": 16, "exploration": [0.3, 0.6]},
        {"name": "es-mccfr", "batch": 8},
    ],
}


def make_sweep(actual: dict[str, Any]) -> config.Sweep:
    return config.Sweep("test", config.expand_cells(actual))


def rows(path: pathlib.Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def without_times(path: pathlib.Path) -> list[dict[str, str]]:
    return [{name: text for name, text in row.items() if name != "seconds"} for row in rows(path)]
