"""The command `solve`, and how results are shown."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gdlx.cli import arguments, console, networks, restricting

if TYPE_CHECKING:
    from gdlx.envs import trees
    from gdlx.propnet import limits
    from gdlx.solvers import driver, presets, problems, solution
    from gdlx.solvers import solve as solving


def solve(
    context: typer.Context,
    game: Annotated[
        str | None, typer.Argument(metavar="[GAME]", help="A library name, e.g. goofspiel:cards=4, or a path.")
    ] = None,
    algorithm: Annotated[str, typer.Option(help="One of those above.")] = "dcfr",
    iterations: Annotated[
        int | None, typer.Option(min=0, help="Stop after so many; 1 000 if nothing else is said.")
    ] = None,
    time: Annotated[
        float | None,
        typer.Option(help="Stop after so many seconds of solving, earlier ones of a resumed run included."),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Stop at this exploitability, e.g. 0.001, or 0.01% of the payoffs' range.")
    ] = None,
    resume: Annotated[
        pathlib.Path | None, typer.Option(help="Go on with the run in this folder.", metavar="DIR")
    ] = None,
    results: Annotated[
        pathlib.Path, typer.Option(help="Where to make the folder of the result.", metavar="DIR")
    ] = pathlib.Path("results"),
    every: Annotated[int | None, typer.Option(min=1, help="Measure after every so many iterations.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Exponent of the discount of positive regret.")] = None,
    beta: Annotated[float | None, typer.Option(help="Exponent of the discount of negative regret.")] = None,
    gamma: Annotated[float | None, typer.Option(help="Policy t has the weight t^gamma in the average.")] = None,
    exploration: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Part of every policy, or of sampling, that is uniform.")
    ] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Trajectories of an iteration of sampling.")] = None,
    decay: Annotated[float | None, typer.Option(help="How far a visit moves a baseline of vr-mccfr, 0 to 1.")] = None,
    width: Annotated[float | None, typer.Option(help="Lanes for each traversal of es-mccfr and as-mccfr.")] = None,
    table: Annotated[
        int | None,
        typer.Option(
            help="Do not unroll: sample the game into a hash table of 2^TABLE information sets.", min=4, max=28
        ),
    ] = None,
    grow: Annotated[
        Literal["all", "first"] | None,
        typer.Option(help="Which unknown sets of a trajectory are added to the table: all, if nothing is said."),
    ] = None,
    max_steps: Annotated[
        int | None,
        typer.Option(min=1, help="Room for joint moves of a trajectory, with --table; as random play suggests."),
    ] = None,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="All players update at once, not in turn.")
    ] = False,
    restrict: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="A policy that an opponent plays with probability P, else it is free: a result folder, or its policy "
            "as .npz, .csv or .json.",
            metavar="OPPONENT",
        ),
    ] = None,
    net: Annotated[
        pathlib.Path | None,
        typer.Option(help="Networks of `gdlx train --learner supervised`, for depth-limited.", metavar="DIR"),
    ] = None,
    p: Annotated[float | None, typer.Option(help="How far --restrict is trusted, 0 to 1.")] = None,
    model: Annotated[
        str | None, typer.Option(help="The player that --restrict is a policy of; the last one.", metavar="PLAYER")
    ] = None,
    payoff: Annotated[Literal["auto", "zero-sum", "goal"], typer.Option(help="What payoffs are made of.")] = "auto",
    goal_conflict: Annotated[
        Literal["refuse", "max"], typer.Option(help="Ends with several goal values: the highest?")
    ] = "refuse",
    checkpoint: Annotated[float, typer.Option(min=0.0, help="Seconds between checkpoints.")] = 10.0,
    max_nodes: arguments.MaxNodes = arguments.DEFAULT_NODES,
    gdl: arguments.Gdl = None,
    fold_case: arguments.FoldCase = False,
    max_seconds: arguments.MaxSeconds = arguments.DEFAULT_LIMITS.seconds,
    max_memory: arguments.MaxMemory = arguments.DEFAULT_LIMITS.memory_mb,
    max_rules: arguments.MaxRules = arguments.DEFAULT_LIMITS.rules,
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
    within = arguments.limits(max_seconds, max_memory, max_rules)
    if (game is None) == (resume is None):
        raise typer.BadParameter("name a GAME to solve, or a folder to --resume, and not both")
    restricting.require_whole(restrict, p, model)

    from gdlx.envs import devices, programs, trees
    from gdlx.solvers import driver, presets, problems
    from gdlx.solvers import results as folders
    from gdlx.solvers import solve as solving

    programs.keep()
    if resume is not None:
        arguments.refuse_changes(context, "run", _FIXED)
        config = folders.read_config(resume)
        _require_precision(given, config.x64, resume)
        named, chosen, folder = config.game, config.algorithm, resume
        if max_steps is not None and chosen.sampling is not None:  # the one thing that may turn out too small
            chosen = dataclasses.replace(chosen, sampling=dataclasses.replace(chosen.sampling, max_steps=max_steps))
            folders.write_config(resume, dataclasses.replace(config, algorithm=chosen))
        if chosen.is_exact or chosen.needs_net:
            raise folders.ResultError(f"{resume} was solved at once: there is nothing to go on with")
    else:
        named = trees.Game(game or "", payoff, goal_conflict, gdl, fold_case)
        changes: dict[str, Any] = {"alpha": alpha, "beta": beta, "gamma": gamma, "exploration": exploration}
        changes |= {"batch": batch, "decay": decay, "width": width, "table": table}
        changes |= {"grow": grow, "max_steps": max_steps}
        given_changes = {name: value for name, value in changes.items() if value is not None}
        found = presets.find(algorithm)
        if found.needs_net and net is None:
            presets.require_own(found)
        if net is not None and not found.needs_net:
            raise typer.BadParameter(f"--net is of depth-limited, not of {algorithm}; leave it out")
        if found.needs_net:
            arguments.refuse(context, _NOT_WITH_NET, "depth-limited solves by --iterations of every segment")
        if found.sampling is not None:
            given_changes["seed"] = given.seed
        chosen = presets.configured(found, iterations, given_changes)
        chosen = presets.simultaneous(chosen) if simultaneous else chosen
    if chosen.sampling is not None and chosen.sampling.table is None:
        devices.one_per_core()
    driver.Stop(iterations, time)  # complains before the long work
    if p is not None:
        restricting.require_fit(chosen, p)
    task = task_of(given, named, chosen, max_nodes, within)
    if resume is not None and task.digest != config.digest:
        raise folders.ResultError(f"{resume} was solved with other rules of {named.spec} than there are now")
    if restrict is not None and p is not None:
        task = restricting.of_options(task, restrict, p, model)
    elif resume is not None:
        task = restricting.of_folder(task, config, resume)
    stop = solving.stop_of(task, iterations, time, target)
    if resume is None:
        folder = folders.new_folder(results, named.spec, chosen.name + ("" if restrict is None else f"-p={p:g}"))
    if net is not None and isinstance(task, problems.Problem):
        _solve_with_net(given, task, chosen, folder, net, iterations)
    elif chosen.is_exact and isinstance(task, problems.Problem):
        _solve_exactly(given, task, chosen, folder)
    else:
        _run(given, task, chosen, folder, stop, every, checkpoint, resumed=resume is not None)


_NOT_WITH_NET = ("time", "target", "every", "checkpoint")
_DEPTH_LIMITED = 500  # iterations of each segment
_FIXED = (
    *("algorithm", "net", "alpha", "beta", "gamma", "exploration", "simultaneous"),
    *("batch", "decay", "width", "table", "grow"),
    *("payoff", "goal_conflict", "gdl", "fold_case", "results"),
    *("restrict", "p", "model"),
)


def _require_precision(given: console.Options, x64: bool, folder: pathlib.Path) -> None:
    from gdlx.solvers import results as folders

    if x64 != given.x64:
        raise folders.ResultError(
            f"{folder} was computed in {'double' if x64 else 'single'} precision; "
            f"go on {'with' if x64 else 'without'} --x64"
        )


def task_of(
    given: console.Options,
    game: "trees.Game",
    algorithm: "presets.Algorithm",
    max_nodes: int,
    within: "limits.Limits",
    *,
    keep_edges: bool = True,
) -> "solving.Task":
    """The game as the algorithm needs it: unrolled, or not."""
    from gdlx.envs import game_tree, trees
    from gdlx.solvers import problems
    from gdlx.solvers import solve as solving

    net = networks.network_of(given, game.spec, game.gdl, game.fold_case, within)
    if solving.uses_table(algorithm):
        return problems.table_problem(game, net=net)
    try:
        with console.progress(given, f"unrolling {game.spec}") as advance:
            tree = trees.unrolled(
                game,
                net=net,
                max_nodes=max_nodes,
                keep_edges=keep_edges and (algorithm.sampling is not None or algorithm.needs_net),
                report=lambda step, nodes: advance(f"step {step}, {nodes:,} nodes"),
            )
    except game_tree.TooLarge as error:
        raise game_tree.TooLarge(f"{error}, or sample it as it is: --algorithm os-mccfr --table 22") from None
    if tree.unplayable:
        console.remark(
            given, f"{tree.unplayable:,} ends of {game.spec} are states in which some role has no legal move"
        )
    return problems.problem(game, tree)


def _run(
    given: console.Options,
    task: "solving.Task",
    algorithm: "presets.Algorithm",
    folder: pathlib.Path,
    stop: "driver.Stop",
    every: int | None,
    checkpoint: float,
    *,
    resumed: bool,
) -> None:
    from gdlx.propnet import errors
    from gdlx.solvers import results as folders
    from gdlx.solvers import solve as solving

    if not task.is_zero_sum and len(task.players) > 1:
        console.remark(
            given,
            f"{task.game.spec} is not a two-player zero-sum game: no algorithm here is sure to find an equilibrium "
            "of it; the gains measured say how near the policies are",
        )
    run: solving.Run | None = None
    interrupted = False
    try:
        run = solving.Run(task, algorithm, folder, resume=resumed, interval=checkpoint)
        with console.progress(given, f"{algorithm.name} on {task.game.spec}") as advance:
            for point in run.points(stop, every):
                advance(_progress(point.metrics))
    except KeyboardInterrupt:
        if run is None or not run.metrics:
            raise
        interrupted = True
    except errors.UserError:
        if not resumed and (run is None or not run.metrics):
            folders.discard(folder)
        raise
    found = run.finish()
    lost = run.process.lost(run.state) if solving.uses_table(algorithm) else 0
    show(given, task, found, folder, {"interrupted": interrupted} | ({"lost_visits": lost} if lost else {}))
    _tell(given, folder)
    if lost:
        console.remark(
            given,
            f"the table is too small: {lost:,} visits of the last iteration were to sets that found no place in it and "
            f"are played uniformly; solve anew with --table {run.process.bits + 1} or more",
        )
    if solving.uses_table(algorithm) and (stuck := int(run.state.odd.unplayable)):
        console.remark(
            given, f"{stuck:,} trajectories ended in states in which some role has no legal move; their payoff is 0"
        )
    if interrupted:
        console.remark(given, f"interrupted; go on with: gdlx solve --resume {folder}")
        raise typer.Exit(130)


def _progress(metrics: "driver.Metrics") -> str:
    parts = [f"{metrics.iterations:,} iterations"]
    if metrics.gain:
        name = "largest gain" if metrics.exploitability is None else "exploitability"
        parts.append(f"{name} {metrics.error:.3g}")
    if metrics.samples and metrics.seconds:
        parts.append(f"{metrics.samples / metrics.seconds:,.0f} trajectories/s")
    if metrics.load is not None:
        parts.append(f"table {metrics.load:.1%} full")
    return ", ".join(parts)


def _solve_exactly(
    given: console.Options, task: "problems.Problem", algorithm: "presets.Algorithm", folder: pathlib.Path
) -> None:
    from gdlx.solvers import solve as solving

    with console.progress(given, f"linear programming on {task.game.spec}"):
        found = solving.solve_exactly(task, algorithm, folder)
    show(given, task, found, folder, {"interrupted": False})
    _tell(given, folder)


def _solve_with_net(
    given: console.Options,
    task: "problems.Problem",
    algorithm: "presets.Algorithm",
    folder: pathlib.Path,
    net: pathlib.Path,
    iterations: int | None,
) -> None:
    import time

    from gdlx.nets import checkpoints, depth_limited, supervised
    from gdlx.propnet import errors, limits
    from gdlx.solvers import results as folders
    from gdlx.solvers import solve as solving

    begun, count = time.monotonic(), iterations or _DEPTH_LIMITED
    try:
        game = task.game
        rules = networks.network_of(given, game.spec, game.gdl, game.fold_case, limits.Limits())
        learner, state, *_ = checkpoints.restored(net, rules, task, payoff=game.payoff)
        if not isinstance(learner, supervised.Supervised):
            raise checkpoints.WrongCheckpoint(
                f"{net} has no network of values of ranges; train one with --learner supervised"
            )
        with console.progress(given, f"{algorithm.name} on {task.game.spec}"):
            values = depth_limited.learnt(learner, learner.values(state))
            policies = depth_limited.solve(task, learner.settings.depth, values, iterations=count)
    except (errors.UserError, KeyboardInterrupt):
        folders.discard(folder)
        raise
    found = solving.kept(task, algorithm, policies, time.monotonic() - begun, folder, count)
    show(given, task, found, folder, {"interrupted": False, "net": str(net), "depth": learner.settings.depth})
    _tell(given, folder)


def _tell(given: console.Options, folder: pathlib.Path) -> None:
    if not given.json:
        console.say(f"result in {folder}; look at its policies with: gdlx evaluate {folder}")


def result_of(task: "solving.Task", found: "solution.Solution", folder: pathlib.Path) -> dict[str, Any]:
    """What `solve` and `evaluate` print under --json."""
    last = found.metrics[-1]
    result = {
        "game": task.game.spec,
        "algorithm": found.algorithm,
        "iterations": found.iterations,
        "seconds": found.seconds,
        "goals": dict(zip(task.players, found.goals, strict=True)),
        "value": dict(zip(task.players, found.value, strict=True)),
        "exploitability": found.exploitability,
        "nash_conv": list(found.gain) if found.gain else None,
        "payoff_range": list(task.payoff_range),
        "zero_sum": task.is_zero_sum,
        "result": str(folder),
    }
    if last.samples:
        result |= {"trajectories": last.samples, "trajectories_per_second": last.samples / max(last.seconds, 1e-9)}
    if last.load is not None:
        result["table_load"] = last.load
        if last.value_error:
            result["value_error"] = dict(zip(task.players, last.value_error, strict=True))
    else:
        result["information_sets"] = task.tree.information_sets
    return result | restricting.result_of(task, found.policies)


def show(
    given: console.Options,
    task: "solving.Task",
    found: "solution.Solution",
    folder: pathlib.Path,
    more: Mapping[str, Any],
) -> None:
    result = result_of(task, found, folder) | dict(more)
    if given.json:
        console.emit(result)
        return
    import rich.table

    last = found.metrics[-1]
    has_table = last.load is not None
    table = rich.table.Table(title=None, box=None, pad_edge=False)
    for column in ("player", *([] if has_table else ["information sets"]), "payoff", "goal", "could gain"):
        table.add_column(column, justify="left" if column == "player" else "right")
    for number, player in enumerate(task.tree.players):
        error = f" ± {last.value_error[number]:.2g}" if last.value_error else ""
        table.add_row(
            player.name,
            *([] if has_table else [f"{player.sets:,}"]),
            f"{found.value[number]:.6f}{error}",
            f"{found.goals[number]:.4f}",
            f"{found.gain[number]:.3g}" if found.gain else "not known",
        )
    console.show(table)
    low, high = task.payoff_range
    if found.exploitability is not None:
        part = f" ({100 * found.exploitability / (high - low):.3g}% of the payoffs' range)" if high > low else ""
        where = restricting.name_of_game(task)
        console.say(f"exploitability{where} {found.exploitability:.6g}{part}")
    if last.value_error:
        console.say("payoffs are means of matches of these policies, with standard errors; the game is not unrolled")
    rate = f", {last.samples / last.seconds:,.0f} trajectories/s" if last.samples and last.seconds else ""
    full = f", table {last.load:.1%} full" if last.load is not None else ""
    console.say(
        f"{found.algorithm}: {found.iterations:,} iterations in {found.seconds:.3g} s{rate}{full}"
        if found.iterations
        else f"{found.algorithm}: {found.seconds:.3g} s"
    )
    restricting.show(result)
