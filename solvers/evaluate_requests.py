"""Execute evaluate requests: measure results and judge policies on trees, and bound them by play in larger games."""

import dataclasses
import os
import pathlib
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from gdlx.envs import env, game_facts, game_spec, payoffs
from gdlx.envs.packed import packed_env
from gdlx.envs.trees import game_tree
from gdlx.envs.trees.factored import symmetry_group
from gdlx.propnet.common import limits
from gdlx.solvers import (
    algorithms,
    requests,
    size_advice,
    solution,
    solve_requests,
    symmetric_policies,
    tabular_policies,
    tasks,
)
from gdlx.solvers.bounds import estimates, function_bound, search_bounds
from gdlx.solvers.mccfr import hash_table, table_policy
from gdlx.solvers.policy_sources import function_policies, policy_source
from gdlx.solvers.runs import driver, policy_files, result_folder, table_solver

_SHOWN_MISSING = 3  # information sets of each player, in the message that they are missing


class BoundResult(NamedTuple):
    """The last bound that the search found in time."""

    bound: estimates.ExploitabilityBound
    interrupted: bool  # by Ctrl-C


@dataclasses.dataclass(frozen=True)
class EvaluateResult:
    """The outcome of an evaluate request. With an opponent model, metrics are those of the restricted game.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "uniform.csv")
    ...     _ = path.write_text("player,information_set,action,probability\\n")
    ...     result = execute(requests.EvaluateRequest(path, game="kuhn_poker", policy=path))
    >>> result.task.game.spec, round(result.solution.exploitability, 3), result.bound_result
    ('kuhn_poker', 0.458, None)
    """

    task: tasks.Task
    solution: solution.Solution
    bound_result: BoundResult | None = None  # None unless a bound was requested, or nothing else is known
    missing: tuple[npt.NDArray[np.int64], ...] = ()  # of each player, information sets without a policy, if judged

    def __repr__(self) -> str:
        name, algorithm = game_tree.one_line(self.solution.tree.name), textwrap.shorten(self.solution.algorithm, 40)
        return f"EvaluateResult({name}, {algorithm}: {self._summary()})"

    def _summary(self) -> str:
        if self.is_exact and self.exploitability is not None:
            return f"exact, exploitability {self.exploitability:.6g}"
        if self.is_exact:
            return f"exact, NashConv {self.nash_conv:.6g}"
        bound = None if self.bound_result is None else self.bound_result.bound.exploitability
        return "not exact" if bound is None else f"exploitability at least {bound:.6g}"

    @property
    def is_exact(self) -> bool:
        """Whether values and improvements were computed on the whole tree, not estimated by play."""
        return bool(self.solution.improvements)

    @property
    def value(self) -> tuple[float, ...]:
        """The expected payoff of every player."""
        return self.solution.value

    @property
    def improvements(self) -> tuple[float, ...]:
        """The best-response improvement of every player; () if it is not exact."""
        return self.solution.improvements

    @property
    def nash_conv(self) -> float | None:
        """The sum of the improvements; None if it is not exact."""
        return self.solution.nash_conv

    @property
    def exploitability(self) -> float | None:
        """NashConv / 2; None if it is not exact, and unless there are two players."""
        return self.solution.exploitability


class _PlayInputs(NamedTuple):
    """An environment and policies to play there. `steps` is the capacity for joint actions."""

    game: packed_env.PackedEnv
    policy: table_policy.TablePolicy
    steps: int


class _SavedPolicies(NamedTuple):
    """The policies of a result folder."""

    policies: tabular_policies.Policies
    metrics: driver.Metrics
    play_inputs: Callable[[], _PlayInputs]  # in the original game, without an opponent model
    table: table_policy.TablePolicy | None = None


