"""The command `solve`."""

import dataclasses
import pathlib
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gdlx.cli import console, shared_options

if TYPE_CHECKING:
    from gdlx.solvers import requests, tasks
    from gdlx.solvers import solve_requests as solving

from gdlx.cli import solution_table

_ALGORITHM, _SAMPLING, _OPPONENT = "Settings of the algorithm", "Sampling", "Modelled opponent"


@dataclasses.dataclass(frozen=True)
class Stopping:
    """When a run ends, and when it is measured."""

    iterations: Annotated[
        int | None,
        typer.Option(
            min=0, help="Stop after so many; 1 000 if nothing else is said.", rich_help_panel=shared_options.STOPPING
        ),
    ] = None
    time: Annotated[
        float | None,
        typer.Option(
            help="Stop after so many seconds of solving, earlier ones of a resumed run included.",
            rich_help_panel=shared_options.STOPPING,
        ),
    ] = None
    target: Annotated[
        str | None,
        typer.Option(
            help="Stop at this exploitability, e.g. 0.001, or 0.01% of the payoffs' range.",
            rich_help_panel=shared_options.STOPPING,
        ),
    ] = None
    every: Annotated[
        int | None,
        typer.Option(min=1, help="Measure after every so many iterations.", rich_help_panel=shared_options.RESULT),
    ] = None


@dataclasses.dataclass(frozen=True)
class Settings:
    """Of algorithms; None where they stay as they are."""

    alpha: Annotated[
        float | None, typer.Option(help="Exponent of the discount of positive regret.", rich_help_panel=_ALGORITHM)
    ] = None
    beta: Annotated[
        float | None, typer.Option(help="Exponent of the discount of negative regret.", rich_help_panel=_ALGORITHM)
    ] = None
    gamma: Annotated[
        float | None,
        typer.Option(help="Policy t has the weight t^gamma in the average.", rich_help_panel=_ALGORITHM),
    ] = None
    exploration: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Part of every policy, or of sampling, that is uniform.", rich_help_panel=_ALGORITHM
        ),
    ] = None
    batch: Annotated[
        int | None, typer.Option(min=1, help="Trajectories of an iteration of sampling.", rich_help_panel=_SAMPLING)
    ] = None
    decay: Annotated[
        float | None,
        typer.Option(help="How far a visit moves a baseline of vr-mccfr, 0 to 1.", rich_help_panel=_SAMPLING),
    ] = None
    width: Annotated[
        float | None,
        typer.Option(help="Lanes for each traversal of es-mccfr and as-mccfr.", rich_help_panel=_SAMPLING),
    ] = None
    table: Annotated[
        int | None,
        typer.Option(
            help="Do not unroll: sample the game into a hash table of 2^TABLE information sets.",
            min=4,
            max=28,
            rich_help_panel=_SAMPLING,
        ),
    ] = None
    grow: Annotated[
        Literal["all", "first"] | None,
        typer.Option(
            help="Which unknown sets of a trajectory are added to the table: all, if nothing is said.",
            rich_help_panel=_SAMPLING,
        ),
    ] = None
    max_steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Room for joint moves of a trajectory, with --table; as random play suggests.",
            rich_help_panel=_SAMPLING,
        ),
    ] = None


@dataclasses.dataclass(frozen=True)
class Opponent:
    """A modelled one: all of them or none."""

    restrict: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="A policy that an opponent plays with probability P, else it is free: a result folder, or its policy "
            "as .npz, .csv or .json.",
            metavar="OPPONENT",
            rich_help_panel=_OPPONENT,
        ),
    ] = None
    p: Annotated[
        float | None, typer.Option(help="How far --restrict is trusted, 0 to 1.", rich_help_panel=_OPPONENT)
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            help="The player that --restrict is a policy of; the last one.", metavar="PLAYER", rich_help_panel=_OPPONENT
        ),
    ] = None

    def request(self) -> "requests.OpponentModel | None":
        """None where nobody is modelled; options that belong together are given together."""
        if self.restrict is None:
            if self.p is not None or self.model is not None:
                option = "--p" if self.p is not None else "--model"
                raise typer.BadParameter(f"{option} is of --restrict; name an opponent's policy")
            return None
        if self.p is None:
            raise typer.BadParameter("say with --p how likely the opponent is to play as --restrict says, 0 to 1")
        from gdlx.solvers import requests

        return requests.OpponentModel(self.restrict, self.p, self.model)


