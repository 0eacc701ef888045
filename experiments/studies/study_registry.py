"""Published studies done again, ours beside theirs: `gdlx experiment NAME`.

A study NAME is the folder `experiments/NAME` with a README.md and a module `study` that has

    MINUTES, FULL_MINUTES               how long it takes on two cores, by default and at its original size
    run(setting) -> Iterator[Table]     each table as soon as it is known

Everything that takes long is kept in the setting's folder: started again, a study goes on where it was stopped.
"""

import dataclasses
import difflib
import importlib
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from gdlx.propnet.common import errors

STUDIES = {
    "batch_size": "how many trajectories of outcome sampling to draw at once: speed against staleness",
    "blind_tictactoe": "openings, value and bound of three blind tic-tac-toes, beside a search of 40 hours each",
    "cfr_convergence": "how fast CFR converges in three games of simultaneous moves, beside Shafiei Khadem (2010)",
    "exploitation": "what trusting a model of the opponent wins and risks, beside Shafiei Khadem (2010)",
    "fastest": "which algorithm is first at 1e-3 and 1e-6 of the payoff range, on ten games",
    "growth": "what an iteration and unrolling cost as games grow by six orders of magnitude",
    "head_to_head": "random, sampled, online players against each other, beside West (2024) and Schlindenbuch (2019)",
    "hyperparameters": "settings of CFR and of outcome sampling, one at a time, beside those of Schlindenbuch (2019)",
    "modified_rps": "how searches find the equilibrium of a biased rock-paper-scissors, beside West (2024)",
}


class UnknownStudyError(errors.UserError, ValueError):
    pass


class StudyTable(NamedTuple):
    """What a study found: texts for people, and the same as data."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    data: object


@dataclasses.dataclass(frozen=True)
class StudyConfig:
    """`minutes` is for all of a study; `report` hears how it goes."""

    folder: pathlib.Path
    minutes: float
    seed: int = 0
    games: int = 1_000  # of every pairing
    report: Callable[[str], None] = lambda note: None
    is_full: bool = False  # larger than the default time allows, in the way that the README of the study says


class Study(Protocol):
    MINUTES: float
    FULL_MINUTES: float

    def run(self, setting: StudyConfig) -> Iterator[StudyTable]: ...


def load_study(name: str) -> Study:
    if name not in STUDIES:
        near = difflib.get_close_matches(name, STUDIES, n=1)
        raise UnknownStudyError(
            f"there is no study {name!r}{f' (is it {near[0]}?)' if near else ''}; there are {', '.join(STUDIES)}"
        )
    found: Study = importlib.import_module(f"gdlx.experiments.studies.{name}.study")
    return found
