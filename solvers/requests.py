"""Requests to solve or evaluate: built by commands and by Python calls alike, and validated on construction."""

import contextlib
import dataclasses
import functools
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gdlx.envs import game_spec
from gdlx.propnet.common import errors, limits
from gdlx.propnet.common.text import reprs
from gdlx.solvers import algorithms, plan
from gdlx.solvers.exact import restricted_nash
from gdlx.solvers.runs import driver, result_folder

ProgressFn = Callable[[str], None]  # called with a short text on the progress of a stage


class RequestError(errors.UserError, ValueError):
    """Arguments that are out of range or contradict each other."""


@contextlib.contextmanager
def _silent(label: str) -> Iterator[ProgressFn]:
    del label
    yield lambda note: None


@dataclasses.dataclass(frozen=True)
class Callbacks:
    """Functions that are called while a request is executed. The defaults do nothing.

    >>> errors: list[float] = []
    >>> callbacks = Callbacks(on_metrics=lambda metrics: errors.append(metrics.error))
    """

    # stage(label) is entered around each part that may take long, and yields a function for progress texts.
    stage: Callable[[str], contextlib.AbstractContextManager[ProgressFn]] = _silent
    on_metrics: Callable[[driver.Metrics], None] = lambda metrics: None  # after every measurement
    warn: Callable[[str], None] = lambda text: None  # with a message for the user
    on_choice: Callable[[plan.Choice], None] = lambda choice: None  # when `auto` has chosen what to do


NO_CALLBACKS = Callbacks()


@dataclasses.dataclass(frozen=True)
class OpponentModel:
    """An opponent model, for a restricted Nash response to it.

    >>> OpponentModel(pathlib.Path("results/kuhn_poker/cfr+"), p=0.5, player="player2").p
    0.5
    """

    policy: pathlib.Path  # a result folder, or a policy as .npz, .csv or .json
    p: float  # probability that the opponent follows the model
    player: str | None = None  # whose policy it is; None: the last player's

    def __post_init__(self) -> None:
        restricted_nash.require_probability(self.p)


@dataclasses.dataclass(frozen=True)
class SolveRequest:
    """A game to solve, with which algorithm, and when to stop. `resume_request` builds one that resumes a run.

    >>> SolveRequest("kuhn_poker", "dcfr", settings={"gamma": 3.0}).configured_algorithm.settings.gamma
    3.0
    """

    game: game_spec.GameLike  # whatever names it, as in `gdlx.make`
    algorithm: str | algorithms.Algorithm = algorithms.DEFAULT  # a preset by name, `auto`, or settings of your own
    iterations: int | None = None  # to stop after; 1,000 if there is no other condition
    seconds: float | None = None  # of solving, to stop after
    target: float | str | None = None  # exploitability in payoff units, or relative to the payoff range as in "0.01%"
    every: int | None = None  # iterations between measurements
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of the algorithm
    simultaneous: bool = False  # update all players at once instead of in turn
    states: bool = False  # solve the graph of states instead of the tree, for games of states
    opponent: OpponentModel | None = None
    network: pathlib.Path | None = None  # the folder of a trained network, for algorithms that need one
    results: pathlib.Path | None = None  # where to create the result folder; None: nothing is written
    resume: pathlib.Path | None = None  # the result folder of the run to resume
    checkpoint_seconds: float = 10.0  # between checkpoints
    max_nodes: int = limits.NODES  # refuse to unroll games with more joint actions in one step
    symmetries: bool = False  # leave symmetric information sets out of the tree
    within: limits.Limits = limits.Limits()  # of compiling

    __repr__ = reprs.show_changes

    def __post_init__(self) -> None:
        driver.StopCondition(self.iterations, self.seconds, driver.parse_target(self.target, 1.0))  # refuse bad ones
        if self.every is not None and self.every < 1:
            raise RequestError(f"every is a number of iterations, 1 or more; not {self.every}")
        if self.is_auto:
            self._require_choice()
        else:
            self._require_fit(self.configured_algorithm)

    @property
    def is_auto(self) -> bool:
        """Whether the algorithm is chosen to fit the game; `states` and `symmetries` choose how it is represented."""
        return self.algorithm == algorithms.AUTO and not self.states and not self.symmetries

    @functools.cached_property
    def candidates(self) -> Mapping[plan.Method, algorithms.Algorithm]:
        """What `auto` may choose: the algorithms that can use the other arguments, by method.

        >>> sorted(SolveRequest("kuhn_poker").candidates)
        ['blocks', 'cfr-on-states', 'sampling', 'states', 'tree']
        """
        candidates: dict[plan.Method, algorithms.Algorithm] = {}
        asked = (self.iterations, self.every, *(value for name, value in self.settings.items() if name != "seed"))
        is_iterative = self.simultaneous or any(value is not None for value in asked)
        for method, algorithm in plan.ALGORITHMS.items():
            if is_iterative and algorithm.is_direct:
                continue
            with contextlib.suppress(errors.UserError):
                candidates[method] = self._candidate(algorithm)
        return candidates

    def _candidate(self, base: algorithms.Algorithm) -> algorithms.Algorithm:
        settings = self._settings_of(base)
        if base.is_sampled:
            settings = {"table": algorithms.TABLE_BITS, **settings}
        configured = algorithms.configure(base, None if base.is_exact else self.iterations, settings)
        if self.simultaneous:
            configured = algorithms.with_simultaneous_updates(configured)
        self._require_fit(configured)
        return configured

    def _settings_of(self, base: algorithms.Algorithm) -> Mapping[str, Any]:
        """The settings of an algorithm that the caller did not name: a seed is for those that sample."""
        return {name: value for name, value in self.settings.items() if base.is_sampled or name != "seed"}

    def _require_choice(self) -> None:
        """Raises if there is nothing that `auto` could choose."""
        if self.network is not None:
            raise RequestError("a network is for depth-limited; pass `algorithm='depth-limited'`")
        if not self.candidates:
            self._candidate(algorithms.find(algorithms.FULL))  # raises what is wrong
            raise AssertionError

    def _require_fit(self, algorithm: algorithms.Algorithm) -> None:
        """Raises if the algorithm cannot use the other arguments."""
        if self.resume is not None and algorithm.is_direct:
            raise result_folder.ResultError(f"{self.resume} was solved at once: there is nothing to resume")
        if algorithm.needs_network and self.network is None:
            algorithms.require_no_network(algorithm)
        if self.network is not None and not algorithm.needs_network:
            raise RequestError(f"a network is for depth-limited, not for {algorithm.name}; leave out `network=`")
        if algorithm.needs_network:
            for name in ("seconds", "target", "every"):
                if getattr(self, name) is not None:
                    raise RequestError(f"{algorithm.name} stops only by `iterations=`; leave out `{name}=`")
        if self.symmetries and algorithm.kind != "full":
            raise RequestError(
                f"symmetries are left out of whole trees, for the CFR family and fp; {algorithm.name} needs every "
                "information set: leave out `symmetries=`"
            )
        if self.symmetries and self.opponent is not None:
            raise RequestError("an opponent model need not be symmetric: leave out `symmetries=`")
        if self.opponent is not None:
            restricted_nash.require_non_sampling(algorithm)
            if algorithm.on_states:
                raise RequestError(
                    "a player who does not know whether the opponent follows the model does not know the state: solve "
                    "the tree of the restricted game, e.g. with `algorithm='dcfr'` and without `states=`"
                )
        if self.named.tree is not None and algorithm.needs in ("rules", "states"):
            what = "a hash table needs" if algorithm.needs == "rules" else f"{algorithm.name} on states needs"
            raise algorithms.UnknownAlgorithmError(f"{what} the rules of a game, not its tree")

    @functools.cached_property
    def configured_algorithm(self) -> algorithms.Algorithm:
        """The algorithm with its settings. That of a resumed run has them already, its horizon too."""
        name = algorithms.FULL if self.algorithm == algorithms.AUTO else self.algorithm
        base = name if isinstance(name, algorithms.Algorithm) else algorithms.find(name)
        if self.resume is not None:
            return base
        settings = self._settings_of(base) if self.algorithm == algorithms.AUTO else self.settings
        configured = algorithms.configure(base, None if base.is_exact else self.iterations, settings)
        configured = algorithms.on_states(configured) if self.states else configured
        return algorithms.with_simultaneous_updates(configured) if self.simultaneous else configured

    @property
    def needs(self) -> algorithms.GameRepresentation:
        """The representation of the game that it needs: opponent models change the weights of single terminals."""
        needs = self.configured_algorithm.needs
        return "terminals" if needs == "tree" and self.opponent is not None else needs

    @functools.cached_property
    def resolved_game(self) -> game_spec.GameSpec:
        """The game, and how to read it."""
        return self.named.game

    @functools.cached_property
    def named(self) -> game_spec.ResolvedGame:
        """The game, with its propnet or tree if it was named by one."""
        return game_spec.resolve(self.game)


