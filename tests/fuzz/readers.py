"""Whole readers, each with a folder that it can read: whatever is damaged there, they return or raise a UserError."""

import dataclasses
import functools
import json
import pathlib
import random
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from gdlx.envs import game_spec
from gdlx.experiments.bench import harness
from gdlx.experiments.bench.measuring import figures_file
from gdlx.experiments.reports import gather, report
from gdlx.experiments.studies import result_cache
from gdlx.experiments.sweeps import config as sweep_config
from gdlx.experiments.sweeps import query, run, store
from gdlx.nets import checkpoints
from gdlx.nets.learners import learner_registry
from gdlx.players.agents import agent_registry
from gdlx.players.matches import contest, match, records
from gdlx.propnet import games, library
from gdlx.propnet.common import errors
from gdlx.propnet.io import files, ggp_json_writer
from gdlx.propnet.simulate import random_play
from gdlx.propnet.syntax import source
from gdlx.solvers import evaluate_requests, requests, solve_requests, tasks
from gdlx.solvers.runs import policy_files, policy_tables, result_folder, solver_run
from gdlx.tests.fuzz import damage, sheets
from gdlx.tests.helpers import players, samples, trials

GAME = "kuhn_poker"
_SPEC = game_spec.GameSpec(GAME)
_ROW = {"games": 3, "name": "x"}  # of a study
_LONGEST_MESSAGE = 2_000
_SWEEP = f"""games = ["{GAME}"]
iterations = 5
[[algorithms]]
name = "dcfr"
alpha = [1.0, 1.5]
gamma = {{ from = 1.0, to = 2.0, count = 2, scale = "log" }}
"""


class Reader(NamedTuple):
    """`write` fills a folder, `read` reads all of it. `share` is the part of all trials that it gets."""

    write: Callable[[pathlib.Path], object]
    read: Callable[[pathlib.Path], object]
    share: float = 1.0


def _solve(folder: pathlib.Path, algorithm: str, **settings: Any) -> None:
    request = requests.SolveRequest(GAME, algorithm, 5, settings=settings, results=folder / "results")
    saved = solve_requests.execute(request).folder
    assert saved is not None
    for path in list(saved.iterdir()):
        path.rename(folder / path.name)


@functools.cache
def _table_task() -> tasks.TableTask:
    return tasks.make_table_task(_SPEC)


@functools.cache
def _checkpoint_like(algorithm: str, **settings: Any) -> Any:
    task = _table_task() if settings else tasks.make_tree_task(_SPEC, samples.load_tree(GAME))
    request = requests.SolveRequest(GAME, algorithm, 5, settings=settings)
    solver = solver_run.make_solver(task, request.configured_algorithm)
    return solver.to_checkpoint(solver.init())


def _read_result(folder: pathlib.Path) -> None:
    for read in (
        lambda: result_folder.read_config(folder),
        lambda: result_folder.read_metrics(folder, 2),
        lambda: policy_files.load_policies(folder, _SPEC, samples.load_tree(GAME)),
        lambda: result_folder.read_checkpoint(folder, _checkpoint_like("dcfr")),
        lambda: query.rows(gather.gather_runs([folder])),
    ):
        _expect(read)


def _read_table(folder: pathlib.Path) -> None:
    actions = _table_task().env.num_actions
    for read in (
        lambda: result_folder.read_config(folder),
        lambda: policy_files.read_table_rows(folder / result_folder.POLICY, actions),
        lambda: result_folder.read_checkpoint(folder, _checkpoint_like("os-mccfr", table=8, batch=16)),
        lambda: query.rows(gather.gather_runs([folder])),
    ):
        _expect(read)


def _write_policy_tables(folder: pathlib.Path) -> None:
    tree, policies = samples.load_tree(GAME), players.random_policies(GAME, 0)
    (folder / "policy.csv").write_text(policy_tables.to_csv(tree, policies))
    (folder / "policy.json").write_text(json.dumps(policy_tables.to_json(tree, policies)))


def _read_policy_tables(folder: pathlib.Path) -> None:
    for path in sorted(folder.iterdir()):
        _expect(functools.partial(policy_files.load_policies, path, _SPEC, samples.load_tree(GAME), player=0))


def _match() -> match.Match:
    agents = tuple(agent_registry.make_agent("random") for _ in range(2))
    return match.Match(players.load_arena(GAME), agents, match.MatchSettings(20))


def _write_match(folder: pathlib.Path) -> None:
    for _ in (played := contest.MatchRun(_match(), folder)).batches():
        pass
    played.finish()
    (folder / records.INCIDENTS).write_text("game,step,role,agent,kind,message\n3,1,player1,random,crash,x\n")


def _read_match(folder: pathlib.Path) -> None:
    _expect(lambda: records.read_config(folder))
    _expect(lambda: records.read_incidents(folder, records.read_games(folder, _match())))


def _write_training(folder: pathlib.Path) -> None:
    config = learner_registry.TrainConfig(_SPEC, "self-play", 5, learner_registry.make_settings("self-play", {}))
    checkpoints.write_config(folder, config, "digest", 0)
    checkpoints.write_metrics(folder, [{"iteration": n, "loss": 0.5, "improvement_player1": 0.1} for n in range(1, 4)])
    checkpoints.write_state(folder, 3, 1.5, training_state())


def training_state() -> Any:
    numbers = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
    return {"weights": jnp.asarray(numbers), "count": jnp.int32(3)}


