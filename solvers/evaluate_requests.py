"""From a result folder to what its policies are worth: measured again, and bounded by play in games of any size."""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import jax

from gdlx.envs import env, game_facts, payoffs
from gdlx.envs.packed import packed_env
from gdlx.propnet.common import limits
from gdlx.solvers import algorithms, requests, solution, solve_requests, tabular_policies, tasks
from gdlx.solvers.bounds import estimates, search_bounds
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.runs import driver, policy_files, result_folder, table_solver


class BoundResult(NamedTuple):
    """The last bound that was found in the time."""

    bound: estimates.ExploitabilityBound
    interrupted: bool


@dataclasses.dataclass(frozen=True)
class EvaluateResult:
    """What a result is worth now. In a game with a modelled opponent, metrics are those of the restricted game."""

    task: tasks.Task
    solution: solution.Solution
    bound_result: BoundResult | None = None


class _PlayInputs(NamedTuple):
    """A game and policies as play needs them. `steps` is the capacity for joint moves."""

    game: packed_env.PackedEnv
    policy: table_policy.TablePolicy
    steps: int


class _SavedPolicies(NamedTuple):
    """What a run left."""

    policies: tabular_policies.Policies
    metrics: driver.Metrics
    played: Callable[[], _PlayInputs]  # in the game as it is, without a modelled opponent


def load_solution(folder: str | pathlib.Path, *, max_nodes: int = limits.NODES) -> solution.Solution:
    """The solution in a result folder, its policies measured again.

    Args:
      folder: what `gdlx solve` or `SolveRequest.results` wrote.
      max_nodes: refuse to unroll games with more joint actions in one step than this.

    Raises:
      ResultError: where the folder is not that of a result, or its files are damaged.
      TooLargeError: where the game is larger than `max_nodes`.

    >>> import tempfile
    >>> from gdlx.solvers import requests, solve_requests
    >>> with tempfile.TemporaryDirectory() as results:
    ...     request = requests.SolveRequest("kuhn_poker", iterations=100, results=pathlib.Path(results))
    ...     saved = solve_requests.execute(request)
    ...     loaded = load_solution(saved.folder)
    >>> abs(loaded.exploitability - saved.solution.exploitability) < 1e-6
    True
    """
    return execute(requests.EvaluateRequest(pathlib.Path(folder), max_nodes=max_nodes)).solution


def execute(request: requests.EvaluateRequest, callbacks: requests.Callbacks = requests.NO_CALLBACKS) -> EvaluateResult:
    """Do what a request asks for."""
    folder = request.folder
    config = result_folder.read_config(folder)
    # Policies of a game that was unrolled to be sampled are measured without its edges.
    needs: algorithms.GameRepresentation = "rules" if config.algorithm.needs == "rules" else "tree"
    original, task = solve_requests.load_task(folder, config, needs, callbacks, max_nodes=request.max_nodes)
    earlier = result_folder.read_metrics(folder, len(task.players))
    last = earlier[-1] if earlier else driver.Metrics(0, 0.0, (), ())
    if isinstance(task, tasks.TableTask):
        saved = _from_table(request, task, config.algorithm, last)
    else:
        saved = _from_tree(request, tasks.require_tree_task(original), tasks.require_tree_task(task), callbacks)
    metrics = saved.metrics._replace(
        iterations=last.iterations, seconds=last.seconds, samples=last.samples, load=last.load
    )
    found = solution.Solution(task.tree, config.algorithm.name, saved.policies, (metrics,))
    bounded = _search_bound(request, saved.played(), task.game.spec, callbacks) if request.bound else None
    return EvaluateResult(task, found, bounded)


def _from_table(
    request: requests.EvaluateRequest,
    task: tasks.TableTask,
    algorithm: algorithms.Algorithm,
    last: driver.Metrics,
) -> _SavedPolicies:
    """Measured exactly where that is possible, else by matches."""
    table = policy_files.read_table_policy(request.folder / result_folder.POLICY, task.env.num_actions)
    policies, _ = table_policy.to_tabular(table, task.env, task.tree)
    if task.tree_task is None:
        metrics = table_solver.metrics_from_matches(task, algorithm, table, last)
    else:
        metrics = task.tree_task.metrics(policies)

    def played() -> _PlayInputs:
        steps = algorithm.sampling_config.max_steps or game_facts.probe(task.env.net, request.seed).step_capacity
        return _PlayInputs(task.packed, table, steps)

    return _SavedPolicies(policies, metrics, played)


def _from_tree(
    request: requests.EvaluateRequest,
    original: tasks.TreeTask,
    task: tasks.TreeTask,
    callbacks: requests.Callbacks,
) -> _SavedPolicies:
    policies = policy_files.read_tree_policies(request.folder / result_folder.POLICY, task.tree)

    def played() -> _PlayInputs:
        tree = original.tree
        units = payoffs.Payoffs(tree.offset, tree.zero_sum, True)
        game = packed_env.PackedEnv(env.Env(solve_requests.compile_propnet(original.game, callbacks), units))
        return _PlayInputs(game, table_policy.from_tabular(policies, game.env, tree), len(tree.counts.nodes) - 1)

    return _SavedPolicies(policies, task.metrics(policies), played)


def _search_bound(
    request: requests.EvaluateRequest, played: _PlayInputs, name: str, callbacks: requests.Callbacks
) -> BoundResult:
    seconds = search_bounds.DEFAULT_SECONDS if request.bound_seconds is None else request.bound_seconds
    found, interrupted = None, False
    with callbacks.stage(f"bound of {name}") as note:
        plan, key = search_bounds.make_config(played.game, played.steps), jax.random.key(request.seed)
        try:
            for found in search_bounds.search(played.game, played.policy, key, seconds=seconds, config=plan):
                note(_in_words(found))
        except KeyboardInterrupt:
            interrupted = True
    if found is None:
        raise KeyboardInterrupt
    return BoundResult(found, interrupted)


def _in_words(found: estimates.ExploitabilityBound) -> str:
    if found.exploitability is not None:
        return f"bound on exploitability {found.exploitability:.3g} ± {found.standard_error:.2g}"
    return ", ".join(f"bound on the gain of {own.player} {own.improvement:.3g}" for own in found.improvements)
