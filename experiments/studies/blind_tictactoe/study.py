"""Three blind tic-tac-toes, solved by MCCFR with a hash table: openings beside those of a published search.

`bias` is who gets a cell that both mark at once: each with probability 1/2 (even), x with 2/3 (x23), always x (x).
"""

import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from gdlx.envs import compilation_cache, game_spec
from gdlx.experiments.studies import study_registry
from gdlx.solvers import algorithms, solution, tasks
from gdlx.solvers.bounds import search_bounds
from gdlx.solvers.runs import driver, policy_files, result_folder, solver_run

MINUTES, FULL_MINUTES = 30.0, 180.0
_SETTINGS = {"table": 24, "batch": 4_096}
_ALGORITHM = "vr-mccfr"  # after two minutes on bias=x its bound was 1.5, that of os-mccfr 2.3
_BOUND = 1 / 30  # fraction of the time of a game that is spent on its bound

Range = tuple[float, float]


class Openings(NamedTuple):
    """Probabilities of a role's first move, lowest and highest over the cells of a kind; None if not published."""

    centre: Range
    corner: Range | None
    side: Range


# West 2024 (UNSW), sections 4.3.1 to 4.3.3: 100 000 iterations of external sampling, about 40 hours each.
PUBLISHED: Mapping[str, Mapping[str, Openings]] = {
    "even": dict.fromkeys(("x", "o"), Openings((0.316, 0.320), (0.148, 0.165), (0.012, 0.022))),
    "x23": {
        "x": Openings((0.329, 0.329), None, (0.005, 0.005)),
        "o": Openings((0.203, 0.203), None, (0.074, 0.091)),
    },
    "x": {
        "x": Openings((0.394, 0.394), None, (0.002, 0.003)),
        "o": Openings((0.137, 0.137), None, (0.071, 0.080)),
    },
}


def run(setting: study_registry.StudyConfig) -> Iterator[study_registry.StudyTable]:
    compilation_cache.enable()
    for bias in PUBLISHED:
        minutes = setting.minutes / len(PUBLISHED)
        task, solved = solve_variant(bias, setting.folder / bias, minutes, setting)
        yield _openings(bias, solved)
        yield _value_table(task, setting.folder / bias, solved, 60 * minutes * _BOUND, setting)


def solve_variant(
    bias: str, folder: pathlib.Path, minutes: float, setting: study_registry.StudyConfig
) -> tuple[tasks.TableTask, solution.Solution]:
    """Samples a game until it has had so many minutes, resuming from the checkpoint in the folder."""
    task = tasks.make_table_task(game_spec.GameSpec(f"blind_tictactoe:bias={bias}"))
    changes: dict[str, Any] = {**_SETTINGS, "seed": setting.seed}
    algorithm = algorithms.configure(algorithms.find(_ALGORITHM), None, changes)
    has_checkpoint = (folder / result_folder.CHECKPOINT).exists()
    if has_checkpoint and result_folder.read_config(folder).algorithm != algorithm:
        raise result_folder.ResultError(
            f"{folder} was started with other settings; use another results folder, or the `seed=` of that run"
        )
    folder.mkdir(parents=True, exist_ok=True)
    sampling = solver_run.Run(task, algorithm, folder, resume=has_checkpoint, interval=60.0)
    try:
        for point in sampling.snapshots(driver.StopCondition(None, 60 * minutes)):
            rate = point.metrics.samples / max(point.metrics.seconds, 1e-9)
            setting.report(f"{bias}: {point.metrics.seconds / 60:.1f} of {minutes:.0f} minutes, {rate:,.0f} a second")
    finally:
        result = sampling.finish()
    return task, result


def _openings(bias: str, solved: solution.Solution) -> study_registry.StudyTable:
    rows, data = [], {}
    for role in ("x", "o"):
        ours, theirs = summarize_openings(solved.policy(role)), PUBLISHED[bias][role]
        data[role] = {"ours": ours._asdict(), "published": theirs._asdict()}
        for kind in Openings._fields:
            rows.append((role, kind, _shown(getattr(ours, kind)), _shown(getattr(theirs, kind))))
    minutes = solved.metrics[-1].seconds / 60
    header = ("role", "first mark", f"ours, {minutes:.0f} minutes", "published, 40 hours")
    return study_registry.StudyTable(
        f"blind_tictactoe:bias={bias}, probability of each opening", header, rows, {bias: data}
    )


def summarize_openings(policy: Mapping[str, float]) -> Openings:
    """Groups the probabilities of first moves by kind of cell.

    >>> summarize_openings({f"(mark {m} {n})": (0.2 if m == n == 2 else 0.1) for m in (1, 2, 3) for n in (1, 2, 3)})
    Openings(centre=(0.2, 0.2), corner=(0.1, 0.1), side=(0.1, 0.1))
    """
    kinds: dict[int, list[float]] = {0: [], 1: [], 2: []}  # by how many coordinates are in the middle
    for move, probability in policy.items():
        kinds[sum(word == "2" for word in move.strip("()").split()[1:])].append(probability)
    corner, side, centre = ((min(probabilities), max(probabilities)) for probabilities in kinds.values())
    return Openings(centre, corner, side)


def _shown(bounds: Range | None) -> str:
    if bounds is None:
        return "not published"
    low, high = (f"{bound:.3f}" for bound in bounds)
    return low if low == high else f"{low} to {high}"


def _value_table(
    task: tasks.TableTask,
    folder: pathlib.Path,
    solved: solution.Solution,
    seconds: float,
    setting: study_registry.StudyConfig,
) -> study_registry.StudyTable:
    """The value of the policies for x, and a lower bound on their exploitability."""
    policy = policy_files.read_table_policy(folder / result_folder.POLICY, task.env.num_actions)
    setting.report(f"bound, {seconds:.0f} s")
    bound = search_bounds.bound_policy(task, policy, seconds, setting.seed)
    last = solved.metrics[-1]
    value, error = last.value[0] + task.env.payoffs.offset, 1.96 * last.value_error[0]
    rows = [
        ("value for x, of 100", f"{value:.2f} ± {error:.2f}"),
        ("lower bound on exploitability", f"{bound.exploitability:.2f} ± {1.96 * bound.standard_error:.2f}"),
        ("information sets", f"{round((last.load or 0) * 2 ** _SETTINGS['table']):,}"),
        ("trajectories", f"{last.samples:,}"),
    ]
    data = {
        "value": value,
        "interval": [value - error, value + error],
        "exploitability_bound": bound.exploitability,
        "bound_error": bound.standard_error,
        "trajectories": last.samples,
        "seconds": last.seconds,
    }
    return study_registry.StudyTable(
        "value and exploitability of these policies", ("", ""), rows, {f"{solved.tree.name} worth": data}
    )
