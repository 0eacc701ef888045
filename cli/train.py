"""The command `train`, and how networks are shown."""

import pathlib
import time as clock
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gdlx.cli import console, loading, shared_options

if TYPE_CHECKING:
    from gdlx.envs import game_spec
    from gdlx.nets import training
    from gdlx.nets.learners import learner_registry, protocol
    from gdlx.propnet.circuits import propnet
    from gdlx.solvers import tasks

_LOOKS = 20  # at strength, in a training
_LEAST = 10.0  # seconds between two of them
_GAMES = 1_000
_SMALL = 200_000  # joint moves of one step of a game that is unrolled to measure networks


def train(
    context: typer.Context,
    game: shared_options.GameOrResume = None,
    minutes: Annotated[
        float | None, typer.Option(help="Train so long, earlier minutes of a resumed training included; 10.")
    ] = None,
    iterations: Annotated[int | None, typer.Option(min=1, help="Stop after so many.")] = None,
    learner: Annotated[str, typer.Option(help="One of those above.")] = "self-play",
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the learner, e.g. --set games=1024.", metavar="X=Y")
    ] = None,
    window: Annotated[
        int | None, typer.Option(min=1, help="Steps that networks look back; as many as random matches have.")
    ] = None,
    resume: Annotated[pathlib.Path | None, typer.Option(help="Go on with this training.", metavar="DIR")] = None,
    results: Annotated[
        pathlib.Path, typer.Option(help="Where to make the folder of the networks.", metavar="DIR")
    ] = pathlib.Path("results"),
    checkpoint: shared_options.Checkpoint = 60.0,
    payoff: shared_options.Payoff = "auto",
    max_nodes: shared_options.MaxNodes = shared_options.DEFAULT_NODES,
    *,
    compiling: shared_options.Compiling,
) -> None:
    """Train networks that play a game, and know what it is worth.

    Learners: self-play (any game: matches in lockstep with a search in each of their states), deep-cfr (two-player
    games that can be unrolled, sound if zero-sum), supervised (games that can be unrolled, solved: values for
    depth-limited search).
    """
    given = console.options(context)
    within = compiling.limits
    if (game is None) == (resume is None):
        raise typer.BadParameter("name a GAME to train for, or a folder to --resume, and not both")
    if given.x64:
        raise typer.BadParameter("networks are trained in single precision: leave out --x64")

    from gdlx.envs import compilation_cache, game_facts, game_spec
    from gdlx.nets import checkpoints, training
    from gdlx.nets.learners import learner_registry
    from gdlx.solvers.runs import driver
    from gdlx.solvers.runs import result_folder as folders

    compilation_cache.enable()
    if minutes is None and iterations is None:
        minutes = 10.0
    stop = driver.StopCondition(iterations, None if minutes is None else 60 * minutes)
    if resume is not None:
        shared_options.refuse_changes(context, "training", _FIXED)
        recipe, digest, seed = checkpoints.read_train_config(resume)
        net = loading.load_propnet(given, recipe.game.spec, recipe.game.gdl, recipe.game.fold_case, within)
        if digest != game_facts.probe(net).digest:
            raise folders.ResultError(f"{resume} was trained with other rules of {recipe.game.spec} than there are now")
        task = task_of(given, recipe.learner, recipe.game, net, max_nodes)
        folder = resume
    else:
        named = game_spec.GameSpec(game or "", payoff, "max", compiling.gdl, compiling.fold_case)
        settings = learner_registry.make_settings(learner, _changes(setting or []))
        net = loading.load_propnet(given, named.spec, named.gdl, named.fold_case, within)
        digest, seed = game_facts.probe(net).digest, given.seed
        task = task_of(given, learner, named, net, max_nodes)
        recipe = learner_registry.TrainConfig(
            named, learner, window or learner_registry.default_window(net, task), settings
        )
    made = learner_registry.make_learner(recipe, net, task)
    training.require_memory(made)
    if resume is None:
        folder = folders.create_folder(results, recipe.game.spec, f"net-{learner}")
    try:
        run = training.TrainingRun(
            recipe, made, digest, folder, seed=seed, resume=resume is not None, interval=checkpoint
        )
        _train(given, run, stop, task, folder, recipe)
    finally:
        if resume is None and not checkpoints.has_state(folder):
            folders.discard(folder)


_FIXED = ("learner", "setting", "window", "payoff", "gdl", "fold_case", "results")