def _read_training(folder: pathlib.Path) -> None:
    _expect(lambda: checkpoints.read_train_config(folder))
    _expect(lambda: checkpoints.read_metrics(folder))
    _expect(lambda: checkpoints.read_state(folder, training_state()))
    _expect(lambda: gather.gather_runs([folder]))


def _write_sweep(folder: pathlib.Path) -> None:
    path = folder / "grid.toml"
    path.write_text(_SWEEP)
    run.run_sweep(sweep_config.read(path), folder / "grid", _SWEEP)


@functools.cache
def _cells() -> tuple[sweep_config.Cell, ...]:
    import tomllib

    return sweep_config.expand_cells(tomllib.loads(_SWEEP))


def _read_sweep(folder: pathlib.Path) -> None:
    _expect(lambda: sweep_config.read(folder / "grid.toml"))
    cells = store.SweepStore(folder / "grid")

    def read() -> None:
        with cells.open_for_writing("", False):
            finished = [cell for cell in _cells() if cells.is_finished(cell)]
            intact = [cell for cell in finished if cells.find_damage(cell) is None]
            cells.write_table(intact)

    _expect(read)
    _expect(lambda: query.rows(gather.gather_runs([folder])))


def _write_propnets(folder: pathlib.Path) -> None:
    propnet = games.compile_game(GAME)
    files.save_propnet(propnet, folder / "net.npz")
    files.save_propnet(propnet, folder / "net.json")
    (folder / "ggp.json").write_text(ggp_json_writer.to_json(propnet))


def _read_propnets(folder: pathlib.Path) -> None:
    for path in sorted(folder.iterdir()):
        _expect(functools.partial(_play, path))


def _play(path: pathlib.Path) -> None:
    for number, _ in enumerate(random_play.random_steps(files.load_propnet(path), 2, 0)):
        if number == 4:
            return


def _write_figures(folder: pathlib.Path) -> None:
    figure = harness.Figure("name", 1.5, "s", peer="open_spiel", peer_value=2.0, benchmark="read")
    figures = figures_file.new_report()
    figures_file.write(folder / "figures.json", dataclasses.replace(figures, figures=(figure,)))


def _read_figures(folder: pathlib.Path) -> None:
    _expect(lambda: figures_file.markdown(figures_file.read(folder / "figures.json")))


def _write_study(folder: pathlib.Path) -> None:
    result_cache.load_or_measure(folder / "row.json", _ROW, lambda: {"value": 1.5})
    result_cache.write_arrays(folder / "arrays.npz", {"a": np.arange(8.0)})


def _read_study(folder: pathlib.Path) -> None:
    _expect(lambda: result_cache.load_row(folder / "row.json", _ROW))
    _expect(lambda: result_cache.load_arrays(folder / "arrays.npz", ["a"]))


def _write_rulesheet(folder: pathlib.Path) -> None:
    (folder / "game.gdl").write_text(library.text(GAME))


def _read_rulesheet(folder: pathlib.Path) -> None:
    _expect(lambda: sheets.checked(source.Source.from_path(folder / "game.gdl")))


READERS: Mapping[str, Reader] = {
    "a result": Reader(lambda folder: _solve(folder, "dcfr"), _read_result),
    "a result of sampling": Reader(lambda folder: _solve(folder, "os-mccfr", table=8, batch=16), _read_table),
    "policy tables": Reader(_write_policy_tables, _read_policy_tables),
    "a match": Reader(_write_match, _read_match),
    "a training": Reader(_write_training, _read_training, share=0.3),
    "a sweep": Reader(_write_sweep, _read_sweep, share=0.5),
    "propnets": Reader(_write_propnets, _read_propnets),
    "figures of benchmarks": Reader(_write_figures, _read_figures, share=0.5),
    "measurements of a study": Reader(_write_study, _read_study, share=0.5),
    "a rulesheet": Reader(_write_rulesheet, _read_rulesheet, share=0.3),
    "a loaded solution": Reader(
        lambda folder: _solve(folder, "dcfr"),
        lambda folder: _expect(lambda: evaluate_requests.load_solution(folder)),
        0.1,
    ),
    "a report": Reader(
        _write_sweep, lambda folder: _expect(lambda: report.write([folder], folder / "report.html")), share=0.1
    ),
}


_refusals: list[str] = []  # of the trial at hand


def _expect(read: Callable[[], object]) -> None:
    """Reads; errors for users are what damaged files may raise."""
    try:
        read()
    except errors.UserError as error:
        message = str(error)
    except OSError as error:
        message = str(error.filename and error.strerror)  # the command line shows both
    else:
        return
    _refusals.append(message)
    if not message or len(message) > _LONGEST_MESSAGE:
        raise trials.Failure(f"a message of {len(message)} characters: {message[:200]}")
    if "not enough memory" in message:
        raise trials.Failure(message)


def make_trial(name: str, folder: pathlib.Path) -> trials.Trial:
    """A trial damages a copy of a folder, and reads it."""
    reader = READERS[name]
    pristine = folder / "pristine"
    pristine.mkdir()
    reader.write(pristine)
    _refusals.clear()
    reader.read(pristine)
    if _refusals:
        raise trials.Failure(f"{name}, not damaged, is refused: {_refusals.pop()}")

    def trial(seed: int) -> Mapping[str, int]:
        _refusals.clear()
        place = damage.copy(pristine, folder / "work")
        what = damage.damage(place, random.Random(f"{name} {seed}"))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)  # of numpy, which would print a line of code
                reader.read(place)
        except trials.Failure as error:
            raise trials.Failure(f"{what}: {error}") from error
        except Exception as error:
            error.add_note(what)
            raise
        return {"refused" if _refusals else "read": 1}

    return trial