def resume_request(folder: pathlib.Path, *, max_steps: int | None = None, **asked: Any) -> SolveRequest:
    """Builds the request that resumes the run in a result folder, with its game and algorithm.

    Args:
      folder: the result folder.
      max_steps: replaces that of a hash table: the one setting that may turn out too small.
      asked: further fields of `SolveRequest`, such as `iterations=`.

    Raises:
      ResultError: the folder does not hold a result.
    """
    config = result_folder.read_config(folder)
    algorithm = config.algorithm
    if max_steps is not None and algorithm.is_sampled:
        algorithm = dataclasses.replace(
            algorithm, sampling=dataclasses.replace(algorithm.sampling_config, max_steps=max_steps)
        )
    return SolveRequest(config.game, algorithm, resume=folder, **asked)


@dataclasses.dataclass(frozen=True)
class EvaluateRequest:
    """A result to measure again, or any policy to judge, with a lower bound on exploitability from sampled play.

    >>> EvaluateRequest(pathlib.Path("results/kuhn_poker/dcfr"), bound=True, bound_seconds=10.0).seed
    0
    """

    folder: pathlib.Path  # the result; with `policy` only what to call it
    bound: bool = False  # search for responses that exploit the policies
    bound_seconds: float | None = None  # None: `search_bounds.DEFAULT_SECONDS`
    seed: int = 0  # of the sampled play
    max_nodes: int = limits.NODES  # refuse to unroll games with more joint actions in one step
    game: game_spec.GameLike | None = None  # that was solved, if the folder does not tell how to find it
    policy: Any = None  # judge this policy of `game` instead: whatever `policy_source.find` accepts
    within: limits.Limits = limits.Limits()  # of compiling, with `policy`
    symmetries: bool = False  # leave symmetric information sets out of the tree, with `policy`

    __repr__ = reprs.show_changes

    def __post_init__(self) -> None:
        if self.bound_seconds is None:
            return
        if not self.bound:
            raise RequestError("`bound_seconds=` needs `bound=True`")
        if not 0 < self.bound_seconds < float("inf"):
            raise RequestError(f"bound_seconds is a number of seconds above 0, not {self.bound_seconds}")
