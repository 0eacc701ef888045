"""The command `train`: train neural networks, and measure their strength."""

import pathlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gdlx.cli import console, loading, shared_options
from gdlx.propnet.common import interrupts

if TYPE_CHECKING:
    from gdlx.envs import game_spec
    from gdlx.nets import training
    from gdlx.nets.learners import learner_registry, protocol
    from gdlx.propnet.circuits import propnet
    from gdlx.solvers import tasks

_GAMES = 1_000
_SMALL = 200_000  # joint actions of one step, up to which a game is unrolled to measure networks exactly


def train(
    context: typer.Context,
    game: shared_options.GameOrResume = None,
    minutes: Annotated[
        float | None, typer.Option(help="Training time, including that before --resume; 10 by default.")
    ] = None,
    iterations: Annotated[int | None, typer.Option(min=1, help="Stop after this many iterations.")] = None,
    learner: Annotated[str, typer.Option(help="A learner listed above.")] = "self-play",
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the learner, e.g. --set games=1024.", metavar="X=Y")
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(min=1, help="Steps of history that networks see; by default the length of random matches."),
    ] = None,
    resume: Annotated[
        pathlib.Path | None, typer.Option(help="Resume the training run in this folder.", metavar="DIR")
    ] = None,
    results: Annotated[
        pathlib.Path, typer.Option(help="Where to create the result folder.", metavar="DIR")
    ] = pathlib.Path("results"),
    checkpoint: shared_options.Checkpoint = 60.0,
    payoff: shared_options.Payoff = "auto",
    max_nodes: shared_options.MaxNodes = shared_options.DEFAULT_NODES,
    *,
    compiling: shared_options.Compiling,
) -> None:
    """Train neural networks to play a game and to predict its values.

    Learners: self-play (any game; batched matches with a search at every state), deep-cfr (two-player games that can
    be unrolled; sound if zero-sum), supervised (games that can be unrolled; learns values of solved games for
    depth-limited solving).
    """
    options = console.options(context)
    within = compiling.limits
    if (game is None) == (resume is None):
        raise typer.BadParameter("name a GAME to train for, or a folder to --resume, and not both")
    if options.x64:
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
        config, digest, seed = checkpoints.read_train_config(resume)
        propnet = loading.load_propnet(options, config.game.spec, config.game.gdl, config.game.fold_case, within)
        if digest != game_facts.probe(propnet).digest:
            raise folders.ResultError(
                f"{resume} was trained with other rules of {config.game.spec} than the current ones"
            )
        task = task_of(options, config.learner, config.game, propnet, max_nodes)
        folder = resume
    else:
        named = game_spec.GameSpec(game or "", payoff, "max", compiling.gdl, compiling.fold_case)
        settings = learner_registry.make_settings(learner, _changes(setting or []))
        propnet = loading.load_propnet(options, named.spec, named.gdl, named.fold_case, within)
        digest, seed = game_facts.probe(propnet).digest, options.seed
        task = task_of(options, learner, named, propnet, max_nodes)
        config = learner_registry.TrainConfig(
            named, learner, window or learner_registry.default_window(propnet, task), settings
        )
    trainer = learner_registry.make_learner(config, propnet, task)
    training.require_memory(trainer)
    if resume is None:
        folder = folders.create_folder(results, config.game.spec, f"network-{learner}")
    try:
        run = training.TrainingRun(
            config, trainer, digest, folder, seed=seed, resume=resume is not None, interval=checkpoint
        )
        _train(options, run, stop, task, folder, config)
    finally:
        if resume is None and not checkpoints.has_state(folder):
            folders.discard(folder)


_FIXED = ("learner", "setting", "window", "payoff", "gdl", "fold_case", "results")


def _changes(settings: list[str]) -> dict[str, str]:
    changes: dict[str, str] = {}
    for text in settings:
        name, is_pair, value = text.partition("=")
        if not is_pair or not name or name in changes:
            raise typer.BadParameter(f"--set takes each setting once, as games=1024; not {text!r}")
        changes[name.strip().replace("-", "_")] = value.strip()
    return changes


