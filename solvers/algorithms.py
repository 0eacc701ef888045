"""The registry of algorithms: a step function or a sampling scheme, with settings."""

import dataclasses
import math
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal

from gdlx.propnet.common import errors
from gdlx.propnet.common.text import suggestions
from gdlx.solvers.exact import cfr, fictitious_play, regret_matching

Step = Callable[..., cfr.CfrState]
_NONE, _FLOOR = math.inf, -math.inf


class UnknownAlgorithmError(errors.UserError, ValueError):
    """An algorithm that does not exist, or that cannot be used or configured in this way."""


SamplingScheme = Literal["outcome", "external", "average-strategy"]
Kind = Literal["full", "sampled", "table", "exact", "depth-limited", "states", "backward-induction"]
# The unrolled game, perhaps in blocks; with every terminal listed; with its edges, too; only the rules; or its states.
GameRepresentation = Literal["tree", "terminals", "edges", "rules", "states"]
_NEEDS: Mapping[Kind, GameRepresentation] = {
    "full": "tree",
    "sampled": "edges",
    "table": "rules",
    "exact": "terminals",
    "depth-limited": "edges",
    "states": "states",
    "backward-induction": "states",
}


@dataclasses.dataclass(frozen=True)
class SamplingConfig:
    """How play is sampled. docs/howto/solve-a-large-game.md lists which scheme uses which of these."""

    scheme: SamplingScheme = "outcome"
    batch: int = 4_096  # trajectories per iteration and player
    seed: int = 0
    exploration: float = 0.6  # of the player that is updated
    decay: float | None = None  # of baselines; None: without baselines
    width: float = 16.0  # lanes per traversal
    epsilon: float = 0.05  # of average-strategy sampling, as are the next two
    tau: float = 1_000.0
    beta: float = 1_000.0
    table: int | None = None  # base-2 logarithm of the hash table's size; None: arrays of an unrolled game
    grow: Literal["all", "first"] = "all"  # new information sets of a trajectory to insert there
    max_steps: int = 0  # capacity for joint actions of a trajectory; 0: estimated from random play


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """An algorithm with its settings. Obtain one from `find`, and change its settings with `configure`.

    `step` is static and `settings` are traced: algorithms that differ only in the values of settings share a compiled
    program.

    >>> find("dcfr")
    Algorithm(dcfr: alpha=1.5, beta=0.0, gamma=2.0)
    """

    name: str
    step: Step | None  # one full iteration; None for algorithms without them
    settings: regret_matching.Settings
    about: str  # one line, with its source
    alternating: bool = True  # players are updated in turn, not all at once
    is_exact: bool = False  # no iterations: solved at once
    needs_network: bool = False  # solved at once with a neural network, by a solver that the caller supplies
    sampling: SamplingConfig | None = None  # None: every iteration visits every information set
    on_states: bool = False  # solves the graph of states instead of the tree

    def __repr__(self) -> str:
        changes = _changed_fields(self.settings._asdict(), regret_matching.Settings()._asdict())
        if self.sampling is not None:
            changes |= _changed_fields(dataclasses.asdict(self.sampling), dataclasses.asdict(SamplingConfig()))
        if not self.alternating:
            changes["alternating"] = False
        if self.on_states and not self.is_exact:
            changes["states"] = True
        settings = ", ".join(f"{name}={value}" for name, value in changes.items())
        return f"Algorithm({self.name}{': ' * bool(settings)}{settings})"

    @property
    def kind(self) -> Kind:
        """How it runs: full iterations, sampled ones on an unrolled game or into a hash table, or directly."""
        if self.on_states:
            return "backward-induction" if self.is_exact else "states"
        if self.is_exact:
            return "exact"
        if self.needs_network:
            return "depth-limited"
        if self.sampling is None:
            return "full"
        return "sampled" if self.sampling.table is None else "table"

    @property
    def needs(self) -> GameRepresentation:
        """The representation of a game that it needs, which `tasks.prepare` makes."""
        return _NEEDS[self.kind]

    @property
    def is_direct(self) -> bool:
        """Whether it solves without iterations: nothing to stop early, to measure in between or to resume."""
        return self.is_exact or self.needs_network

    @property
    def sampling_config(self) -> SamplingConfig:
        """How play is sampled; raises UnknownAlgorithmError unless it is."""
        if self.sampling is None:
            raise UnknownAlgorithmError(f"{self.name} does not sample; {_samplers()} do")
        return self.sampling

    @property
    def is_sampled(self) -> bool:
        return self.sampling is not None

    @property
    def seed(self) -> int | None:
        """The seed of sampling; None for deterministic algorithms."""
        return None if self.sampling is None else self.sampling.seed

    @property
    def samples(self) -> int:
        """Trajectories per iteration and player; 0 for algorithms that do not sample."""
        return 0 if self.sampling is None else self.sampling.batch

    def with_seed(self, seed: int) -> "Algorithm":
        """Returns the same algorithm with another seed; deterministic ones are returned as they are."""
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
        "hs-dcfr with a milder averaging exponent",
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
        "backward-induction",
        None,
        _S(),
        "backward induction: exact; games of states, two-player zero-sum or turn-taking",
        is_exact=True,
        on_states=True,
    ),
    Algorithm(
        "depth-limited", None, _S(), "CFR+ on depth-limited subgames, with values of a network", needs_network=True
    ),
)
ALGORITHMS = {algorithm.name: algorithm for algorithm in _LISTED}
# What fits the game: `plan.choose` decides among the next three.
DEFAULT = AUTO = "auto"
FULL, SAMPLER = "dcfr", "os-mccfr"  # for unrolled games, and for those that are too large to unroll
TABLE_BITS = 22  # of its hash table, if that fits into memory: enough for a minute
STATES = "backward-induction"  # for games in which all players always know the state


