"""Batch sizes of outcome sampling: staleness against speed.

All trajectories of a batch are sampled with the same policies. Large batches are faster, but policies are updated less
often; so each size is measured after a number of trajectories, and after a time. Compile times are left out.
"""

import pathlib
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs import devices
from gdlx.experiments.studies import baselines, plots, result_cache, study_registry

MINUTES, FULL_MINUTES = 6.0, 40.0
FIGURE = "batch_size.png"
GAMES = ("leduc_poker", "liars_dice")
BATCHES = (64, 256, 1_024, 4_096, 16_384, 65_536)
TRAJECTORIES = 1_000_000
SECONDS = 3.0
SEEDS, FULL_SEEDS = 3, 20
_CHUNK = 0.05  # seconds between checks of the clock, about

Points = npt.NDArray[np.float64]  # [B, S, 3] batches, seeds, and the fields of a RunResult


class RunResult(NamedTuple):
    """The measurements of one run."""

    rate: float  # trajectories a second
    at_trajectories: float  # exploitability
    at_seconds: float


def run(setting: study_registry.StudyConfig) -> Iterator[study_registry.StudyTable]:
    devices.use_one_device_per_core()
    seconds = SECONDS * setting.minutes / (FULL_MINUTES if setting.is_full else MINUTES)
    seeds = range(setting.seed, setting.seed + (FULL_SEEDS if setting.is_full else SEEDS))
    points = {}
    for game in GAMES:
        points[game] = np.array([[_cached_point(game, batch, n, seconds, setting) for n in seeds] for batch in BATCHES])
        yield _table(game, seconds, points[game])
    draw_figure(setting.folder / FIGURE, seconds, points)


def _cached_point(game: str, batch: int, seed: int, seconds: float, setting: study_registry.StudyConfig) -> RunResult:
    def measured() -> result_cache.Row:
        setting.report(f"{game}, batches of {batch:,}, seed {seed}")
        return measure_point(game, batch, seed, seconds)._asdict()

    settings = {"game": game, "batch": batch, "seed": seed, "seconds": seconds, "trajectories": TRAJECTORIES}
    path = setting.folder / f"{game}-{batch}-{seed}.json"
    return RunResult(**result_cache.load_or_measure(path, settings | result_cache.precision_settings(), measured))


def measure_point(game: str, batch: int, seed: int, seconds: float) -> RunResult:
    sampler = baselines.load_tree_sampler(game)
    warm_up = sampler.run(batch, None, seed)
    warm_up.advance(1)
    warm_up.exploitability()
    return measure_run(sampler.run(batch, None, seed), TRAJECTORIES, seconds)


def measure_run(run: baselines.SamplingRun, trajectories: int, seconds: float) -> RunResult:
    """Runs until there are enough trajectories and seconds. Only sampling is timed."""
    target = round(trajectories / (2 * run.batch))
    spent, at_trajectories, at_seconds = 0.0, None, None
    while at_trajectories is None or at_seconds is None:
        each = spent / run.done if run.done else _CHUNK
        chunk = max(1, round(_CHUNK / each))
        before = time.perf_counter()
        run.advance(min(chunk, target - run.done) if run.done < target else chunk)
        spent += time.perf_counter() - before
        if at_trajectories is None and run.done >= target:
            at_trajectories = run.exploitability()
        if at_seconds is None and spent >= seconds:
            at_seconds = run.exploitability()
    return RunResult(2 * run.batch * run.done / spent, at_trajectories, at_seconds)


def _names(seconds: float) -> Sequence[str]:
    return (f"after {TRAJECTORIES:,} trajectories", f"after {seconds:g} s")


def _table(game: str, seconds: float, points: Points) -> study_registry.StudyTable:
    rows = []
    data = []
    for batch, batch_points in zip(BATCHES, points, strict=True):
        mean, error = plots.mean_and_error(batch_points.T)
        texts = [f"{m:.3g} ± {e:.1g}" for m, e in zip(mean[1:], error[1:], strict=True)]
        rows.append((f"{batch:,}", f"{mean[0] / 1e6:.3g}", *texts))
        data.append({"batch": batch, "runs": [RunResult(*each)._asdict() for each in batch_points.tolist()]})
    title = f"{game}: exploitability, mean and standard error of {points.shape[1]} seeds"
    return study_registry.StudyTable(title, ("batch", "M trajectories/s", *_names(seconds)), rows, {game: data})


def draw_figure(path: pathlib.Path, seconds: float, points: dict[str, Points]) -> None:
    """A row of panels for every game: speed, and exploitability after the trajectories and after the seconds."""
    import matplotlib.ticker

    figure, axes = plots.make_panels(len(points), 2)
    batches = np.array(BATCHES, np.float64)
    for number, (game, game_points) in enumerate(points.items()):
        left, right = axes[2 * number : 2 * number + 2]
        speed = plots.Line("speed", batches, game_points[..., 0] / 1e6, {"marker": "o", "ms": 4})
        plots.plot_curves(left, [speed], title=game, x="batch", y="million trajectories a second")
        errors = [
            plots.Line(name, batches, game_points[..., part], {"marker": marker, "ms": 4})
            for part, (name, marker) in enumerate(zip(_names(seconds), "os", strict=True), 1)
        ]
        plots.plot_curves(right, errors, title=game, x="batch", y="exploitability (payoff units)")
        right.legend(frameon=False, fontsize=8)
        for each in (left, right):
            each.set_xticks(BATCHES, [f"{batch:,}" for batch in BATCHES], fontsize=8)
            each.tick_params(axis="x", which="minor", bottom=False)
            each.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))  # less than a power of ten
            each.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            each.tick_params(axis="y", which="minor", left=False, labelleft=False)
    plots.save_figure(path, figure)
