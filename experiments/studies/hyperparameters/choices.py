"""The settings that Schlindenbuch (2019) compares in section 5.1, figure by figure; README.md has the full citation.

Where the text does not list the values of a figure, they are ours.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

INF = math.inf


class FullCfrChoice(NamedTuple):
    """Full CFR: discounts of regrets, the exponent of the average, and whether updates are simultaneous."""

    alpha: float = INF
    beta: float = INF
    gamma: float = 0.0
    simultaneous: bool = False


class OutcomeSamplingChoice(NamedTuple):
    """Outcome sampling, with baselines if `decay` is set."""

    alpha: float = INF
    beta: float = INF
    gamma: float = 0.0
    exploration: float = 1.0
    decay: float | None = None


Choice = FullCfrChoice | OutcomeSamplingChoice


class ThesisFigure(NamedTuple):
    number: str
    about: str
    choices: Mapping[str, Choice]
    chosen: Sequence[str]  # by the thesis


def sweep_entry(choice: Choice) -> dict[str, float | str | bool]:
    """The entry of a sweep. It has all settings, so that the same choice in two figures is the same cell."""
    if isinstance(choice, FullCfrChoice):
        return {"name": "dcfr", **choice._asdict()}
    settings = choice._asdict()
    decay = settings.pop("decay")
    return {"name": "os-mccfr", **settings} if decay is None else {"name": "vr-mccfr", **settings, "decay": decay}


def _named(values: Sequence[float]) -> dict[str, float]:
    """Values by their short names.

    >>> _named([0.30000000000000004, -INF])
    {'0.3': 0.3, '-inf': -inf}
    """
    return {f"{value:g}": float(f"{value:g}") for value in values}


_GAMMAS = _named([0.3 * n for n in range(11)])
_ALPHAS = _named([0, 0.5, 1, 1.5, 2, 2.5, 3, INF])
_BETAS = _named([-INF, -1, -0.5, 0, 0.5, 1, 1.5, 2, INF])
_EXPLORATION = _named([0.1 * n for n in range(1, 11)])
_DECAYS = _named([0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])

CFR_PLUS = FullCfrChoice(beta=-INF, gamma=1.0)
DCFR_CANDIDATE = FullCfrChoice(1.5, 0.5, 1.5)
MCCFR_CANDIDATE = OutcomeSamplingChoice(1.0, 1.0, 0.3, 0.7)
VR_MCCFR_CANDIDATE = MCCFR_CANDIDATE._replace(decay=0.3)

FULL = (
    ThesisFigure(
        "5.1",
        "updates",
        {"alternating": FullCfrChoice(), "simultaneous": FullCfrChoice(simultaneous=True)},
        ["alternating"],
    ),
    ThesisFigure(
        "5.2", "averaging exponent of CFR+", {n: FullCfrChoice(beta=-INF, gamma=x) for n, x in _GAMMAS.items()}, ["1.5"]
    ),
    ThesisFigure(
        "5.3", "alpha of DCFR(alpha, inf, 2)", {n: FullCfrChoice(x, INF, 2.0) for n, x in _ALPHAS.items()}, ["1.5"]
    ),
    ThesisFigure(
        "5.4", "beta of DCFR(inf, beta, 2)", {n: FullCfrChoice(INF, x, 2.0) for n, x in _BETAS.items()}, ["0.5"]
    ),
    ThesisFigure(
        "5.5",
        "candidates of CFR",
        {
            "CFR": FullCfrChoice(simultaneous=True),
            "CFR au": FullCfrChoice(),
            "Deepstack CFR": FullCfrChoice(beta=-INF, simultaneous=True),
            "CFR+ 1": CFR_PLUS,
            "CFR+ 2": FullCfrChoice(beta=-INF, gamma=2.0),
            "DCFR 1.5, 0, 2": FullCfrChoice(1.5, 0.0, 2.0),
            "LCFR": FullCfrChoice(1.0, 1.0, 1.0),
            "DCFR 1.5, 0.5, 1.5": DCFR_CANDIDATE,
        },
        ["CFR+ 1", "DCFR 1.5, 0.5, 1.5"],
    ),
)
SAMPLING = (
    ThesisFigure("5.6", "averaging exponent", {n: OutcomeSamplingChoice(gamma=x) for n, x in _GAMMAS.items()}, ["0.3"]),
    ThesisFigure(
        "5.7", "exploration", {n: OutcomeSamplingChoice(exploration=x) for n, x in _EXPLORATION.items()}, ["0.7"]
    ),
    ThesisFigure(
        "5.8", "alpha of DRM(alpha, inf)", {n: OutcomeSamplingChoice(alpha=x) for n, x in _ALPHAS.items()}, ["1"]
    ),
    ThesisFigure("5.9", "beta of DRM(inf, beta)", {n: OutcomeSamplingChoice(beta=x) for n, x in _BETAS.items()}, ["1"]),
    ThesisFigure(
        "5.10", "decay of baselines", {n: OutcomeSamplingChoice(decay=x) for n, x in _DECAYS.items()}, ["0.3"]
    ),
    ThesisFigure(
        "5.11",
        "candidates of MC-CFR",
        {
            "MC-CFR": OutcomeSamplingChoice(),
            "MC-CFR+": OutcomeSamplingChoice(beta=-INF),
            "MC-DCFR 1.5, 0, 2": OutcomeSamplingChoice(1.5, 0.0, 2.0),
            "MC-LCFR": OutcomeSamplingChoice(1.0, 1.0, 1.0),
            "VR-MCCFR": OutcomeSamplingChoice(decay=0.5),
            "VR-MCCFR+": OutcomeSamplingChoice(beta=-INF, gamma=1.0, decay=0.5),
            "MC candidate": MCCFR_CANDIDATE,
            "VR candidate": VR_MCCFR_CANDIDATE,
        },
        ["MC candidate", "VR candidate"],
    ),
)
FINAL_CANDIDATES: Mapping[str, Choice] = {
    "DCFR 1.5, 0.5, 1.5": DCFR_CANDIDATE,
    "CFR+ 1": CFR_PLUS,
    "MC candidate": MCCFR_CANDIDATE,
    "VR candidate": VR_MCCFR_CANDIDATE,
}