def _changed_fields(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not defaults[name] and value != defaults[name]}


def find(name: str) -> Algorithm:
    """Returns the algorithm of a name, in which an underscore is as good as a hyphen.

    Raises:
      UnknownAlgorithmError: there is none.

    >>> find("cfr+").settings.gamma
    1.0
    """
    name = name.replace("_", "-")
    if name not in ALGORITHMS:
        near = suggestions.is_it(name, [AUTO, *ALGORITHMS])
        raise UnknownAlgorithmError(f"there is no algorithm {name!r}{near}; there are {', '.join([AUTO, *ALGORITHMS])}")
    return ALGORITHMS[name]


def require_no_network(algorithm: Algorithm) -> Algorithm:
    """Returns the algorithm unless it needs a network."""
    if algorithm.needs_network:
        raise UnknownAlgorithmError(
            f"{algorithm.name} needs a network: train one for the game with `learner='supervised'`, and pass "
            "its folder as `network=`"
        )
    return algorithm


_LARGEST = 1e6  # of a setting; larger exponents overflow
_OF_BOTH = {"beta", "exploration"}  # names that regret matching has too
_ONLY: Mapping[str, tuple[SamplingScheme, ...]] = {
    "width": ("external", "average-strategy"),
    "epsilon": ("average-strategy",),
    "tau": ("average-strategy",),
}
_OF_OUTCOME_SAMPLING = ("table", "grow", "max_steps", "decay")  # which checks them in `_check_sampling`
_SAMPLED = {field.name for field in dataclasses.fields(SamplingConfig)} - _OF_BOTH