def task_of(
    options: console.Options,
    learner: str,
    game: "game_spec.GameSpec",
    propnet: "propnet.PropNet",
    max_nodes: int = shared_options.DEFAULT_NODES,
) -> "tasks.TreeTask | None":
    """Return the unrolled game if the learner needs it or if it is small enough to measure networks exactly."""
    from gdlx.envs import game_spec
    from gdlx.envs.trees import game_tree
    from gdlx.nets.learners import learner_registry
    from gdlx.solvers import tasks

    is_needed = learner_registry.find_entry(learner).needs_tree
    try:
        with console.progress(options, f"unrolling {game.spec}"):
            limit = max_nodes if is_needed else min(max_nodes, _SMALL)
            tree = game_spec.unroll_game(game, propnet=propnet, max_nodes=limit, keep_edges=True)
    except game_tree.TooLargeError as error:
        if is_needed:
            more = (
                "allow more with --max-nodes, which takes more memory, or train without unrolling: --learner self-play"
            )
            advice = f"Make the game smaller, {more}"
            raise game_tree.TooLargeError(error.reason, advice) from None
        return None
    return tasks.make_tree_task(game, tree)


def evaluate(options: console.Options, folder: pathlib.Path) -> None:
    """Run `gdlx evaluate` on trained networks."""
    from gdlx.nets import checkpoints, evaluation
    from gdlx.nets.learners import self_play, supervised
    from gdlx.propnet.common import limits

    config, _, _ = checkpoints.read_train_config(folder)
    game = config.game
    propnet = loading.load_propnet(options, game.spec, game.gdl, game.fold_case, limits.Limits())
    task = task_of(options, config.learner, game, propnet, checkpoints.ANY_NODES)
    learner, state, iteration, seconds = checkpoints.restore_training(folder, propnet, task)
    parameters = learner.policy_params(state)
    strength = measured(learner, parameters, task, games=_GAMES, seed=options.seed)
    if task is not None and isinstance(learner, self_play.SelfPlay):
        strength["predicted"] = evaluation.value_accuracy(learner, parameters, task)._asdict()
    if isinstance(learner, supervised.Supervised):
        strength["value_error"] = float(learner.error(learner.values(state), state.held_out))
    if options.json:
        run = {"game": game.spec, "learner": config.learner, "iterations": iteration, "seconds": seconds}
        console.emit(run | {"result": str(folder)} | strength)
        return
    about = f"{config.learner} on {game.spec}, {iteration:,} iterations in {seconds / 60:.1f} minutes"
    console.say(f"{about}: {in_words(strength)}")
    if "predicted" in strength:
        accuracy = strength["predicted"]
        console.say(
            f"predicted values of information sets, compared with the exact values of its policies: error "
            f"{accuracy['error']:.2%} of the payoff range, correlation {accuracy['correlation']:.2f}"
        )
    if "value_error" in strength:
        console.say(f"values of held-out ranges: error {strength['value_error']:.2%} of the payoff range")


def _train(
    options: console.Options,
    run: "training.TrainingRun",
    stop: Any,
    task: "tasks.TreeTask | None",
    folder: pathlib.Path,
    config: "learner_registry.TrainConfig",
) -> None:
    import jax

    from gdlx.nets import training
    from gdlx.nets.models import networks as bodies

    count = bodies.num_params(jax.eval_shape(run.learner.policy_params, run.state))
    if not options.json:
        memory = training.num_bytes(run.state) / 2**20
        console.say(
            f"{config.learner} on {config.game.spec}: {count:,} policy parameters, {memory:,.0f} MiB of training state"
        )
    before = run.iteration
    interrupted = _learn(options, run, stop, task, config)
    try:
        strength = (
            measured(run.learner, run.learner.policy_params(run.state), task, games=_GAMES) if run.iteration else {}
        )
        if strength:
            run.log_metrics(_columns(strength))
    finally:
        run.finish()
    if options.json:
        console.emit(
            {
                "game": config.game.spec,
                "learner": config.learner,
                "iterations": run.iteration,
                "seconds": run.seconds,
                "result": str(folder),
                "interrupted": interrupted,
                "parameters": count,
                "metrics": run.rows[-1] if run.rows else {},
                **strength,
            }
        )
    else:
        _show(run, config.game, strength, folder)
    if interrupted:
        console.remark(options, f"interrupted; resume with: gdlx train --resume {folder} --minutes ..")
        raise typer.Exit(interrupts.exit_code())
    _remark_on_time(options, run, stop, before)


def _learn(
    options: console.Options,
    run: "training.TrainingRun",
    stop: Any,
    task: "tasks.TreeTask | None",
    config: "learner_registry.TrainConfig",
) -> bool:
    """Train until `stop`, with measurements in between, and save; return whether it was interrupted."""
    from gdlx.nets import training

    try:
        with console.progress(options, f"{config.learner} on {config.game.spec}") as advance:
            for point in run.points(stop):
                advance(f"{point.iteration:,} iterations, loss {point.metrics['loss']:.4g}")
                if training.is_measured(point.iteration):
                    strength = measured(run.learner, run.learner.policy_params(run.state), task, games=_GAMES)
                    run.log_metrics(_columns(strength))
                    if not options.json and not options.quiet:
                        _show_point(point, strength)
    except KeyboardInterrupt:
        if not run.iteration:
            raise
        return True
    finally:  # also if Ctrl-C comes during a measurement
        if run.iteration:
            run.save()
    return False


