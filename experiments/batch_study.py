"""Batch sizes of outcome sampling, staleness against speed: `python -m gdlx.experiments.batch_study PICTURE.png`.

All trajectories of a batch see the same policies. Large batches are faster, but policies change less often; so each
size is shown after as many trajectories, and after as many seconds. Compile times are left out.
"""

import argparse
import pathlib
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gdlx.envs import devices
from gdlx.experiments import baseline_study

GAMES = ("leduc_poker", "liars_dice")
BATCHES = (64, 256, 1_024, 4_096, 16_384, 65_536)
TRAJECTORIES = 1_000_000
SECONDS = 3.0
_CHUNK = 0.05  # seconds between two looks at the clock, about


class Point(NamedTuple):
    """What one run came to."""

    rate: float  # trajectories a second
    at_trajectories: float  # exploitability
    at_seconds: float


def measure(run: baseline_study.Run, trajectories: int, seconds: float) -> Point:
    """One run until both marks are passed. Only sampling is timed."""
    wanted = round(trajectories / (2 * run.batch))
    spent, at_trajectories, at_seconds = 0.0, None, None
    while at_trajectories is None or at_seconds is None:
        each = spent / run.done if run.done else _CHUNK
        chunk = max(1, round(_CHUNK / each))
        before = time.perf_counter()
        run.advance(min(chunk, wanted - run.done) if run.done < wanted else chunk)
        spent += time.perf_counter() - before
        if at_trajectories is None and run.done >= wanted:
            at_trajectories = run.exploitability()
        if at_seconds is None and spent >= seconds:
            at_seconds = run.exploitability()
    return Point(2 * run.batch * run.done / spent, at_trajectories, at_seconds)


def points(game: str, batch: int, seeds: int) -> list[Point]:
    made = baseline_study.unrolled(game)
    warm = made.run(batch, None, 0)
    warm.advance(1)
    warm.exploitability()
    return [measure(made.run(batch, None, seed), TRAJECTORIES, SECONDS) for seed in range(seeds)]


def study(game: str, seeds: int) -> list[list[Point]]:
    """A row of seeds for every batch size."""
    found = []
    for batch in BATCHES:
        found.append(points(game, batch, seeds))
        rate, by_trajectories, by_seconds = (np.mean(column) for column in zip(*found[-1], strict=True))
        print(f"{game:14}{batch:>8,}{rate / 1e6:>10.2f}{by_trajectories:>14.4f}{by_seconds:>14.4f}", flush=True)
    return found


def picture(path: pathlib.Path, shown: Sequence[tuple[str, list[list[Point]]]]) -> None:
    """A row of panels for every game: speed, and exploitability after as many trajectories and as many seconds."""
    import matplotlib.figure

    figure = matplotlib.figure.Figure(figsize=(8.4, 3.3 * len(shown)), layout="constrained")
    for (left, right), (game, found) in zip(figure.subplots(len(shown), 2, squeeze=False), shown, strict=True):
        table = np.array(found).transpose(2, 1, 0)  # what is measured, seeds, batches
        baseline_study.draw_band(left, BATCHES, table[0] / 1e6, "speed")
        baseline_study.draw_band(right, BATCHES, table[1], f"after {TRAJECTORIES:,} trajectories")
        baseline_study.draw_band(right, BATCHES, table[2], f"after {SECONDS:g} s")
        left.set(title=game, xlabel="batch", ylabel="million trajectories a second")
        right.set(title=game, xlabel="batch", ylabel="exploitability (payoff units)")
        right.legend(frameon=False, fontsize=8)
        for axes in (left, right):
            axes.set_xticks(BATCHES, [f"{batch:,}" for batch in BATCHES], fontsize=8)
            axes.minorticks_off()
    baseline_study.save(figure, path)


def _studies(seeds: int) -> Iterator[tuple[str, list[list[Point]]]]:
    for game in GAMES:
        yield game, study(game, seeds)


def main() -> None:
    parser = argparse.ArgumentParser(description="Batch sizes of outcome sampling.")
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args()
    devices.one_per_core()
    after = f"{TRAJECTORIES:,} traj.", f"{SECONDS:g} s"
    print(f"{'game':14}{'batch':>8}{'M traj./s':>10}{after[0]:>14}{after[1]:>14}", flush=True)
    picture(chosen.picture, list(_studies(chosen.seeds)))


if __name__ == "__main__":
    main()