def configure(algorithm: Algorithm, iterations: int | None, changes: Mapping[str, Any]) -> Algorithm:
    """Returns an algorithm with changed settings. Schedules span `iterations`, or 1,000 if it is None."""
    known = set(regret_matching.Settings._fields) | (_SAMPLED if algorithm.is_sampled else set())
    for name in changes.keys() & _SAMPLED - known:
        raise UnknownAlgorithmError(f"{algorithm.name} does not sample, so it has no {name}; {_say_users(name)}")
    for name in changes.keys() - known:
        near = suggestions.is_it(name, known)
        raise UnknownAlgorithmError(
            f"{algorithm.name} has no setting {name!r}{near}; there are {', '.join(sorted(known))}"
        )
    for name, schemes in _ONLY.items():
        if name in changes and algorithm.is_sampled and algorithm.sampling_config.scheme not in schemes:
            users = " and ".join(_users(name))
            raise UnknownAlgorithmError(f"{algorithm.name} does not use {name}, a setting of {users}; leave it out")
    if changes and algorithm.is_direct:
        raise UnknownAlgorithmError(f"{algorithm.name} has no settings; leave out {', '.join(changes)}")
    for name, value in changes.items():
        allows_infinity = name in ("alpha", "beta")
        if isinstance(value, float) and (math.isnan(value) or (math.isinf(value) and not allows_infinity)):
            raise UnknownAlgorithmError(f"{name} must be a {'' if allows_infinity else 'finite '}number, not {value}")
        if isinstance(value, float) and _LARGEST < abs(value) < math.inf:
            raise UnknownAlgorithmError(
                f"{name} must be from {-_LARGEST:g} to {_LARGEST:g}{' or infinite' * allows_infinity}; not {value}"
            )
    exploration = changes.get("exploration")
    if exploration is not None and not 0 <= exploration <= 1:
        raise UnknownAlgorithmError(
            f"exploration is the probability of a uniform action, from 0 to 1; not {exploration}"
        )
    sampling_changes: dict[str, Any] = {}
    regret_changes: dict[str, Any] = {}
    for name, value in changes.items():
        is_of_sampling = name in _SAMPLED or (name == "exploration" and algorithm.is_sampled)
        (sampling_changes if is_of_sampling else regret_changes)[name] = value
    sampling = algorithm.sampling
    if sampling:
        sampling = dataclasses.replace(sampling, **sampling_changes)
        _check_sampling(algorithm.name, sampling)
    horizon = {"horizon": float(max(1, iterations))} if iterations is not None else {}
    settings = algorithm.settings._replace(**{**horizon, **regret_changes})
    return dataclasses.replace(algorithm, settings=settings, sampling=sampling)


def _samplers() -> str:
    return ", ".join(algorithm.name for algorithm in _LISTED if algorithm.is_sampled)


def _users(setting: str) -> list[str]:
    """Names of the algorithms that use a setting of sampling."""
    if setting in _OF_OUTCOME_SAMPLING:
        schemes: tuple[SamplingScheme, ...] = ("outcome",)
    else:
        schemes = _ONLY.get(setting, typing.get_args(SamplingScheme))
    return [other.name for other in _LISTED if other.sampling and other.sampling.scheme in schemes]


def _say_users(setting: str) -> str:
    """Says which algorithms use a setting of sampling, and how to take the first of them.

    >>> _say_users("table")
    "os-mccfr and vr-mccfr have it: `algorithm='os-mccfr'`"
    """
    users = _users(setting)
    return f"{', '.join(users[:-1])}{' and ' * (len(users) > 1)}{users[-1]} have it: `algorithm='{users[0]}'`"


def with_simultaneous_updates(algorithm: Algorithm) -> Algorithm:
    """Returns the same algorithm with all players updated at once."""
    if algorithm.step is None:
        raise UnknownAlgorithmError(f"{algorithm.name} cannot update all players at once; leave out `simultaneous=`")
    return dataclasses.replace(algorithm, alternating=False)


def on_states(algorithm: Algorithm) -> Algorithm:
    """Returns the same algorithm for the graph of states."""
    if algorithm.on_states:
        return algorithm
    if algorithm.step is not cfr.step:
        raise UnknownAlgorithmError(
            f"{algorithm.name} does not solve the graph of states; backward-induction and the CFR family do"
        )
    return dataclasses.replace(algorithm, on_states=True)


def _check_sampling(name: str, sampling: SamplingConfig) -> None:
    if sampling.batch < 1:
        raise UnknownAlgorithmError(f"a batch has at least 1 trajectory, not {sampling.batch}")
    if sampling.decay is not None and not (sampling.scheme == "outcome" and 0 < sampling.decay <= 1):
        raise UnknownAlgorithmError(
            f"decay is for the baselines of vr-mccfr, above 0 and at most 1; {name} cannot use {sampling.decay}"
        )
    if sampling.table is not None and sampling.scheme != "outcome":
        raise UnknownAlgorithmError(f"{name} has no hash table: it samples unrolled games; {_say_users('table')}")
    if not sampling.width > 0:
        raise UnknownAlgorithmError(f"the width must be above 0 lanes, not {sampling.width}")
    if sampling.table is None and (sampling.grow != "all" or sampling.max_steps):
        raise UnknownAlgorithmError(
            "`grow=` and `max_steps=` are for hash tables: specify the size of one, e.g. `table=20`"
        )
    if sampling.grow not in ("all", "first"):
        raise UnknownAlgorithmError(
            f"a table grows by 'all' new information sets or by the 'first', not {sampling.grow!r}"
        )
