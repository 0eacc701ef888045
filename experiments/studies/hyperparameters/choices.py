"""What Schlindenbuch (2019), whose title README.md has, compares in section 5.1, figure by figure.

Where its text does not tell which values a figure has, they are ours.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

INF = math.inf


class Full(NamedTuple):
    """Full iterations: a regret minimiser, the exponent of the average, and whether both players move at once."""

    alpha: float = INF
    beta: float = INF
    gamma: float = 0.0
    simultaneous: bool = False


class Sampled(NamedTuple):
    """Outcome sampling, with baselines if they have a decay."""

    alpha: float = INF
    beta: float = INF
    gamma: float = 0.0
    exploration: float = 1.0
    decay: float | None = None


Choice = Full | Sampled


class Figure(NamedTuple):
    number: str
    about: str
    choices: Mapping[str, Choice]
    chosen: Sequence[str]  # by the thesis


def entry(choice: Choice) -> dict[str, float | str | bool]:
    """As a sweep has it. All settings are told, so that the same choice of two figures is the same cell."""
    if isinstance(choice, Full):
        return {"name": "dcfr", **choice._asdict()}
    given = choice._asdict()
    decay = given.pop("decay")
    return {"name": "os-mccfr", **given} if decay is None else {"name": "vr-mccfr", **given, "decay": decay}


def _named(values: Sequence[float]) -> dict[str, float]:
    """
    >>> _named([0.30000000000000004, -INF])
    {'0.3': 0.3, '-inf': -inf}
    """
    return {f"{value:g}": float(f"{value:g}") for value in values}


_GAMMAS = _named([0.3 * n for n in range(11)])
_ALPHAS = _named([0, 0.5, 1, 1.5, 2, 2.5, 3, INF])
_BETAS = _named([-INF, -1, -0.5, 0, 0.5, 1, 1.5, 2, INF])
_EXPLORATION = _named([0.1 * n for n in range(1, 11)])
_DECAYS = _named([0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])

PLUS = Full(beta=-INF, gamma=1.0)
CANDIDATE = Full(1.5, 0.5, 1.5)
SAMPLED = Sampled(1.0, 1.0, 0.3, 0.7)
REDUCED = SAMPLED._replace(decay=0.3)

FULL = (
    Figure(
        "5.1",
        "updates",
        {"alternating": Full(), "simultaneous": Full(simultaneous=True)},
        ["alternating"],
    ),
    Figure("5.2", "averaging exponent of CFR+", {n: Full(beta=-INF, gamma=x) for n, x in _GAMMAS.items()}, ["1.5"]),
    Figure("5.3", "alpha of DCFR(alpha, inf, 2)", {n: Full(x, INF, 2.0) for n, x in _ALPHAS.items()}, ["1.5"]),
    Figure("5.4", "beta of DCFR(inf, beta, 2)", {n: Full(INF, x, 2.0) for n, x in _BETAS.items()}, ["0.5"]),
    Figure(
        "5.5",
        "candidates of CFR",
        {
            "CFR": Full(simultaneous=True),
            "CFR au": Full(),
            "Deepstack CFR": Full(beta=-INF, simultaneous=True),
            "CFR+ 1": PLUS,
            "CFR+ 2": Full(beta=-INF, gamma=2.0),
            "DCFR 1.5, 0, 2": Full(1.5, 0.0, 2.0),
            "LCFR": Full(1.0, 1.0, 1.0),
            "DCFR 1.5, 0.5, 1.5": CANDIDATE,
        },
        ["CFR+ 1", "DCFR 1.5, 0.5, 1.5"],
    ),
)
SAMPLING = (
    Figure("5.6", "averaging exponent", {n: Sampled(gamma=x) for n, x in _GAMMAS.items()}, ["0.3"]),
    Figure("5.7", "exploration", {n: Sampled(exploration=x) for n, x in _EXPLORATION.items()}, ["0.7"]),
    Figure("5.8", "alpha of DRM(alpha, inf)", {n: Sampled(alpha=x) for n, x in _ALPHAS.items()}, ["1"]),
    Figure("5.9", "beta of DRM(inf, beta)", {n: Sampled(beta=x) for n, x in _BETAS.items()}, ["1"]),
    Figure("5.10", "decay of baselines", {n: Sampled(decay=x) for n, x in _DECAYS.items()}, ["0.3"]),
    Figure(
        "5.11",
        "candidates of MC-CFR",
        {
            "MC-CFR": Sampled(),
            "MC-CFR+": Sampled(beta=-INF),
            "MC-DCFR 1.5, 0, 2": Sampled(1.5, 0.0, 2.0),
            "MC-LCFR": Sampled(1.0, 1.0, 1.0),
            "VR-MCCFR": Sampled(decay=0.5),
            "VR-MCCFR+": Sampled(beta=-INF, gamma=1.0, decay=0.5),
            "MC candidate": SAMPLED,
            "VR candidate": REDUCED,
        },
        ["MC candidate", "VR candidate"],
    ),
)
LAST: Mapping[str, Choice] = {
    "DCFR 1.5, 0.5, 1.5": CANDIDATE,
    "CFR+ 1": PLUS,
    "MC candidate": SAMPLED,
    "VR candidate": REDUCED,
}
