"""Runs that sample into a hash table: stopped, resumed, saved, and from the command line."""

import json
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gdlx
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.runs import driver, policy_files, result_folder, solver_run
from gdlx.tests.helpers import commands, tables


def test_going_on_is_as_if_never_stopped(tmp_path: pathlib.Path) -> None:
    task, algorithm = tables.load_task("kuhn_poker"), tables.configure("vr-mccfr")
    whole = solver_run.Run(task, algorithm)
    list(whole.snapshots(driver.StopCondition(iterations=12)))
    first = solver_run.Run(task, algorithm, tmp_path)
    list(first.snapshots(driver.StopCondition(iterations=5)))
    first.finish()
    second = solver_run.Run(task, result_folder.read_config(tmp_path).algorithm, tmp_path, resume=True)
    list(second.snapshots(driver.StopCondition(iterations=12)))
    for ours, theirs in zip(jax.tree.leaves(whole.state), jax.tree.leaves(second.state), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_what_breaks_off_while_measuring_loses_nothing(tmp_path: pathlib.Path) -> None:
    run = solver_run.Run(tables.load_task("kuhn_poker"), tables.configure(), tmp_path)
    points = run.snapshots(driver.StopCondition(iterations=50), every=5)
    next(points), next(points)
    run.solver.advance(run.state, 1)  # donates the state, and the next one is not stored
    assert run.finish().iterations == 5
    assert policy_files.read_table_policy(
        tmp_path / result_folder.POLICY, tables.load_task("kuhn_poker").env.num_actions
    ).cumulative_policy.any()
    assert int(solver_run.Run(tables.load_task("kuhn_poker"), tables.configure(), tmp_path, resume=True).state.t) == 6


@pytest.mark.slow
def test_long_games_do_not_overflow(tmp_path: pathlib.Path) -> None:
    """Sixty decisions with eight actions: 8^60 overflows single precision."""
    numbers = " ".join(f"(after {n} {n + 1})" for n in range(60))
    sheet = tmp_path / "long.gdl"
    sheet.write_text(
        "(role left) (role right) (role random) (init (step 0))\n"
        f"{numbers} {' '.join(f'(move {n})' for n in range(8))}\n"
        "(<= (legal ?p ?m) (role ?p) (distinct ?p random) (move ?m)) (legal random wait)\n"
        "(<= (next (step ?n)) (true (step ?m)) (after ?m ?n))\n"
        "(<= (next luck) (does left 1) (does right 1)) (<= (next luck) (true luck) (does left ?m) (distinct ?m 2))\n"
        "(<= terminal (true (step 60)))\n"
        "(<= (goal left 100) (true luck)) (<= (goal left 0) (not (true luck)))\n"
        "(<= (goal right 0) (true luck)) (<= (goal right 100) (not (true luck)))\n"
    )
    solved = gdlx.solve(str(sheet), "os-mccfr", iterations=3, table=16, batch=32, max_steps=60)
    assert np.isfinite(solved.value).all()


def test_overflow_is_never_saved(tmp_path: pathlib.Path) -> None:
    """A whole table is checked only at intervals, but always before it is written."""
    run = solver_run.Run(tables.load_task("kuhn_poker"), tables.configure(), tmp_path)
    run.state = run.solver.advance(run.state, 3)
    run.solver.measure(run.state, 0.0)
    run.save()
    before = (tmp_path / result_folder.CHECKPOINT).read_bytes()
    state: Any = run.state
    entries = state.entries
    run.state = state._replace(entries=entries._replace(regret=entries.regret.at[0, 0].set(jnp.nan)))
    with pytest.raises(driver.NotFiniteError, match="overflowed before iteration 3"):
        run.save()
    assert (tmp_path / result_folder.CHECKPOINT).read_bytes() == before


def test_policies_in_files() -> None:
    process = tables.make_solver("kuhn_poker")
    policy = process.policy(process.advance(process.init(), 20))
    keys, probability = table_policy.to_arrays(policy)
    back = table_policy.from_arrays(keys, probability)
    task = tables.load_task("kuhn_poker")
    ours, known = table_policy.to_tabular(policy, task.env, task.tree)
    theirs, _ = table_policy.to_tabular(back, task.env, task.tree)
    assert known == 12
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.slow  # the same commands with kuhn_poker are below, the study of blind_tictactoe in test_study_registry.py
def test_a_game_that_cannot_be_unrolled(tmp_path: pathlib.Path) -> None:
    options = ("--algorithm", "os-mccfr", "--table", "12", "--batch", "64", "--iterations", "3", "--json")
    ran = commands.run("solve", "blind_tictactoe", *options, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    output = json.loads(ran.stdout)
    assert output["exploitability"] is None
    assert output["trajectories"] == 3 * 2 * 64
    assert 0 < output["table_load"] < 1
    assert abs(output["value"]["x"] + output["value"]["o"]) < 1e-3
    assert output["value_error"]["x"] < 1.0
    again = commands.run("solve", "--resume", output["result"], "--iterations", "5", "--json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["iterations"] == 5
    shown = commands.run("evaluate", output["result"], "--player", "x", "--history", "start", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "(mark 2 2)" in shown.stdout
    table = commands.run("evaluate", output["result"], "-o", "policy.csv", cwd=tmp_path)
    assert table.returncode == 0, table.stderr
    assert (tmp_path / "policy.csv").read_text().count("\n") > 50


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "0.1"), "--target cannot be used"),
        (("--table", "40"), "less than or equal to 28"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], message: str, tmp_path: pathlib.Path) -> None:
    ran = commands.run("solve", "blind_tictactoe", "--algorithm", "os-mccfr", "--table", "12", *arguments, cwd=tmp_path)
    assert ran.returncode != 0
    assert message in " ".join(ran.stderr.split())
    assert not list(tmp_path.rglob("config.json"))


def test_what_is_refused_leaves_no_folder_and_what_goes_on_keeps_its_seed(tmp_path: pathlib.Path) -> None:
    solving = ("solve", "kuhn_poker", "--algorithm", "os-mccfr", "--table")
    assert commands.run(*solving, "27", "--batch", "99999999", cwd=tmp_path).returncode == 1
    assert not any((tmp_path / "results").rglob("os-mccfr*"))
    done = commands.run(*solving, "4", "--batch", "64", "--iterations", "4", "--json", cwd=tmp_path)
    assert done.returncode == 0
    folder = json.loads(done.stdout)["result"]
    refused = commands.run("solve", "--resume", folder, "--seed", "3", cwd=tmp_path)
    assert (refused.returncode, "leave out --seed" in refused.stderr) == (2, True)
