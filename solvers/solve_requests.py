"""`gdlx.solve`, and the execution of solve requests, in memory or with a result folder."""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from gdlx.envs import game_spec
from gdlx.envs.trees import game_tree
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import errors
from gdlx.propnet.common import limits as limiting
from gdlx.solvers import algorithms, plan, requests, size_advice, solution, tasks
from gdlx.solvers.exact import restricted_nash
from gdlx.solvers.runs import driver, policy_files, result_folder, solver_run

_METHODS: Mapping[algorithms.Kind, str] = {"exact": "linear programming", "backward-induction": "backward induction"}
# For algorithms that need a network: builds a function that solves the game of a request.
DirectSolver = Callable[[], solver_run.DirectResult]
NetworkSolverFactory = Callable[[requests.SolveRequest, tasks.TreeTask], DirectSolver]


@dataclasses.dataclass(frozen=True)
class SolveResult:
    """The outcome of a solve request.

    >>> result = execute(requests.SolveRequest("kuhn_poker", "cfr+", iterations=100))
    >>> result.solution.algorithm, result.folder, result.interrupted, result.table_bits
    ('cfr+', None, False, 0)
    """

    task: tasks.Task
    algorithm: algorithms.Algorithm
    solution: solution.Solution
    folder: pathlib.Path | None  # the result folder; None if nothing was written
    interrupted: bool = False  # by Ctrl-C: the solution is that of the last iteration before
    dropped_visits: int = 0  # of the last iteration, because the hash table was full
    unplayable: int = 0  # sampled trajectories that ended because some role had no legal move
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # further facts for reports, as JSON
    choice: plan.Choice | None = None  # what `auto` chose, and why

    def __repr__(self) -> str:
        return f"SolveResult({self.solution!r})"

    @property
    def table_bits(self) -> int:
        """Base-2 logarithm of the size of the hash table; 0 without one."""
        return (self.algorithm.sampling_config.table or 0) if self.algorithm.is_sampled else 0


def solve(
    game: "game_spec.GameLike | None" = None,
    algorithm: str | algorithms.Algorithm = algorithms.DEFAULT,
    *,
    rules: str | None = None,
    iterations: int | None = None,
    seconds: float | None = None,
    target: float | str | None = None,
    every: int | None = None,
    report: Callable[[driver.Metrics], None] | None = None,
    max_nodes: int = limiting.NODES,
    states: bool = False,
    symmetries: bool = False,
    **settings: Any,
) -> solution.Solution:
    """Solves a game and returns the policies of all players.

    Stops at whichever comes first of `iterations`, `seconds` and `target`; without any of them, after 1,000 iterations.

    Args:
      game: a library name (`goofspiel:cards=4`), the path of a rulesheet, `spiel:NAME` for a game of OpenSpiel, a
        `GameSpec`, `Rulesheet`, `PropNet` or `Env`, or an unrolled game.
      algorithm: a name of `gdlx.solvers.algorithms.ALGORITHMS`, or an algorithm; `"auto"` chooses what fits the game:
        backward induction if players always know the state, discounted CFR if the game or else its graph of states can
        be unrolled, else sampling into a hash table, for a minute if nothing else is specified. `gdlx.solvers.plan`
        decides that.
      rules: the text of the rulesheet, instead of `game`.
      iterations: stop after this many iterations.
      seconds: stop after this many seconds of solving; compilation and evaluation do not count.
      target: stop at this exploitability, in payoff units or relative to the payoff range as in "0.01%".
      every: measure after every so many iterations; by default at intervals that grow with the iterations.
      report: called with the metrics of every measurement.
      max_nodes: refuse games with more joint actions in one step than this, as in `gdlx.unroll`.
      states: run a CFR variant on the graph of states instead of the tree; every player must always know the state.
      symmetries: whether to solve for one of all information sets that symmetries of the rules exchange, with the same
        result in less time and memory. For the CFR family and fictitious play.
      settings: settings of the algorithm, such as `gamma=2.0`.

    Returns:
      The average policies, or those of an exact solver, with their metrics.

    Raises:
      UnknownAlgorithmError: there is no such algorithm, or it has no such setting.
      StopError: `iterations`, `seconds` or `target` is out of range.
      TooLargeError: the game is too large to unroll, as the algorithm needs it, or does not end.

    >>> import gdlx
    >>> solution = gdlx.solve("kuhn_poker", "cfr+", iterations=1000)
    >>> round(solution.value[0], 3), solution.exploitability < 1e-3
    (-0.056, True)
    """
    named = game_spec.resolve(game, rules=rules)
    request = requests.SolveRequest(
        named,
        algorithm,
        iterations,
        seconds,
        target,
        every,
        settings,
        states=states,
        max_nodes=max_nodes,
        symmetries=symmetries,
    )
    result = execute(request, requests.NO_CALLBACKS if report is None else requests.Callbacks(on_metrics=report))
    if result.interrupted:
        raise KeyboardInterrupt
    return result.solution