def load_solution(
    folder: str | os.PathLike[str], game: game_spec.GameLike | None = None, *, max_nodes: int = limits.NODES
) -> solution.Solution:
    """Loads the solution in a result folder and measures its policies again.

    Args:
      folder: a result folder, written by `Solution.save`, by `gdlx solve`, or by a request with `SolveRequest.results`.
      game: the game that was solved, as in `gdlx.solve`, where the folder does not tell how to find it: if it was a
        propnet, an environment or a tree, or a rulesheet that has moved.
      max_nodes: refuse to unroll games with more joint actions in one step than this.

    Returns:
      The policies, with one entry of metrics.

    Raises:
      ResultError: the folder does not hold a result, or its files are damaged.
      TooLargeError: the game is larger than `max_nodes`.

    >>> import gdlx, tempfile
    >>> solution = gdlx.solve("kuhn_poker", iterations=100)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     loaded = gdlx.load_solution(solution.save(f"{folder}/kuhn"))
    >>> abs(loaded.exploitability - solution.exploitability) < 1e-6
    True
    """
    return execute(requests.EvaluateRequest(pathlib.Path(folder), game=game, max_nodes=max_nodes)).solution


def execute(request: requests.EvaluateRequest, callbacks: requests.Callbacks = requests.NO_CALLBACKS) -> EvaluateResult:
    """Execute a request."""
    if request.policy is not None:
        return _evaluate_policy(request, request.policy, callbacks)
    folder = request.folder
    config = result_folder.read_config(folder)
    # Only sampling needs the edges of a tree.
    needs = "tree" if config.algorithm.needs == "edges" else config.algorithm.needs
    named = _named(request, config)
    original, task = solve_requests.load_task(
        folder, config, needs, callbacks, max_nodes=request.max_nodes, named=named
    )
    earlier = result_folder.read_metrics(folder, len(task.players))
    last = earlier[-1] if earlier else driver.Metrics(0, 0.0, (), ())
    if isinstance(task, tasks.TableTask):
        saved = _from_table(request, task, config.algorithm, last)
    elif isinstance(task, tasks.StateTask):
        saved = _from_states(request, task)
    else:
        saved = _from_tree(request, named, tasks.require_tree_task(original), tasks.require_tree_task(task), callbacks)
    metrics = saved.metrics._replace(
        iterations=last.iterations, seconds=last.seconds, samples=last.samples, load=last.load
    )
    content = result_folder.read_config_json(folder)
    measured = solution.Solution(task.tree, config.algorithm.name, saved.policies, (metrics,), content, saved.table)
    bound = _search_bound(request, saved.play_inputs(), task.game.spec, callbacks) if request.bound else None
    return EvaluateResult(task, measured, bound)


def judge_request(
    game: game_spec.GameLike,
    source: policy_source.PolicySource,
    *,
    max_nodes: int = limits.NODES,
    bound_seconds: float | None = None,
    seed: int = 0,
    symmetries: bool = False,
    within: limits.Limits = limits.Limits(),
) -> requests.EvaluateRequest:
    """Builds the request to judge a policy."""
    is_bounded = bound_seconds is not None
    return requests.EvaluateRequest(
        pathlib.Path(source.name), is_bounded, bound_seconds, seed, max_nodes, game, source, within, symmetries
    )


def _evaluate_policy(request: requests.EvaluateRequest, policy: Any, callbacks: requests.Callbacks) -> EvaluateResult:
    """Measures a policy of any kind: on the whole tree, or by play where there is none."""
    source = policy_source.find(policy)
    named = game_spec.resolve(request.game)
    try:
        # In double precision, so that what is called exact has more digits than anybody reads.
        with jax.enable_x64(True):
            task = tasks.require_tree_task(
                solve_requests.prepare(
                    named,
                    "tree",
                    callbacks,
                    max_nodes=request.max_nodes,
                    within=request.within,
                    symmetries=request.symmetries,
                )
            )
    except game_tree.TooLargeError as error:
        return _bound_policy(request, named, source, callbacks, error)
    with callbacks.stage(f"asking {source.name}"):
        policies, missing = _tabulate(source, named, task)
    if any(map(len, missing)):
        callbacks.warn(_describe_missing(source.name, task.tree, missing))
    with jax.enable_x64(True):
        metrics = task.metrics(policies)
    measured = solution.Solution(task.tree, source.name, policies, (metrics,))
    return EvaluateResult(task, measured, missing=missing)