def solve(
    context: typer.Context,
    game: shared_options.GameOrResume = None,
    algorithm: Annotated[str, typer.Option(help="One of those above.")] = "dcfr",
    *,
    stopping: Stopping,
    settings: Settings,
    simultaneous: Annotated[
        bool,
        typer.Option("--simultaneous", help="All players update at once, not in turn.", rich_help_panel=_ALGORITHM),
    ] = False,
    net: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="Networks of `gdlx train --learner supervised`, for depth-limited.",
            metavar="DIR",
            rich_help_panel=_ALGORITHM,
        ),
    ] = None,
    opponent: Opponent,
    resume: Annotated[
        pathlib.Path | None,
        typer.Option(help="Go on with the run in this folder.", metavar="DIR", rich_help_panel=shared_options.RESULT),
    ] = None,
    results: Annotated[
        pathlib.Path,
        typer.Option(
            help="Where to make the folder of the result.", metavar="DIR", rich_help_panel=shared_options.RESULT
        ),
    ] = pathlib.Path("results"),
    checkpoint: shared_options.Checkpoint = 10.0,
    payoff: shared_options.Payoff = "auto",
    goal_conflict: Annotated[
        Literal["refuse", "max"],
        typer.Option(help="Ends with several goal values: the highest?", rich_help_panel=shared_options.READING),
    ] = "refuse",
    max_nodes: shared_options.MaxNodes = shared_options.DEFAULT_NODES,
    compiling: shared_options.Compiling,
) -> None:
    """Find an equilibrium: policies for all players, with their measured exploitability.

    Algorithms: cfr, cfr+, lcfr, dcfr, dcfr-half, pcfr+, pdcfr+, hs-dcfr, hs-dcfr-15, hs-pcfr+ (counterfactual regret
    minimisation), os-mccfr, vr-mccfr, es-mccfr and as-mccfr (the same on sampled play: by outcomes, by outcomes with
    baselines, external, by average strategies), fp (fictitious play), lp (linear programming: exact, two players,
    zero-sum, small games), depth-limited (CFR+ some joint moves at a time, what lies below valued by --net). Games
    that cannot be unrolled are sampled with --table, by os-mccfr and vr-mccfr.

    With --restrict and --p the other player's policy is a restricted Nash response: nearly as good against that
    opponent as it can be, and not much worse than an equilibrium if the opponent plays otherwise.
    """
    given = console.options(context)
    if (game is None) == (resume is None):
        raise typer.BadParameter("name a GAME to solve, or a folder to --resume, and not both")
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
        _require_precision(given, resume)
        request = requests.resume_request(resume, max_steps=settings.max_steps, **common)
    else:
        _require_use(context, algorithm, net)
        request = requests.SolveRequest(
            game_spec.GameSpec(game or "", payoff, goal_conflict, compiling.gdl, compiling.fold_case),
            algorithm,
            settings=_given(settings, given, algorithm),
            simultaneous=simultaneous,
            opponent=modelled,
            network=net,
            results=results,
            **common,
        )
    if request.configured_algorithm.kind == "sampled":
        devices.use_one_device_per_core()
    _show(given, solving.execute(request, solution_table.callbacks(given), _with_network))


_NOT_WITH_NET = ("time", "target", "every", "checkpoint")
_FIXED = (
    *("algorithm", "net", "alpha", "beta", "gamma", "exploration", "simultaneous"),
    *("batch", "decay", "width", "table", "grow"),
    *("payoff", "goal_conflict", "gdl", "fold_case", "results"),
    *("restrict", "p", "model"),
)


def _require_use(context: typer.Context, algorithm: str, net: pathlib.Path | None) -> None:
    """That options which are of some algorithms are given with those."""
    from gdlx.solvers import algorithms

    if not algorithms.find(algorithm).needs_network:
        if net is not None:
            raise typer.BadParameter(f"--net is of depth-limited, not of {algorithm}; leave it out")
    elif net is not None:
        shared_options.refuse(context, _NOT_WITH_NET, f"{algorithm} solves by --iterations of every segment")


def _given(settings: Settings, given: console.Options, algorithm: str) -> dict[str, Any]:
    """The settings that are given; what samples has the seed of all commands."""
    from gdlx.solvers import algorithms

    seed = {"seed": given.seed} if algorithms.find(algorithm).is_sampled else {}
    return {name: value for name, value in vars(settings).items() if value is not None} | seed


def _require_precision(given: console.Options, folder: pathlib.Path) -> None:
    from gdlx.solvers.runs import result_folder as folders

    x64 = folders.read_config(folder).x64
    if x64 != given.x64:
        raise folders.ResultError(
            f"{folder} was computed in {'double' if x64 else 'single'} precision; "
            f"go on {'with' if x64 else 'without'} --x64"
        )


def _with_network(request: "requests.SolveRequest", task: "tasks.TreeTask") -> "solving.DirectSolver":
    from gdlx.nets.values import depth_limited

    return depth_limited.make_direct_solver(request, task)


def _show(given: console.Options, outcome: "solving.SolveResult") -> None:
    folder = outcome.folder
    assert folder is not None
    lost = {"lost_visits": outcome.dropped} if outcome.dropped else {}
    more = {"interrupted": outcome.interrupted, **outcome.facts, **lost}
    solution_table.show(given, outcome.task, outcome.solution, folder, more)
    if not given.json:
        console.say(f"result in {folder}; look at its policies with: gdlx evaluate {folder}")
    if outcome.dropped:
        console.remark(
            given,
            f"the table is too small: {outcome.dropped:,} visits of the last iteration were to sets that found no "
            f"place in it and are played uniformly; solve anew with --table {outcome.table_bits + 1} or more",
        )
    if outcome.unplayable:
        console.remark(
            given,
            f"{outcome.unplayable:,} trajectories ended in states in which some role has no legal move; "
            "their payoff is 0",
        )
    if outcome.interrupted:
        console.remark(given, f"interrupted; go on with: gdlx solve --resume {folder}")
        raise typer.Exit(130)