def execute(
    request: requests.SolveRequest,
    callbacks: requests.Callbacks = requests.NO_CALLBACKS,
    network_solver: NetworkSolverFactory | None = None,
) -> SolveResult:
    """Execute a request. `network_solver` builds the solver of an algorithm that needs a network.

    A new result folder is removed again if nothing was solved; a resumed one never is.
    """
    choice = None
    if request.is_auto:
        request, task, choice = _choose(request, callbacks)
    else:
        task = _task(request, callbacks)
    algorithm = request.configured_algorithm
    stop = solver_run.make_stop_condition(task, request.iterations, request.seconds, request.target)
    direct_solver = (
        network_solver(request, tasks.require_tree_task(task))
        if network_solver and request.network is not None
        else None
    )
    folder = _folder(request)
    if not algorithm.is_direct and not task.is_zero_sum and len(task.players) > 1:
        callbacks.warn(
            f"{task.game.spec} is not a two-player zero-sum game: no algorithm here is guaranteed to converge to an "
            "equilibrium; the best-response improvements measure how close the policies are"
        )
    run: solver_run.AnyRun | None = None
    interrupted = False
    try:
        run = solver_run.start_run(
            task,
            algorithm,
            folder,
            resume=request.resume is not None,
            checkpoint_seconds=request.checkpoint_seconds,
            direct_solver=direct_solver,
        )
        done = 0 if isinstance(run, solver_run.DirectRun) else int(run.state.t)
        if request.resume is not None and done >= stop.last:
            callbacks.warn(
                f"{folder} has {done:,} iterations already, and these are its results; for more: "
                f"`gdlx solve --resume {folder} --iterations {2 * done}`"
            )
        method = _METHODS.get(algorithm.kind, algorithm.name)
        with callbacks.stage(f"{method} on {task.game.spec}") as note:
            for metrics in run.iterate_metrics(stop, request.every):
                note(format_progress(metrics))
                callbacks.on_metrics(metrics)
    except (errors.UserError, KeyboardInterrupt) as error:
        interrupted = isinstance(error, KeyboardInterrupt) and run is not None and bool(run.metrics)
        if not interrupted:
            if folder is not None and request.resume is None and (run is None or not run.metrics):
                result_folder.discard(folder)
            raise
    assert run is not None
    policies = run.finish()
    return SolveResult(
        task, algorithm, policies, folder, interrupted, run.dropped_visits, run.unplayable, run.facts, choice
    )


_PLANNED: Mapping[algorithms.GameRepresentation, tuple[plan.Method, ...]] = {
    "tree": ("tree", "blocks"),
    "terminals": ("tree",),
    "edges": ("tree",),
    "rules": ("sampling",),
    "states": ("states",),
}


def make_plan(request: requests.SolveRequest, callbacks: requests.Callbacks = requests.NO_CALLBACKS) -> plan.Plan:
    """Plan what `execute` would do with a request, without doing it.

    >>> make_plan(requests.SolveRequest("kuhn_poker", "cfr+"))
    Plan(kuhn_poker: cfr+ on the unrolled game: it has about 58 histories)
    """
    named, seed = request.named, request.settings.get("seed", 0)
    if named.tree is not None or named.game.is_open_spiel:
        raise errors.UserError(f"{named.game.spec} has no rules to estimate sizes from: its tree is built as a whole")
    propnet = named.compiled or compile_propnet(named.game, callbacks, request.within)
    allowed, name = tuple(request.candidates), None
    if not request.is_auto:
        configured = request.configured_algorithm
        allowed, name = _PLANNED[request.needs], configured.name
        if configured.kind == "states":
            allowed = ("cfr-on-states",)
    with callbacks.stage(f"planning {named.game.spec}"):
        return plan.make_plan(
            named.game,
            propnet,
            max_nodes=request.max_nodes,
            allowed=allowed,
            algorithm=name,
            seed=seed,
            symmetries=request.symmetries,
        )