def _tabulate(
    source: policy_source.PolicySource, named: game_spec.ResolvedGame, task: tasks.TreeTask
) -> policy_source.TabulatedPolicies:
    """The policies at all information sets of a tree; at all images of those of a tree without symmetric ones."""
    group = None if task.tree.is_whole else symmetry_group.build(named.compile())
    if group is None:
        return source.tabulate(named, task)
    missing: list[tuple[npt.NDArray[np.int64], ...]] = []

    def images() -> Iterator[tabular_policies.Policies]:
        for image in symmetric_policies.images(task.tree, group):
            tabulated = source.tabulate(named, dataclasses.replace(task, tree=image))
            missing.append(tabulated.missing)
            yield tabulated.policies

    policies = symmetric_policies.from_images(task.tree, images())
    return policy_source.TabulatedPolicies(policies, missing[0])


def _describe_missing(name: str, tree: game_tree.GameTree, missing: tuple[npt.NDArray[np.int64], ...]) -> str:
    """Counts the information sets that a policy lacks, and names the first of each player."""
    total, lacking = sum(player.sets for player in tree.players), sum(map(len, missing))
    named = []
    for player, sets in zip(tree.players, missing, strict=True):
        if len(sets):
            first = ", ".join(f"'{game_tree.one_line(player.labels[n])}'" for n in sets[:_SHOWN_MISSING].tolist())
            rest = len(sets) - _SHOWN_MISSING
            named.append(f"{player.name} {first}{f' and {rest:,} more' if rest > 0 else ''}")
    return (
        f"{name} has nothing for {lacking:,} of {total:,} information sets, which are played uniformly: "
        f"{'; '.join(named)}"
    )


def _bound_policy(
    request: requests.EvaluateRequest,
    named: game_spec.ResolvedGame,
    source: policy_source.PolicySource,
    callbacks: requests.Callbacks,
    error: game_tree.TooLargeError,
) -> EvaluateResult:
    """Estimates the values of a policy by matches, and bounds its exploitability from below."""
    if named.game.is_open_spiel or named.tree is not None:
        raise game_tree.TooLargeError(error.reason, "A policy can be judged only on the whole tree") from None
    propnet = named.compiled or solve_requests.compile_propnet(named.game, callbacks, request.within)
    task = tasks.make_table_task(named.game, propnet=propnet)
    steps = game_facts.probe(propnet, request.seed).step_capacity
    table, function = source.to_table(named.game, task.env), source.to_function(named)
    if table is None and function is None:
        raise game_tree.TooLargeError(
            error.reason,
            f"{source.name} can be judged only on the whole tree; functions, networks and the results of samplers "
            "can be bounded by play",
        ) from None
    hint = "" if request.symmetries else size_advice.symmetry_hint(propnet)
    callbacks.warn(f"{error.reason}: values are estimated by matches, and exploitability is bounded from below{hint}")
    if table is not None:
        policies, _ = table_policy.to_tabular(table, task.env, task.tree)
        scores = table_solver.estimate_value(task, table, request.seed, 0)
        value, value_error = scores.mean, scores.error
        bound = _search_bound(request, _PlayInputs(task.packed, table, steps), named.game.spec, callbacks)
    else:
        assert function is not None
        sparse = function_policies.tabulate(function, source.name, task.tree)
        policies = policy_source.fill_missing(task.tree, sparse).policies
        with callbacks.stage(f"bound of {named.game.spec}"):
            seconds = search_bounds.DEFAULT_SECONDS if request.bound_seconds is None else request.bound_seconds
            result = function_bound.search(
                task.packed, function, source.name, seconds=seconds, steps=steps, seed=request.seed
            )
        if result.missing:
            callbacks.warn(
                f"{source.name} has nothing for {result.missing:,} information sets that matches reached, which are "
                "played uniformly"
            )
        table, value, value_error, bound = (
            result.table,
            result.value,
            result.value_error,
            BoundResult(result.bound, False),
        )
    load = int(hash_table.count_used(table.table)) / len(table.table.high)
    metrics = driver.Metrics(0, 0.0, value, (), load=load, value_error=value_error)
    measured = solution.Solution(task.tree, source.name, policies, (metrics,), table=table)
    return EvaluateResult(task, measured, bound)


