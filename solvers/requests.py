"""What a user asks for, as a value: commands and Python calls alike make one, which is checked when it is made."""

import contextlib
import dataclasses
import functools
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gdlx.envs import game_spec
from gdlx.envs.trees import game_tree
from gdlx.propnet.common import errors, limits
from gdlx.solvers import algorithms
from gdlx.solvers.exact import restricted_nash
from gdlx.solvers.runs import driver, result_folder

ProgressFn = Callable[[str], None]  # a word on how far a stage is


class RequestError(errors.UserError, ValueError):
    """Arguments that do not go together."""


@contextlib.contextmanager
def _silent(label: str) -> Iterator[ProgressFn]:
    del label
    yield lambda note: None


@dataclasses.dataclass(frozen=True)
class Callbacks:
    """How the caller hears of what happens meanwhile."""

    stage: Callable[[str], contextlib.AbstractContextManager[ProgressFn]] = (
        _silent  # around each part that may take long
    )
    on_metrics: Callable[[driver.Metrics], None] = lambda metrics: None
    warn: Callable[[str], None] = lambda text: None


NO_CALLBACKS = Callbacks()


@dataclasses.dataclass(frozen=True)
class OpponentModel:
    """A model of an opponent, for a restricted Nash response to it."""

    policy: pathlib.Path  # a result folder, or a policy as .npz, .csv or .json
    p: float  # how likely it is to be played
    player: str | None = None  # whose policy it is; None: the last player's

    def __post_init__(self) -> None:
        restricted_nash.require_probability(self.p)


@dataclasses.dataclass(frozen=True)
class SolveRequest:
    """A game to solve, how, and until when. `resume_request` makes one from the folder of a run that is to go on.

    >>> SolveRequest("kuhn_poker", "dcfr", settings={"gamma": 3.0}).configured.settings.gamma
    3.0
    """

    game: str | game_spec.GameSpec | game_tree.GameTree
    algorithm: str | algorithms.Algorithm = algorithms.DEFAULT
    iterations: int | None = None
    seconds: float | None = None
    target: float | str | None = None  # an exploitability in payoff units, or a part of the payoff range as in "0.01%"
    every: int | None = None  # iterations between measurements
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # of the algorithm
    simultaneous: bool = False
    opponent: OpponentModel | None = None
    network: pathlib.Path | None = None  # the folder of a trained network, for algorithms that need one
    results: pathlib.Path | None = None  # where a folder of the result is made; None: nothing is written
    resume: pathlib.Path | None = None  # the folder that is gone on with
    checkpoint_seconds: float = 10.0
    max_nodes: int = limits.NODES
    within: limits.Limits = limits.Limits()  # of compiling

    def __post_init__(self) -> None:
        driver.StopCondition(self.iterations, self.seconds)
        if self.every is not None and self.every < 1:
            raise RequestError(f"every is a number of iterations, 1 or more; not {self.every}")
        self._require_fit(self.configured_algorithm)

    def _require_fit(self, algorithm: algorithms.Algorithm) -> None:
        """That what is asked for beside the algorithm is of any use to it."""
        if self.resume is not None and algorithm.is_direct:
            raise result_folder.ResultError(f"{self.resume} was solved at once: there is nothing to go on with")
        if algorithm.needs_network and self.network is None:
            algorithms.require_no_network(algorithm)
        if self.network is not None and not algorithm.needs_network:
            raise RequestError(f"a network is for depth-limited, not for {algorithm.name}; leave out `network=`")
        if algorithm.needs_network:
            for name in ("seconds", "target", "every"):
                if getattr(self, name) is not None:
                    raise RequestError(f"{algorithm.name} ends after iterations of every segment; leave out `{name}=`")
        if self.opponent is not None:
            restricted_nash.require_non_sampling(algorithm)
        if isinstance(self.game, game_tree.GameTree) and algorithm.needs == "rules":
            raise algorithms.UnknownAlgorithmError("a hash table needs the rules of a game, not its tree")

    @functools.cached_property
    def configured_algorithm(self) -> algorithms.Algorithm:
        """The algorithm with its settings. One that is resumed has them already, its horizon too."""
        known = self.algorithm if isinstance(self.algorithm, algorithms.Algorithm) else algorithms.find(self.algorithm)
        if self.resume is not None:
            return known
        chosen = algorithms.configure(known, None if known.is_exact else self.iterations, self.settings)
        return algorithms.with_simultaneous_updates(chosen) if self.simultaneous else chosen

    @functools.cached_property
    def resolved_game(self) -> game_spec.GameSpec:
        """The game, and how it is to be read."""
        match self.game:
            case str():
                return game_spec.GameSpec(self.game)
            case game_tree.GameTree():
                return game_spec.GameSpec(self.game.name)
            case _:
                return self.game


def resume_request(folder: pathlib.Path, *, max_steps: int | None = None, **asked: Any) -> SolveRequest:
    """The request that goes on with the run in a folder: its game and its algorithm, and what is `asked` anew of when
    to stop, what to measure and what may be used, as in `SolveRequest`.

    `max_steps`, which is the one setting that may turn out too small, replaces that of a hash table.
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
    """A result to measure again, and whether to look for what players could gain at least by playing."""

    folder: pathlib.Path
    bound: bool = False
    bound_seconds: float | None = None  # None: as long as is usual
    seed: int = 0  # of the play that bounds are found by
    max_nodes: int = limits.NODES

    def __post_init__(self) -> None:
        if self.bound_seconds is None:
            return
        if not self.bound:
            raise RequestError("`bound_seconds=` is of `bound=True`; ask for that too")
        if not 0 < self.bound_seconds < float("inf"):
            raise RequestError(f"bound_seconds is a number of seconds above 0, not {self.bound_seconds}")