def _choose(
    request: requests.SolveRequest, callbacks: requests.Callbacks
) -> tuple[requests.SolveRequest, tasks.Task, plan.Choice | None]:
    """Chooses the algorithm that fits the game, and prepares the game; what turns out too large is sampled."""
    named, candidates = request.named, request.candidates
    is_tree_needed = request.opponent is not None or named.tree is not None or named.game.is_open_spiel
    if is_tree_needed and "tree" in candidates:
        chosen = dataclasses.replace(request, algorithm=candidates["tree"], settings={}, simultaneous=False)
        return chosen, _task(chosen, callbacks), None
    propnet = named.compiled or compile_propnet(named.game, callbacks, request.within)
    with callbacks.stage(f"planning {named.game.spec}"):
        choice = plan.choose(named.game, propnet, max_nodes=request.max_nodes, allowed=tuple(candidates))
    while choice.method is not None:
        callbacks.on_choice(choice)
        chosen = _with_choice(request, named._replace(compiled=propnet), choice.method, callbacks)
        try:
            return chosen, _task(chosen, callbacks), choice
        except game_tree.TooLargeError as error:
            if choice.fallback is None:
                raise
            choice = plan.Choice(choice.fallback, f"it is too large after all: {error.reason}")
    raise game_tree.TooLargeError(choice.advice or choice.reason)


def _with_choice(
    request: requests.SolveRequest, named: game_spec.ResolvedGame, method: plan.Method, callbacks: requests.Callbacks
) -> requests.SolveRequest:
    """The request with the algorithm of a method. Sampling stops by time, because it cannot measure exploitability."""
    algorithm, target, seconds = request.candidates[method], request.target, request.seconds
    if method == "sampling":
        assert named.compiled is not None
        config = algorithm.sampling_config
        if "table" not in request.settings:
            config = dataclasses.replace(config, table=size_advice.table_bits(named.compiled))
        algorithm = dataclasses.replace(algorithm, sampling=config)
        if target is not None:
            callbacks.warn(
                f"{named.game.spec} is too large to measure exploitability, so the target is ignored: sampling stops "
                "by time or iterations"
            )
            target = None
        if request.iterations is None and seconds is None:
            seconds = plan.SAMPLING_SECONDS
    return dataclasses.replace(
        request, game=named, algorithm=algorithm, settings={}, simultaneous=False, target=target, seconds=seconds
    )


def _task(request: requests.SolveRequest, callbacks: requests.Callbacks) -> tasks.Task:
    """Prepares the game as the algorithm needs it; restricted if an opponent is modelled, or was when the run began."""
    if request.resume is not None:
        return _resumed_task(request, request.resume, callbacks)
    task = prepare(
        request.named,
        request.needs,
        callbacks,
        max_nodes=request.max_nodes,
        within=request.within,
        symmetries=request.symmetries,
    )
    if request.symmetries and task.tree.is_whole:
        callbacks.warn(f"no symmetry of {task.game.spec} was found, so it is solved as a whole")
    if request.opponent is None:
        return task
    original = tasks.require_tree_task(task)
    restricted_nash.require_two_player_zero_sum(original.tree)
    player = restricted_nash.player_index(original, request.opponent.player)
    model = policy_files.load_policies(request.opponent.policy, original.game, original.tree, player=player)[player]
    restriction = restricted_nash.Restriction(player, model, request.opponent.p)
    return restricted_nash.make_restricted_task(original, restriction)


def _resumed_task(request: requests.SolveRequest, folder: pathlib.Path, callbacks: requests.Callbacks) -> tasks.Task:
    config = result_folder.read_config(folder)
    if config.x64 != (jnp.result_type(float) == np.float64):
        raise result_folder.ResultError(
            f"{folder} was computed in {'double' if config.x64 else 'single'} precision; resume it in the same"
        )
    _, task = load_task(
        folder,
        config,
        request.needs,
        callbacks,
        max_nodes=request.max_nodes,
        within=request.within,
    )
    if config.algorithm != request.configured_algorithm:
        result_folder.write_config(folder, dataclasses.replace(config, algorithm=request.configured_algorithm))
    return task


