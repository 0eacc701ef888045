"""Named algorithms: which step function, with which settings."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

from gdlx.propnet.common import errors
from gdlx.solvers.exact import cfr, fictitious_play, regret_matching

Step = Callable[..., cfr.CfrState]
_NONE, _FLOOR = math.inf, -math.inf


class UnknownAlgorithmError(errors.UserError, ValueError):
    """A name that no algorithm has."""


SamplingScheme = Literal["outcome", "external", "average-strategy"]
Kind = Literal["full", "sampled", "table", "exact", "depth-limited"]
GameRepresentation = Literal["tree", "edges", "rules"]
_NEEDS: Mapping[Kind, GameRepresentation] = {
    "full": "tree",
    "sampled": "edges",
    "table": "rules",
    "exact": "tree",
    "depth-limited": "edges",
}


@dataclasses.dataclass(frozen=True)
class SamplingConfig:
    """How play is sampled. Each scheme has its own use for some of these; docs/sampling.md tells which."""

    scheme: SamplingScheme = "outcome"
    batch: int = 4_096  # trajectories of an iteration, for each player
    seed: int = 0
    exploration: float = 0.6  # of the player who is updated
    decay: float | None = None  # of baselines; None for none
    width: float = 16.0  # lanes for a traversal
    epsilon: float = 0.05  # of average-strategy sampling, as are the next two
    tau: float = 1_000.0
    beta: float = 1_000.0
    table: int | None = None  # the logarithm of a hash table's size; None: tables of an unrolled game
    grow: Literal["all", "first"] = "all"  # which unknown information sets are added to it
    max_steps: int = 0  # joint moves of the longest trajectory there is room for; 0: as random play suggests


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """`step` is static, `settings` are traced: algorithms with the same step and the same settings share a program."""

    name: str
    step: Step | None  # None where there are no full iterations
    settings: regret_matching.Settings
    about: str
    alternating: bool = True
    is_exact: bool = False  # no iterations: solved at once
    needs_network: bool = False  # solved at once with a network, which nothing here knows of
    sampling: SamplingConfig | None = None  # None where every information set is looked at in every iteration

    @property
    def kind(self) -> Kind:
        """How it runs: full iterations, sampled ones on an unrolled game or into a hash table, or all at once."""
        if self.is_exact:
            return "exact"
        if self.needs_network:
            return "depth-limited"
        if self.sampling is None:
            return "full"
        return "sampled" if self.sampling.table is None else "table"

    @property
    def needs(self) -> GameRepresentation:
        """Of a game: its tree, its tree with the edges that play follows, or its rules alone."""
        return _NEEDS[self.kind]

    @property
    def is_direct(self) -> bool:
        """Whether all is found at once: nothing to stop early, to measure in between or to resume."""
        return self.is_exact or self.needs_network

    @property
    def sampling_config(self) -> SamplingConfig:
        """How play is sampled, of an algorithm that does."""
        if self.sampling is None:
            raise UnknownAlgorithmError(f"{self.name} does not sample; {_samplers()} do")
        return self.sampling

    @property
    def is_sampled(self) -> bool:
        return self.sampling is not None

    @property
    def seed(self) -> int | None:
        """None where nothing is random."""
        return None if self.sampling is None else self.sampling.seed

    @property
    def samples(self) -> int:
        """Trajectories of an iteration, for each player."""
        return 0 if self.sampling is None else self.sampling.batch

    def with_seed(self, seed: int) -> "Algorithm":
        """The same with another seed, if anything is random."""
        if self.sampling is None:
            return self
        return dataclasses.replace(self, sampling=dataclasses.replace(self.sampling, seed=seed))


_S = regret_matching.Settings
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
        "DCFR with schedules over the iterations (Zhang, McAleer & Sandholm)",
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
    Algorithm("fp", fictitious_play.step, _S(), "fictitious play (Heinrich et al. 2015)"),
    Algorithm(
        "os-mccfr",
        None,
        _S(1.0, 1.0, 1.0),
        "outcome sampling (Lanctot et al. 2009), linear weights",
        sampling=SamplingConfig(),
    ),
    Algorithm(
        "vr-mccfr",
        None,
        _S(1.0, 1.0, 1.0),
        "outcome sampling with baselines (Schmid et al. 2018)",
        sampling=SamplingConfig(decay=0.3),
    ),
    Algorithm(
        "es-mccfr",
        None,
        _S(1.0, 1.0, 1.0),
        "external sampling (Lanctot et al. 2009), linear weights",
        sampling=SamplingConfig("external", batch=512),
    ),
    Algorithm(
        "as-mccfr",
        None,
        _S(1.0, 1.0, 1.0),
        "average-strategy sampling (Gibson et al. 2012)",
        sampling=SamplingConfig("average-strategy", batch=512),
    ),
    Algorithm("lp", None, _S(), "linear programming: exact; two players, zero-sum, small games", is_exact=True),
    Algorithm(
        "depth-limited", None, _S(), "CFR+ some joint moves at a time, with values of a network", needs_network=True
    ),
)
ALGORITHMS = {algorithm.name: algorithm for algorithm in _LISTED}
DEFAULT = "dcfr"


def find(name: str) -> Algorithm:
    """
    >>> find("cfr+").settings.gamma
    1.0
    """
    if name not in ALGORITHMS:
        raise UnknownAlgorithmError(f"there is no algorithm {name!r}; there are {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def require_no_network(algorithm: Algorithm) -> Algorithm:
    """One that needs nothing but a game."""
    if algorithm.needs_network:
        raise UnknownAlgorithmError(
            f"{algorithm.name} needs a network: train one for the game with `learner='supervised'`, and give "
            "its folder with `net=`"
        )
    return algorithm


_OF_BOTH = {"beta", "exploration"}  # of the discounts too, or of every policy
_ONLY: Mapping[str, tuple[SamplingScheme, ...]] = {
    "width": ("external", "average-strategy"),
    "epsilon": ("average-strategy",),
    "tau": ("average-strategy",),
}
_SAMPLED = {field.name for field in dataclasses.fields(SamplingConfig)} - _OF_BOTH


def configure(algorithm: Algorithm, iterations: int | None, changes: Mapping[str, Any]) -> Algorithm:
    """An algorithm with other settings; schedules go over the given iterations, else 1 000."""
    known = set(regret_matching.Settings._fields) | (_SAMPLED if algorithm.is_sampled else set())
    for name in changes.keys() & _SAMPLED - known:
        raise UnknownAlgorithmError(f"{algorithm.name} does not sample, so it has no {name}; {_samplers()} do")
    for name in changes.keys() - known:
        raise UnknownAlgorithmError(f"{algorithm.name} has no setting {name!r}; there are {', '.join(sorted(known))}")
    for name, schemes in _ONLY.items():
        if name in changes and algorithm.is_sampled and algorithm.sampling_config.scheme not in schemes:
            who = " and ".join(other.name for other in _LISTED if other.sampling and other.sampling.scheme in schemes)
            raise UnknownAlgorithmError(f"{algorithm.name} has no use for {name}, which is of {who}; leave it out")
    if changes and algorithm.is_direct:
        raise UnknownAlgorithmError(f"{algorithm.name} has no settings; leave out {', '.join(changes)}")
    for name, value in changes.items():
        allows_infinity = name in ("alpha", "beta")
        if isinstance(value, float) and (math.isnan(value) or (math.isinf(value) and not allows_infinity)):
            raise UnknownAlgorithmError(f"{name} must be a {'' if allows_infinity else 'finite '}number, not {value}")
    exploration = changes.get("exploration")
    if exploration is not None and not 0 <= exploration <= 1:
        raise UnknownAlgorithmError(
            f"exploration is a part of a policy, or of sampling, from 0 to 1; not {exploration}"
        )
    of_sampling: dict[str, Any] = {}
    of_regret: dict[str, Any] = {}
    for name, value in changes.items():
        is_drawn = name in _SAMPLED or (name == "exploration" and algorithm.is_sampled)
        (of_sampling if is_drawn else of_regret)[name] = value
    sampling = algorithm.sampling
    if sampling:
        sampling = dataclasses.replace(sampling, **of_sampling)
        _check_sampling(algorithm.name, sampling)
    horizon = {"horizon": float(max(1, iterations))} if iterations is not None else {}
    settings = algorithm.settings._replace(**{**horizon, **of_regret})
    return dataclasses.replace(algorithm, settings=settings, sampling=sampling)


def _samplers() -> str:
    return ", ".join(algorithm.name for algorithm in _LISTED if algorithm.is_sampled)


def with_simultaneous_updates(algorithm: Algorithm) -> Algorithm:
    """The same with all players updated at once."""
    if algorithm.step is None:
        raise UnknownAlgorithmError(f"{algorithm.name} cannot update all players at once; leave out `simultaneous=`")
    return dataclasses.replace(algorithm, alternating=False)


def _check_sampling(name: str, sampling: SamplingConfig) -> None:
    if sampling.batch < 1:
        raise UnknownAlgorithmError(f"a batch has at least 1 trajectory, not {sampling.batch}")
    if sampling.decay is not None and not (sampling.scheme == "outcome" and 0 < sampling.decay <= 1):
        raise UnknownAlgorithmError(
            f"decay is of the baselines of vr-mccfr, above 0 and at most 1; {name} cannot have {sampling.decay}"
        )
    if sampling.table is not None and sampling.scheme != "outcome":
        raise UnknownAlgorithmError(
            f"{name} has no hash table: it samples unrolled games. os-mccfr and vr-mccfr have one"
        )
    if not sampling.width > 0:
        raise UnknownAlgorithmError(f"the width must be above 0 lanes, not {sampling.width}")
    if sampling.table is None and (sampling.grow != "all" or sampling.max_steps):
        raise UnknownAlgorithmError(
            "`grow=` and `max_steps=` are of hash tables: give the size of one, e.g. `table=20`"
        )
    if sampling.grow not in ("all", "first"):
        raise UnknownAlgorithmError(f"a table grows by 'all' unknown sets or by the 'first', not {sampling.grow!r}")