def _named(request: requests.EvaluateRequest, config: result_folder.Config) -> game_spec.ResolvedGame:
    """The game that was solved, with the payoffs of the run."""
    if request.game is None:
        return game_spec.ResolvedGame(config.game)
    named, solved = game_spec.resolve(request.game), config.game
    return named._replace(game=named.game._replace(payoff=solved.payoff, goal_conflict=solved.goal_conflict))


def _from_table(
    request: requests.EvaluateRequest,
    task: tasks.TableTask,
    algorithm: algorithms.Algorithm,
    last: driver.Metrics,
) -> _SavedPolicies:
    """Measures a table policy: exactly where the game is unrolled, else by matches."""
    table = policy_files.read_table_policy(request.folder / result_folder.POLICY, task.env.num_actions)
    policies, _ = table_policy.to_tabular(table, task.env, task.tree)
    if task.tree_task is None:
        metrics = table_solver.metrics_from_matches(task, algorithm, table, last)
    else:
        metrics = task.tree_task.metrics(policies)

    def play_inputs() -> _PlayInputs:
        steps = algorithm.sampling_config.max_steps or game_facts.probe(task.env.propnet, request.seed).step_capacity
        return _PlayInputs(task.packed, table, steps)

    return _SavedPolicies(policies, metrics, play_inputs, table)


def _from_states(request: requests.EvaluateRequest, task: tasks.StateTask) -> _SavedPolicies:
    policies = policy_files.read_tree_policies(request.folder / result_folder.POLICY, task.tree)

    def play_inputs() -> _PlayInputs:
        game = packed_env.PackedEnv(env.Env(task.propnet, payoffs.Payoffs(task.tree.offset, task.is_zero_sum, True)))
        return _PlayInputs(game, table_policy.from_states(policies, task.graph, game.env), task.graph.depth)

    return _SavedPolicies(policies, task.metrics(policies), play_inputs)


def _from_tree(
    request: requests.EvaluateRequest,
    named: game_spec.ResolvedGame,
    original: tasks.TreeTask,
    task: tasks.TreeTask,
    callbacks: requests.Callbacks,
) -> _SavedPolicies:
    policies = policy_files.read_tree_policies(request.folder / result_folder.POLICY, task.tree)

    def play_inputs() -> _PlayInputs:
        tree = original.tree
        units = payoffs.Payoffs(tree.offset, tree.zero_sum, True)
        propnet = named.compiled or solve_requests.compile_propnet(named.game, callbacks)
        game = packed_env.PackedEnv(env.Env(propnet, units))
        if tree.is_whole:
            table = table_policy.from_tabular(policies, game.env, tree)
        else:
            table = policy_files.load_table_policy(request.folder, named.game, game.env)
        return _PlayInputs(game, table, len(tree.counts.nodes) - 1)

    return _SavedPolicies(policies, task.metrics(policies), play_inputs)


def _search_bound(
    request: requests.EvaluateRequest, inputs: _PlayInputs, name: str, callbacks: requests.Callbacks
) -> BoundResult:
    seconds = search_bounds.DEFAULT_SECONDS if request.bound_seconds is None else request.bound_seconds
    bound, interrupted = None, False
    with callbacks.stage(f"bound of {name}") as note:
        config, key = search_bounds.make_config(inputs.game, inputs.steps), jax.random.key(request.seed)
        try:
            for bound in search_bounds.search(inputs.game, inputs.policy, key, seconds=seconds, config=config):
                note(_format_bound(bound))
        except KeyboardInterrupt:
            interrupted = True
    if bound is None:
        raise KeyboardInterrupt
    return BoundResult(bound, interrupted)


def _format_bound(bound: estimates.ExploitabilityBound) -> str:
    if bound.exploitability is not None:
        return f"lower bound on exploitability {bound.exploitability:.3g} ± {bound.standard_error:.2g}"
    return ", ".join(
        f"lower bound on the improvement of {row.player} {row.improvement:.3g}" for row in bound.improvements
    )
