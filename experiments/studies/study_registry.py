"""Published studies reproduced, and studies of our own: `gdlx experiment NAME`.

A study NAME is the folder `experiments/studies/NAME` with a README.md and a module `study` that has

    MINUTES, FULL_MINUTES                  how long it takes on two cores, by default and if `is_full`
    run(setting) -> Iterator[StudyTable]   yields each table as soon as it is complete

A study caches everything that takes long in the folder of its setting; if it is interrupted, the next call resumes.

What a full run changes, other than its time:

    batch_size        20 seeds instead of 3
    blind_tictactoe   an hour of sampling for each game instead of ten minutes; the publication had 40 hours
    cfr_convergence   ten times the iterations
    exploitation      UCT searches four times as long
    fastest           19 seconds for each algorithm on each game instead of 4
    growth            two larger games, and twice the time for each measurement
    head_to_head      agents think four times as long, in as many games
    hyperparameters   the games that the thesis has, which are larger; 20 seeds instead of 8; batches of 4 096
    information_sets  30 seconds for each position, as published
    modified_rps      ten times the iterations

So a full run is in general not as large as the published one; README.md of each study says how they differ.
"""

import dataclasses
import importlib
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from gdlx.propnet.common import errors
from gdlx.propnet.common.text import suggestions

STUDIES = {
    "batch_size": "batch sizes of outcome sampling: speed against staleness",
    "blind_tictactoe": "openings, value and bound of three blind tic-tac-toes, beside a search of 40 hours each",
    "cfr_convergence": "how fast CFR converges in three games of simultaneous moves, beside Shafiei Khadem (2010)",
    "exploitation": "what exploiting a model of the opponent wins and risks, beside Shafiei Khadem (2010)",
    "fastest": "which algorithm first reaches an exploitability of 1e-3 and 1e-6 of the payoff range, on ten games",
    "growth": "what an iteration and unrolling cost as games grow by six orders of magnitude",
    "head_to_head": "random, MCCFR and online players against each other, beside West (2024), Schlindenbuch (2019)",
    "hyperparameters": "settings of CFR and of outcome sampling, one at a time, beside those of Schlindenbuch (2019)",
    "information_sets": "histories that agree with what a player saw in three games, beside Richards (2012)",
    "modified_rps": "how searches find the equilibrium of a biased rock-paper-scissors, beside West (2024)",
}


class UnknownStudyError(errors.UserError, ValueError):
    """There is no study of this name."""


class StudyTable(NamedTuple):
    """A table of results, as text and as data."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    data: object  # can be encoded as JSON


@dataclasses.dataclass(frozen=True)
class StudyConfig:
    """How a study runs."""

    folder: pathlib.Path  # of its results
    minutes: float  # time for the whole study
    seed: int = 0
    games: int = 1_000  # per pairing of agents
    report: Callable[[str], None] = lambda note: None  # called with notes on the progress
    is_full: bool = False  # a longer run: the docstring of this module says what it changes


class Study(Protocol):
    """The module `study` of a study."""

    MINUTES: float
    FULL_MINUTES: float

    def run(self, setting: StudyConfig) -> Iterator[StudyTable]: ...


def load_study(name: str) -> Study:
    """Imports a study.

    >>> load_study("modified_rps").MINUTES
    2.0
    """
    if name not in STUDIES:
        near = suggestions.is_it(name, STUDIES, most=1)
        raise UnknownStudyError(f"there is no study {name!r}{near}; there are {', '.join(STUDIES)}")
    study: Study = importlib.import_module(f"gdlx.experiments.studies.{name}.study")
    return study
