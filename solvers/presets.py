"""Named algorithms: which step function, with which settings."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

from gdlx.propnet import errors
from gdlx.solvers import cfr, fictitious, regret

Step = Callable[..., cfr.CfrState]
_NONE, _FLOOR = math.inf, -math.inf


class UnknownAlgorithm(errors.UserError, ValueError):
    """A name that no algorithm has."""


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How trajectories are drawn."""

    exploration: float = 0.6  # of the player who is updated
    decay: float | None = None  # of baselines; None for none
    batch: int = 4_096
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """`step` is static, `settings` are traced: algorithms with the same step and the same settings share a program."""

    name: str
    step: Step
    settings: regret.Settings
    about: str
    alternating: bool = True
    is_exact: bool = False  # no iterations: solved at once
    sampling: Sampling | None = None  # None where every information set is looked at in every iteration


_S = regret.Settings
_LISTED = (
    Algorithm("cfr", cfr.step, _S(), "regret matching, uniform averages (Zinkevich et al. 2007)"),
    Algorithm("cfr+", cfr.step, _S(beta=_FLOOR, gamma=1.0), "regret matching+, linear averages (Tammelin 2014)"),
    Algorithm("lcfr", cfr.step, _S(1.0, 1.0, 1.0), "linear CFR (Brown & Sandholm 2019)"),
    Algorithm("dcfr", cfr.step, _S(1.5, 0.0, 2.0), "discounted CFR (Brown & Sandholm 2019)"),
    Algorithm("dcfr-half", cfr.step, _S(1.5, 0.5, 1.5), "discounted CFR with a milder discount of negative regret"),
    Algorithm(
        "pcfr+", cfr.step, _S(beta=_FLOOR, gamma=2.0, optimism=1.0), "predictive CFR+ (Farina, Kroer & Sandholm 2021)"
    ),
    Algorithm("pdcfr+", cfr.step, _S(2.3, _FLOOR, 5.0, optimism=1.0), "predictive discounted CFR+ (Xu et al. 2024)"),
    Algorithm(
        "hs-dcfr",
        cfr.step,
        _S(1.0, -1.0, 30.0, alpha_change=3.0, beta_change=-2.0, gamma_change=-5.0),
        "DCFR with schedules over --iterations (Zhang, McAleer & Sandholm)",
    ),
    Algorithm(
        "hs-dcfr-15",
        cfr.step,
        _S(1.0, -1.0, 15.0, alpha_change=3.0, beta_change=-2.0, gamma_change=-5.0),
        "the same with a milder averaging exponent",
    ),
    Algorithm(
        "hs-pcfr+",
        cfr.step,
        _S(beta=_FLOOR, gamma=30.0, gamma_change=-5.0, optimism=1.0),
        "PCFR+ with a scheduled averaging exponent (Zhang, McAleer & Sandholm)",
    ),
    Algorithm("fp", fictitious.step, _S(), "fictitious play (Heinrich et al. 2015)"),
    Algorithm(
        "os-mccfr",
        cfr.step,
        _S(1.0, 1.0, 1.0),
        "outcome sampling (Lanctot et al. 2009), linear weights",
        sampling=Sampling(),
    ),
    Algorithm(
        "vr-mccfr",
        cfr.step,
        _S(1.0, 1.0, 1.0),
        "outcome sampling with baselines (Schmid et al. 2018)",
        sampling=Sampling(decay=0.1),
    ),
    Algorithm("lp", cfr.step, _S(), "linear programming: exact; two players, zero-sum, small games", is_exact=True),
)
ALGORITHMS = {algorithm.name: algorithm for algorithm in _LISTED}
DEFAULT = "dcfr"


def find(name: str) -> Algorithm:
    """
    >>> find("cfr+").settings.gamma
    1.0
    """
    if name not in ALGORITHMS:
        raise UnknownAlgorithm(f"there is no algorithm {name!r}; there are {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def configured(algorithm: Algorithm, iterations: int | None, changes: Mapping[str, Any]) -> Algorithm:
    """An algorithm with other settings; schedules go over the given iterations, else 1 000."""
    unknown = sorted(changes.keys() - set(regret.Settings._fields))
    if unknown:
        raise UnknownAlgorithm(
            f"{algorithm.name} has no setting {unknown[0]!r}; there are {', '.join(regret.Settings._fields)}"
        )
    changes = dict(changes)
    if changes and algorithm.is_exact:
        raise UnknownAlgorithm(f"{algorithm.name} has no settings; leave out {', '.join(changes)}")
    for name, value in changes.items():
        allows_infinity = name in ("alpha", "beta")
        if math.isnan(value) or (math.isinf(value) and not allows_infinity):
            raise UnknownAlgorithm(f"{name} must be a {'' if allows_infinity else 'finite '}number, not {value}")
    sampling = algorithm.sampling
    if sampling is not None and "exploration" in changes:  # of the trajectories, not of the policies
        sampling = dataclasses.replace(sampling, exploration=changes.pop("exploration"))
    horizon = {"horizon": float(max(1, iterations))} if iterations is not None else {}
    settings = algorithm.settings._replace(**{**horizon, **changes})
    return dataclasses.replace(algorithm, settings=settings, sampling=sampling)
