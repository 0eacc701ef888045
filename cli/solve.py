"""The command `solve`: compute an equilibrium."""

import dataclasses
import functools
import pathlib
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gdlx.cli import bounds_table, console, plan_table, shared_options, solution_table
from gdlx.propnet.common import interrupts

if TYPE_CHECKING:
    from gdlx.solvers import evaluate_requests, requests, tasks
    from gdlx.solvers import solve_requests as solving

_ALGORITHM, _SAMPLING, _OPPONENT = "Algorithm settings", "Sampling", "Opponent model"


@dataclasses.dataclass(frozen=True)
class Stopping:
    """When to stop, and how often to measure."""

    iterations: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Stop after this many iterations; 1 000 unless --time or --target is set.",
            rich_help_panel=shared_options.STOPPING,
        ),
    ] = None
    time: Annotated[
        float | None,
        typer.Option(
            help="Stop after this many seconds of solving, including those before --resume.",
            rich_help_panel=shared_options.STOPPING,
        ),
    ] = None
    target: Annotated[
        str | None,
        typer.Option(
            help="Stop at this exploitability, e.g. 0.001, or 0.01% of the payoff range.",
            rich_help_panel=shared_options.STOPPING,
        ),
    ] = None
    every: Annotated[
        int | None,
        typer.Option(
            min=1, help="Iterations between two measurements of exploitability.", rich_help_panel=shared_options.RESULT
        ),
    ] = None


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of algorithms; None leaves the default."""

    alpha: Annotated[
        float | None, typer.Option(help="Exponent of the discount of positive regrets.", rich_help_panel=_ALGORITHM)
    ] = None
    beta: Annotated[
        float | None, typer.Option(help="Exponent of the discount of negative regrets.", rich_help_panel=_ALGORITHM)
    ] = None
    gamma: Annotated[
        float | None,
        typer.Option(help="Weight iteration t of the average policy by t^gamma.", rich_help_panel=_ALGORITHM),
    ] = None
    exploration: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Probability of a uniform action, in policies or in sampling.",
            rich_help_panel=_ALGORITHM,
        ),
    ] = None
    batch: Annotated[
        int | None, typer.Option(min=1, help="Trajectories sampled in each iteration.", rich_help_panel=_SAMPLING)
    ] = None
    decay: Annotated[
        float | None,
        typer.Option(help="Step size of the baselines of vr-mccfr, 0 to 1.", rich_help_panel=_SAMPLING),
    ] = None
    width: Annotated[
        float | None,
        typer.Option(help="Lanes for each traversal of es-mccfr and as-mccfr.", rich_help_panel=_SAMPLING),
    ] = None
    table: Annotated[
        int | None,
        typer.Option(
            help="Do not unroll the game: store 2^TABLE information sets in a hash table.",
            min=4,
            max=28,
            rich_help_panel=_SAMPLING,
        ),
    ] = None
    grow: Annotated[
        Literal["all", "first"] | None,
        typer.Option(
            help="Add all new information sets of a trajectory to the table (default), or the first.",
            rich_help_panel=_SAMPLING,
        ),
    ] = None
    max_steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With --table: maximum length of a trajectory; estimated from random play by default.",
            rich_help_panel=_SAMPLING,
        ),
    ] = None


@dataclasses.dataclass(frozen=True)
class Opponent:
    """Options of restricted Nash responses."""

    restrict: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="A policy that the opponent is forced to play with probability P: a result folder, or a .npz, .csv or "
            ".json file.",
            metavar="OPPONENT",
            rich_help_panel=_OPPONENT,
        ),
    ] = None
    p: Annotated[
        float | None,
        typer.Option(help="Probability that the opponent plays --restrict, 0 to 1.", rich_help_panel=_OPPONENT),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            help="The player whose policy --restrict is; the last one by default.",
            metavar="PLAYER",
            rich_help_panel=_OPPONENT,
        ),
    ] = None

    def request(self) -> "requests.OpponentModel | None":
        """Return the opponent model, or None without --restrict."""
        if self.restrict is None:
            if self.p is not None or self.model is not None:
                option = "--p" if self.p is not None else "--model"
                raise typer.BadParameter(f"{option} needs --restrict, the policy of an opponent")
            return None
        if self.p is None:
            raise typer.BadParameter("--restrict needs --p, the probability that the opponent plays that policy")
        from gdlx.solvers import requests

        return requests.OpponentModel(self.restrict, self.p, self.model)


def solve(
    context: typer.Context,
    game: shared_options.GameOrResume = None,
    algorithm: Annotated[str, typer.Option(help="An algorithm listed above.")] = "auto",
    *,
    stopping: Stopping,
    settings: Settings,
    simultaneous: Annotated[
        bool,
        typer.Option(
            "--simultaneous", help="Update all players at once instead of alternating.", rich_help_panel=_ALGORITHM
        ),
    ] = False,
    states: Annotated[
        bool,
        typer.Option(
            "--states",
            help="Solve the graph of states instead of the tree, where players always know the state; for cfr and its "
            "variants.",
            rich_help_panel=_ALGORITHM,
        ),
    ] = False,
    network: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="Value networks for depth-limited, from `gdlx train --learner supervised`.",
            metavar="DIR",
            rich_help_panel=_ALGORITHM,
        ),
    ] = None,
    opponent: Opponent,
    resume: Annotated[
        pathlib.Path | None,
        typer.Option(help="Resume the run in this folder.", metavar="DIR", rich_help_panel=shared_options.RESULT),
    ] = None,
    results: Annotated[
        pathlib.Path,
        typer.Option(help="Where to create the result folder.", metavar="DIR", rich_help_panel=shared_options.RESULT),
    ] = pathlib.Path("results"),
    checkpoint: shared_options.Checkpoint = 10.0,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only print what would be done and why, with estimated sizes, memory and time.",
            rich_help_panel=shared_options.RESULT,
        ),
    ] = False,
    payoff: shared_options.Payoff = "auto",
    goal_conflict: Annotated[
        Literal["refuse", "max"],
        typer.Option(
            help="Terminal states with several goal values: refuse the game, or use the highest.",
            rich_help_panel=shared_options.READING,
        ),
    ] = "refuse",
    max_nodes: shared_options.MaxNodes = shared_options.DEFAULT_NODES,
    symmetries: Annotated[
        bool,
        typer.Option(
            "--symmetries",
            help="Solve for one of all information sets that symmetries of the rules exchange: the same result in "
            "less time and memory.",
            rich_help_panel=_ALGORITHM,
        ),
    ] = False,
    compiling: shared_options.Compiling,
) -> None:
    """Compute an equilibrium: policies for all players, and their exploitability.

    Algorithms: cfr, cfr+, lcfr, dcfr, dcfr-half, pcfr+, pdcfr+, hs-dcfr, hs-dcfr-15, hs-pcfr+ (counterfactual regret
    minimisation), os-mccfr, vr-mccfr, es-mccfr and as-mccfr (Monte Carlo CFR: outcome sampling, the same with
    baselines, external sampling, average strategy sampling), fp (fictitious play), lp (linear programming: exact, for
    small two-player zero-sum games), backward-induction (exact, where players always know the state: turn-taking games
    such as tictactoe, and two-player zero-sum games with simultaneous moves), depth-limited (CFR+ on a few steps at a
    time, with --network as value function). By default, auto chooses what fits the game: backward-induction if players
    always know the state, dcfr if the game can be unrolled or else its --states can, else os-mccfr with a --table for
    --time seconds (60), and then a lower bound on the exploitability of what that found.

    With --restrict and --p the other player's policy is a restricted Nash response: it exploits that opponent nearly
    as well as possible, and is not much more exploitable than an equilibrium.
    """
    options = console.options(context)
    if (game is None) == (resume is None):
        raise typer.BadParameter("name a GAME to solve, or a folder to --resume, and not both")
    if dry_run and resume is not None:
        raise typer.BadParameter("--dry-run plans a new run; leave out --resume")
    modelled = opponent.request()

    from gdlx.envs import compilation_cache, devices, game_spec
    from gdlx.solvers import requests
    from gdlx.solvers import solve_requests as solving

    compilation_cache.enable()
    common: dict[str, Any] = {
        "iterations": stopping.iterations,
        "seconds": stopping.time,
        "target": stopping.target,
        "every": stopping.every,
        "checkpoint_seconds": checkpoint,
        "max_nodes": max_nodes,
        "within": compiling.limits,
    }
    if resume is not None:
        shared_options.refuse_changes(context, "run", _FIXED)
        _require_precision(options, resume)
        request = requests.resume_request(resume, max_steps=settings.max_steps, **common)
    else:
        _require_use(context, algorithm, network)
        request = requests.SolveRequest(
            game_spec.GameSpec(game or "", payoff, goal_conflict, compiling.gdl, compiling.fold_case),
            algorithm,
            settings=_changed_settings(settings, options, algorithm),
            simultaneous=simultaneous,
            states=states,
            opponent=modelled,
            network=network,
            results=results,
            symmetries=symmetries,
            **common,
        )
    if dry_run:
        plan_table.show(options, solving.make_plan(request, solution_table.callbacks(options)))
        return
    if not request.is_auto and request.configured_algorithm.kind == "sampled":
        devices.use_one_device_per_core()
    outcome = _execute(request, options)
    _show(options, outcome, _bound(outcome, request, options))


_NOT_WITH_NETWORK = ("time", "target", "every", "checkpoint")
_FIXED = (
    *("algorithm", "network", "alpha", "beta", "gamma", "exploration", "simultaneous", "states"),
    *("batch", "decay", "width", "table", "grow"),
    *("payoff", "goal_conflict", "gdl", "fold_case", "results"),
    *("restrict", "p", "model", "symmetries"),
)


def _require_use(context: typer.Context, algorithm: str, network: pathlib.Path | None) -> None:
    """Raise if an option does not apply to the algorithm."""
    from gdlx.solvers import algorithms

    if algorithm == algorithms.AUTO and network is None:
        return
    if algorithm == algorithms.AUTO or not algorithms.find(algorithm).needs_network:
        if network is not None:
            raise typer.BadParameter(f"--network is an option of depth-limited, not of {algorithm}; leave it out")
    elif network is not None:
        shared_options.refuse(context, _NOT_WITH_NETWORK, f"{algorithm} runs --iterations on each segment")


def _changed_settings(settings: Settings, options: console.Options, algorithm: str) -> dict[str, Any]:
    """Return the settings on the command line; sampling algorithms also use the global seed."""
    from gdlx.solvers import algorithms

    samples = algorithm == algorithms.AUTO or algorithms.find(algorithm).is_sampled
    seed = {"seed": options.seed} if samples else {}
    return {name: value for name, value in vars(settings).items() if value is not None} | seed


def _require_precision(options: console.Options, folder: pathlib.Path) -> None:
    from gdlx.solvers.runs import result_folder as folders

    x64 = folders.read_config(folder).x64
    if x64 != options.x64:
        raise folders.ResultError(
            f"{folder} was computed in {'double' if x64 else 'single'} precision; "
            f"resume it {'with' if x64 else 'without'} --x64"
        )


def _execute(request: "requests.SolveRequest", options: console.Options) -> "solving.SolveResult":
    from gdlx.solvers import solve_requests as solving

    callbacks = dataclasses.replace(
        solution_table.callbacks(options), on_choice=functools.partial(plan_table.say_choice, options)
    )
    return solving.execute(request, callbacks, _with_network)


def _with_network(request: "requests.SolveRequest", task: "tasks.TreeTask") -> "solving.DirectSolver":
    from gdlx.nets.values import depth_limited

    return depth_limited.make_direct_solver(request, task)


def _bound(
    outcome: "solving.SolveResult", request: "requests.SolveRequest", options: console.Options
) -> "evaluate_requests.BoundResult | None":
    """Search for a bound on the exploitability of what `auto` sampled, for at most as long as it was sampled."""
    from gdlx.solvers import evaluate_requests, plan
    from gdlx.solvers import requests as solve_requests

    is_measured = bool(outcome.solution.improvements)
    if outcome.choice is None or outcome.folder is None or is_measured or outcome.interrupted:
        return None
    seconds = min(plan.BOUND_SECONDS, request.seconds or plan.BOUND_SECONDS)
    evaluated = evaluate_requests.execute(
        solve_requests.EvaluateRequest(outcome.folder, True, seconds, options.seed, request.max_nodes),
        solution_table.callbacks(options),
    )
    return evaluated.bound_result


def _show(
    options: console.Options, outcome: "solving.SolveResult", bound: "evaluate_requests.BoundResult | None"
) -> None:
    folder = outcome.folder
    assert folder is not None
    dropped = {"lost_visits": outcome.dropped_visits} if outcome.dropped_visits else {}
    chosen = {} if outcome.choice is None else {"chosen": plan_table.as_json(outcome.choice)}
    bounded = {} if bound is None else bounds_table.as_json(bound)
    more = {"interrupted": outcome.interrupted, **outcome.facts, **dropped, **chosen, **bounded}
    solution_table.show(options, outcome.task, outcome.solution, folder, more)
    if bound is not None and not options.json:
        bounds_table.show(bound)
    if not options.json:
        console.say(f"result in {folder}; show its policies with: gdlx evaluate {folder}")
        if not outcome.solution.improvements and bound is None:  # the game was not unrolled
            console.say(f"its exploitability is not known; bound it with: gdlx evaluate {folder} --bound")
    if outcome.dropped_visits:
        console.remark(
            options,
            f"the table is too small: {outcome.dropped_visits:,} visits of the last iteration were to information sets "
            f"that did not fit and are played uniformly; solve again with --table {outcome.table_bits + 1} or more",
        )
    if outcome.unplayable:
        console.remark(
            options,
            f"{outcome.unplayable:,} trajectories ended in states where some role has no legal move; their payoff is 0",
        )
    if outcome.interrupted:
        console.remark(options, f"interrupted; resume with: gdlx solve --resume {folder}")
        raise typer.Exit(interrupts.exit_code())
