"""Rows of metrics are those of iterations, not of the clock, so that a resumed run has the same."""

import pathlib

from gdlx.envs import game_spec
from gdlx.nets import checkpoints
from gdlx.solvers import algorithms, tasks
from gdlx.solvers.runs import driver, result_folder, solver_run


def test_a_resumed_run_has_the_rows_of_one_that_was_never_stopped(tmp_path: pathlib.Path) -> None:
    game = game_spec.GameSpec("kuhn_poker")
    task = tasks.make_tree_task(game, game_spec.unroll_game(game))

    def rows(name: str, *stops: int) -> list[object]:
        (tmp_path / name).mkdir()
        for number, stop in enumerate(stops):
            run = solver_run.Run(task, algorithms.find("cfr"), tmp_path / name, resume=number > 0)
            list(run.iterate_metrics(driver.StopCondition(stop)))
            run.finish(write_plot=False)
        return [row._replace(seconds=0.0) for row in result_folder.read_metrics(tmp_path / name, 2)]

    assert rows("resumed", 12, 14, 40) == rows("whole", 40)


def test_integers_of_training_metrics_stay_integers(tmp_path: pathlib.Path) -> None:
    checkpoints.write_metrics(tmp_path, [{"iteration": 1, "seconds": 2.0, "loss": 0.5}])
    before = (tmp_path / result_folder.METRICS).read_bytes()
    checkpoints.write_metrics(tmp_path, checkpoints.read_metrics(tmp_path))
    assert (tmp_path / result_folder.METRICS).read_bytes() == before