def _show_point(point: "training.ProgressPoint", strength: dict[str, Any]) -> None:
    progress = f"{point.seconds / 60:6.1f} min  {point.iteration:7,} iterations"
    console.say(f"{progress}  loss {point.metrics['loss']:.4f}  {in_words(strength)}")


def _show(
    run: "training.TrainingRun", game: "game_spec.GameSpec", strength: dict[str, Any], folder: pathlib.Path
) -> None:
    console.say(f"after {run.iteration:,} iterations in {run.seconds / 60:.1f} minutes: {in_words(strength)}")
    flags = "".join(f" {option}" for option in _options(game))
    others = " random" * (run.learner.encoder.env.num_players - 1)
    command = f"gdlx match {game.spec} network:{folder}{others}{flags}"
    console.say(f"networks in {folder}; let them play with: {command}")


def _remark_on_time(options: console.Options, run: "training.TrainingRun", stop: Any, before: int) -> None:
    """Remark that the time was too short for more than one iteration; `before` is the iteration at the start."""
    if run.iteration == before:
        console.remark(
            options, "nothing was trained: the limit had been reached before; raise --minutes or --iterations"
        )
    elif run.iteration == 1 and stop.seconds is not None and run.seconds >= stop.seconds:
        console.remark(
            options, "the time ended during the first iteration, most of which is compilation; use more --minutes"
        )


def _options(game: "game_spec.GameSpec") -> list[str]:
    """Return the options that another command needs to read the same game."""
    flags = [f"--payoff {game.payoff}"] if game.payoff != "auto" else []
    flags += [f"--gdl {game.gdl}"] if game.gdl is not None else []
    return flags + (["--fold-case"] if game.fold_case else [])


def measured(
    learner: "protocol.Learner", parameters: Any, task: "tasks.TreeTask | None", *, games: int, seed: int = 0
) -> dict[str, Any]:
    """Return the strength of networks, as `train` and `evaluate` print it under --json."""
    from gdlx.nets import evaluation

    strength: dict[str, Any] = {}
    players = learner.encoder.env.players
    if task is not None:
        improvements = evaluation.improvements(learner, parameters, task)
        low, high = task.payoff_range
        strength["nash_conv"] = sum(improvements)
        strength["improvements"] = dict(zip(players, improvements, strict=True))
        if len(improvements) == 2:
            strength["exploitability"] = sum(improvements) / 2
            strength["exploitability_part"] = sum(improvements) / 2 / max(high - low, 1e-9)
    against = evaluation.evaluate_against_random(learner, parameters, games=games, seed=seed)
    strength["against_random"] = {
        name: {"goal": goal, "interval": [goal - error, goal + error], "games": against.games}
        for name, goal, error in zip(players, against.goal, against.error, strict=True)
    }
    return strength


def _columns(strength: dict[str, Any]) -> dict[str, float]:
    """Return the columns of metrics.csv."""
    columns = {f"goal_{name}": score["goal"] for name, score in strength["against_random"].items()}
    columns |= {f"improvement_{name}": number for name, number in strength.get("improvements", {}).items()}
    return columns | {name: strength[name] for name in ("nash_conv", "exploitability") if name in strength}


def in_words(strength: dict[str, Any]) -> str:
    """Return the strength of networks as a phrase."""
    parts = []
    if "exploitability" in strength:
        parts.append(
            f"exploitability {strength['exploitability']:.4g} "
            f"({strength['exploitability_part']:.2%} of the payoff range)"
        )
    elif "improvements" in strength:
        improvements = ", ".join(f"{number:.4g} as {name}" for name, number in strength["improvements"].items())
        parts.append(f"best-response improvement {improvements}")
    if len(strength.get("against_random", {})) == 1:  # a single player
        ((name, score),) = strength["against_random"].items()
        parts.append(f"goal {score['goal']:.1f} ± {score['interval'][1] - score['goal']:.1f} as {name}")
    elif "against_random" in strength:
        goals = ", ".join(
            f"{score['goal']:.1f} ± {score['interval'][1] - score['goal']:.1f} as {name}"
            for name, score in strength["against_random"].items()
        )
        parts.append(f"against random {goals}")
    return "; ".join(parts)