def _changes(given: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, is_pair, value = text.partition("=")
        if not is_pair or not name or name in found:
            raise typer.BadParameter(f"--set takes a setting once, as games=1024; not {text!r}")
        found[name.strip().replace("-", "_")] = value.strip()
    return found


def task_of(
    given: console.Options,
    learner: str,
    game: "game_spec.GameSpec",
    net: "propnet.PropNet",
    max_nodes: int = shared_options.DEFAULT_NODES,
) -> "tasks.TreeTask | None":
    """The game unrolled, where the learner needs it, or where it is small enough to measure networks exactly."""
    from gdlx.envs import game_spec
    from gdlx.envs.trees import game_tree
    from gdlx.nets.learners import learner_registry
    from gdlx.solvers import tasks

    is_needed = learner_registry.find_entry(learner).needs_tree
    try:
        with console.progress(given, f"unrolling {game.spec}"):
            most = max_nodes if is_needed else min(max_nodes, _SMALL)
            tree = game_spec.unroll_game(game, net=net, max_nodes=most, keep_edges=True)
    except game_tree.TooLargeError as error:
        if is_needed:
            raise game_tree.TooLargeError(f"{error}, or train without unrolling: --learner self-play") from None
        return None
    return tasks.make_tree_task(game, tree)


def evaluate(given: console.Options, folder: pathlib.Path) -> None:
    """`gdlx evaluate` of networks."""
    from gdlx.nets import checkpoints, evaluation
    from gdlx.nets.learners import self_play, supervised
    from gdlx.propnet.common import limits

    recipe, _, _ = checkpoints.read_train_config(folder)
    game = recipe.game
    net = loading.load_propnet(given, game.spec, game.gdl, game.fold_case, limits.Limits())
    task = task_of(given, recipe.learner, game, net, checkpoints.ANY_NODES)
    learner, state, iteration, seconds = checkpoints.restore_training(folder, net, task)
    parameters = learner.policy_params(state)
    told = measured(learner, parameters, task, games=_GAMES, seed=given.seed)
    if task is not None and isinstance(learner, self_play.SelfPlay):
        told["predicted"] = evaluation.value_accuracy(learner, parameters, task)._asdict()
    if isinstance(learner, supervised.Supervised):
        told["value_error"] = float(learner.error(learner.values(state), state.unseen))
    if given.json:
        run = {"game": game.spec, "learner": recipe.learner, "iterations": iteration, "seconds": seconds}
        console.emit(run | {"result": str(folder)} | told)
        return
    about = f"{recipe.learner} on {game.spec}, {iteration:,} iterations in {seconds / 60:.1f} minutes"
    console.say(f"{about}: {in_words(told)}")
    if "predicted" in told:
        found = told["predicted"]
        console.say(
            f"values of information sets as the network tells them, against exact ones of its policies: error "
            f"{found['error']:.2%} of the payoffs, correlation {found['correlation']:.2f}"
        )
    if "value_error" in told:
        console.say(f"values of ranges it was never trained on: error {told['value_error']:.2%} of the payoffs")


def _train(
    given: console.Options,
    run: "training.TrainingRun",
    stop: Any,
    task: "tasks.TreeTask | None",
    folder: pathlib.Path,
    recipe: "learner_registry.TrainConfig",
) -> None:
    import jax

    from gdlx.nets import training
    from gdlx.nets.models import networks as bodies

    count = bodies.num_params(jax.eval_shape(run.learner.policy_params, run.state))
    if not given.json:
        memory = training.num_bytes(run.state) / 2**20
        console.say(
            f"{recipe.learner} on {recipe.game.spec}: {count:,} parameters to play with, {memory:,.0f} MiB in all"
        )
    before = run.iteration
    interrupted = _learn(given, run, stop, task, recipe)
    try:
        told = measured(run.learner, run.learner.policy_params(run.state), task, games=_GAMES) if run.iteration else {}
        if told:
            run.log_metrics(_columns(told))
    finally:
        run.finish()
    if given.json:
        console.emit(
            {
                "game": recipe.game.spec,
                "learner": recipe.learner,
                "iterations": run.iteration,
                "seconds": run.seconds,
                "result": str(folder),
                "interrupted": interrupted,
                "parameters": count,
                "metrics": run.rows[-1] if run.rows else {},
                **told,
            }
        )
    else:
        _show(run, recipe.game, told, folder)
    if interrupted:
        console.remark(given, f"interrupted; go on with: gdlx train --resume {folder} --minutes ..")
        raise typer.Exit(130)
    _remark_on_time(given, run, stop, before)


def _learn(
    given: console.Options,
    run: "training.TrainingRun",
    stop: Any,
    task: "tasks.TreeTask | None",
    recipe: "learner_registry.TrainConfig",
) -> bool:
    """Train until `stop`, measure now and then, and save; whether it was interrupted."""
    every = _LEAST if stop.seconds is None else max(_LEAST, stop.seconds / _LOOKS)
    last_measured = clock.monotonic()
    try:
        with console.progress(given, f"{recipe.learner} on {recipe.game.spec}") as advance:
            for point in run.points(stop):
                advance(f"{point.iteration:,} iterations, loss {point.metrics['loss']:.4g}")
                if clock.monotonic() - last_measured >= every:
                    strength = measured(run.learner, run.learner.policy_params(run.state), task, games=_GAMES)
                    run.log_metrics(_columns(strength))
                    last_measured = clock.monotonic()
                    if not given.json and not given.quiet:
                        _show_point(point, strength)
    except KeyboardInterrupt:
        if not run.iteration:
            raise
        return True
    finally:  # measuring takes time too, in which one may lose patience
        if run.iteration:
            run.save()
    return False


def _show_point(point: "training.ProgressPoint", strength: dict[str, Any]) -> None:
    passed = f"{point.seconds / 60:6.1f} min  {point.iteration:7,} iterations"
    console.say(f"{passed}  loss {point.metrics['loss']:.4f}  {in_words(strength)}")


def _show(
    run: "training.TrainingRun", game: "game_spec.GameSpec", strength: dict[str, Any], folder: pathlib.Path
) -> None:
    console.say(f"after {run.iteration:,} iterations in {run.seconds / 60:.1f} minutes: {in_words(strength)}")
    options = "".join(f" {option}" for option in _options(game))
    others = " random" * (run.learner.encoder.env.num_players - 1)
    command = f"gdlx match {game.spec} net:{folder}{others}{options}"
    console.say(f"networks in {folder}; play them with: {command}")


def _remark_on_time(given: console.Options, run: "training.TrainingRun", stop: Any, before: int) -> None:
    """Where the time allowed nothing, or next to nothing; training had come to iteration `before` earlier."""
    if run.iteration == before:
        console.remark(given, "nothing was trained: it had been trained for so long before; give more")
    elif run.iteration == 1 and stop.seconds is not None and run.seconds >= stop.seconds:
        console.remark(given, "the time was up after the first iteration, most of which compiles; give more --minutes")


def _options(game: "game_spec.GameSpec") -> list[str]:
    """What else names the game, for a command."""
    found = [f"--payoff {game.payoff}"] if game.payoff != "auto" else []
    found += [f"--gdl {game.gdl}"] if game.gdl is not None else []
    return found + (["--fold-case"] if game.fold_case else [])


def measured(
    learner: "protocol.Learner", parameters: Any, task: "tasks.TreeTask | None", *, games: int, seed: int = 0
) -> dict[str, Any]:
    """How strong networks are, as `train` and `evaluate` print it under --json."""
    from gdlx.nets import evaluation

    found: dict[str, Any] = {}
    players = learner.encoder.env.players
    if task is not None:
        improvements = evaluation.improvements(learner, parameters, task)
        low, high = task.payoff_range
        found["nash_conv"] = sum(improvements)
        found["improvements"] = dict(zip(players, improvements, strict=True))
        if len(improvements) == 2:
            found["exploitability"] = sum(improvements) / 2
            found["exploitability_part"] = sum(improvements) / 2 / max(high - low, 1e-9)
    against = evaluation.evaluate_against_random(learner, parameters, games=games, seed=seed)
    found["against_random"] = {
        name: {"goal": goal, "interval": [goal - error, goal + error], "games": against.games}
        for name, goal, error in zip(players, against.goal, against.error, strict=True)
    }
    return found


def _columns(told: dict[str, Any]) -> dict[str, float]:
    """For metrics.csv."""
    found = {f"goal_{name}": own["goal"] for name, own in told["against_random"].items()}
    found |= {f"improvement_{name}": number for name, number in told.get("improvements", {}).items()}
    return found | {name: told[name] for name in ("nash_conv", "exploitability") if name in told}


def in_words(told: dict[str, Any]) -> str:
    parts = []
    if "exploitability" in told:
        parts.append(f"exploitability {told['exploitability']:.4g} ({told['exploitability_part']:.2%} of the payoffs)")
    elif "improvements" in told:
        improvements = ", ".join(f"{number:.4g} as {name}" for name, number in told["improvements"].items())
        parts.append(f"a best response would improve by {improvements}")
    if len(told.get("against_random", {})) == 1:  # there is nobody else
        ((name, own),) = told["against_random"].items()
        parts.append(f"goal {own['goal']:.1f} ± {own['interval'][1] - own['goal']:.1f} as {name}")
    elif "against_random" in told:
        goals = ", ".join(
            f"{own['goal']:.1f} ± {own['interval'][1] - own['goal']:.1f} as {name}"
            for name, own in told["against_random"].items()
        )
        parts.append(f"against random {goals}")
    return "; ".join(parts)