def load_task(
    folder: pathlib.Path,
    config: result_folder.Config,
    needs: algorithms.GameRepresentation,
    callbacks: requests.Callbacks,
    *,
    max_nodes: int,
    within: limiting.Limits = limiting.Limits(),
    named: game_spec.ResolvedGame | None = None,
) -> tuple[tasks.Task, tasks.Task]:
    """Loads the game of a result, and the one that was solved: restricted if an opponent was modelled, else the same.

    `named` is the game, if it is not to be found by its name.
    """
    named = named or game_spec.ResolvedGame(config.game)
    if config.opponent_model is not None and needs == "tree":
        needs = "terminals"
    original = prepare(named, needs, callbacks, max_nodes=max_nodes, within=within, symmetries=config.symmetries)
    policy_files.require_same_rules(folder, config, named.game, original.digest)
    if config.opponent_model is None:
        return original, original
    return original, restricted_nash.load_restricted_task(
        tasks.require_tree_task(original), config.opponent_model, folder
    )


def prepare(
    named: game_spec.ResolvedGame,
    needs: algorithms.GameRepresentation,
    callbacks: requests.Callbacks = requests.NO_CALLBACKS,
    *,
    max_nodes: int = limiting.NODES,
    within: limiting.Limits = limiting.Limits(),
    symmetries: bool = False,
) -> tasks.Task:
    """Compiles a game, and unrolls it if needed, reporting the progress of both."""
    game, propnet = named.game, named.compiled
    if named.tree is not None:
        if symmetries and named.tree.is_whole:
            raise requests.RequestError(
                "symmetries are found in rules, not in a tree: pass what it was unrolled from, or "
                "`gdlx.unroll(game, symmetries=True)`"
            )
        return tasks.make_tree_task(game, named.tree)
    if propnet is None and not game.is_open_spiel:
        propnet = compile_propnet(game, callbacks, within)
    if needs == "rules":
        return tasks.prepare(game, needs, propnet=propnet)
    what, nodes_are = ("building the states of", "states") if needs == "states" else ("unrolling", "nodes")
    with callbacks.stage(f"{what} {game.spec}") as note:

        def report(step: int, nodes: int) -> None:
            note(f"step {step}, {nodes:,} {nodes_are}")

        try:
            task = tasks.prepare(
                game, needs, propnet=propnet, max_nodes=max_nodes, symmetries=symmetries, report=report
            )
        except game_tree.TooLargeError as error:
            if propnet is None or needs == "states":
                raise
            raise size_advice.explain(game, propnet, error, max_nodes, symmetries=symmetries) from None
    if task.tree.unplayable:
        callbacks.warn(
            f"{task.tree.unplayable:,} terminals of {game.spec} are states in which some role has no legal move"
        )
    return task


def compile_propnet(
    game: game_spec.GameSpec, callbacks: requests.Callbacks, within: limiting.Limits = limiting.Limits()
) -> propnet.PropNet:
    """Compiles a game to its propnet, or reads it from a file, reporting every pass."""
    with callbacks.stage(f"compiling {game.spec}") as note:
        return game.compile(within, saved=True, report=lambda done: note(done.name))


def _folder(request: requests.SolveRequest) -> pathlib.Path | None:
    if request.resume is not None or request.results is None:
        return request.resume
    suffix = "-states" if request.configured_algorithm.kind == "states" else ""
    if request.opponent is not None:
        suffix = f"-p={request.opponent.p:g}"
    return result_folder.create_folder(
        request.results, request.resolved_game.spec, request.configured_algorithm.name + suffix
    )


def format_progress(metrics: driver.Metrics) -> str:
    """Describes the progress of a run in one line."""
    parts = [f"{metrics.iterations:,} iterations"]
    if metrics.improvements:
        name = "largest improvement" if metrics.exploitability is None else "exploitability"
        parts.append(f"{name} {metrics.error:.3g}")
    if metrics.samples and metrics.seconds:
        parts.append(f"{metrics.samples / metrics.seconds:,.0f} trajectories/s")
    if metrics.load is not None:
        parts.append(f"table {metrics.load:.1%} full")
    return ", ".join(parts)
