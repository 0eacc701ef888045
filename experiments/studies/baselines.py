"""Outcome sampling with and without baselines: `python -m gdlx.experiments.studies.baselines PICTURE.png`.

Both run for as many trajectories, with settings that differ only in the baselines. On unrolled games exploitability is
exact. phantom_tictactoe cannot be unrolled: there it is a lower bound from approximate best responses with a fixed
budget, and finished seeds are cached beside the picture, in a .json file from which a second call resumes.
"""

import argparse
import functools
import json
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs import devices
from gdlx.propnet.common import atomic_files, bounded_files

GAMES = ("goofspiel:cards=4", "leduc_poker", "princess_and_monster:turns=5", "phantom_tictactoe")
BOUNDED_GAMES = ("phantom_tictactoe",)
POINTS = (100_000, 300_000, 1_000_000, 3_000_000)
BOUNDED_POINTS = (262_144, 1_048_576)
DECAY = 0.3
EXPLORATION = 0.6
FIRST_SEED = 100  # not among those that settings were tuned with
BATCH = 64
BOUNDED_BATCH = 1_024
_BITS = 21  # log2 of the capacity of the hash table
_STEPS = 20  # joint actions of the longest match
_RESPONSE = 128  # batches of 4 096 trajectories that train a response

Errors = npt.NDArray[np.float64]


class Curve(NamedTuple):
    """Axes: S seeds, N points."""

    trajectories: tuple[int, ...]  # N
    error: Errors  # [S, N] exploitability, or a bound on it

    @property
    def mean(self) -> Errors:
        return np.asarray(self.error.mean(axis=0))

    @property
    def standard_error(self) -> Errors:
        spread = self.error.std(axis=0, ddof=1) if len(self.error) > 1 else np.zeros(self.error.shape[1])
        return np.asarray(spread / np.sqrt(len(self.error)))


class TreeSampler:
    """Samples an unrolled game; programs are compiled once for all seeds."""

    def __init__(self, game: str) -> None:
        from gdlx.envs import game_spec
        from gdlx.envs.trees import sampling_form
        from gdlx.solvers import tasks

        self.task = tasks.make_tree_task(game_spec.GameSpec(game), keep_edges=True)
        self.form = sampling_form.sampling_form(self.task.tree)

    def run(self, batch: int, decay: float | None, seed: int) -> "SamplingRun":
        return SamplingRun(self, batch, decay, seed)

    def exploitability(self, weights: Sequence[Any]) -> float:
        """Exploitability of the average policies with these cumulative policies, P x [A, I]."""
        from gdlx.solvers import tabular_policies

        pairs = zip(self.task.tree.players, weights, strict=True)
        policies = tuple(
            tabular_policies.from_table(player, np.asarray(weight, np.float64)) for player, weight in pairs
        )
        return sum(self.task.metrics(policies).improvements) / 2


class SamplingRun:
    """A run of outcome sampling on all devices."""

    def __init__(self, game: TreeSampler, batch: int, decay: float | None, seed: int) -> None:
        import jax

        from gdlx.solvers.mccfr import mccfr, outcome_sampling

        self.game, self.batch, self.done = game, batch, 0
        self._runner = mccfr.make_loop(tuple(jax.local_devices()), outcome_sampling.sample, batch)
        self._fixed = self._runner.place((game.form, sampling_settings(decay), jax.random.key(seed)))
        self._state = self._runner.place(mccfr.init(game.form, baselines=decay is not None))

    def advance_to(self, trajectories: int) -> None:
        """Continues until there are as many trajectories in total."""
        self.advance(round(trajectories / (2 * self.batch)) - self.done)

    def advance(self, iterations: int) -> None:
        form, fixed, key = self._fixed
        self._state = self._runner.advance(form, self._state, fixed, key, max(0, iterations))
        self.done = int(self._state.t)  # waits for it

    def exploitability(self) -> float:
        return self.game.exploitability(self._state.cumulative_policy)


def sampling_settings(decay: float | None) -> Any:
    """The settings of both algorithms: linear CFR."""
    from gdlx.solvers.exact import regret_matching
    from gdlx.solvers.mccfr import mccfr

    minimiser = regret_matching.Settings(
        *(None if x is None else np.float32(x) for x in regret_matching.Settings(1.0, 1.0, 1.0))
    )
    return mccfr.MccfrSettings(minimiser, np.float32(EXPLORATION), None if decay is None else np.float32(decay))


def exact_curve(game: str, decay: float | None, seeds: int, points: Sequence[int] = POINTS) -> Curve:
    """Exploitability on an unrolled game."""
    sampler = load_tree_sampler(game)
    error = np.zeros((seeds, len(points)))
    for seed in range(seeds):
        run = sampler.run(BATCH, decay, FIRST_SEED + seed)
        for number, point in enumerate(points):
            run.advance_to(point)
            error[seed, number] = run.exploitability()
    return Curve(tuple(points), error)


load_tree_sampler = functools.cache(TreeSampler)


class HashTableSampler:
    """Samples a game that cannot be unrolled into a hash table, on one device, and bounds exploitability."""

    def __init__(self, game: str) -> None:
        import gdlx
        from gdlx.envs.packed import packed_env

        self.packed = packed_env.PackedEnv(gdlx.make(game))

    def errors(self, decay: float | None, seed: int, points: Sequence[int]) -> list[float]:
        import jax

        from gdlx.solvers.bounds import approximate_response
        from gdlx.solvers.mccfr import table_loop, table_policy, table_state

        fixed = sampling_settings(decay)
        config = table_state.SamplerConfig(BOUNDED_BATCH, _STEPS, baselines=decay is not None)
        runner = table_loop.make_loop(tuple(jax.local_devices()[:1]), self.packed, config)
        state = runner.place(table_state.init(self.packed, config, _BITS, runner.devices))
        budget = approximate_response.Budget(approximate_response.LearnerConfig(_STEPS), batches=_RESPONSE, bits=19)
        errors = []
        for point in points:
            remaining = point // (2 * config.batch) - int(state.t)
            state = runner.advance(state, fixed, jax.random.key(FIRST_SEED + seed), remaining)
            policy = table_policy.average_policy(state, fixed.minimiser)
            bound = approximate_response.estimate_bound(self.packed, policy, jax.random.key(1_000 + seed), budget)
            errors.append(bound.exploitability)
        return errors


def bounded_curves(
    game: str, seeds: int, cache: Errors | None = None, points: Sequence[int] = BOUNDED_POINTS
) -> Iterable[Errors]:
    """Yields [S, 2, N] errors without and with baselines, after each seed; seeds in `cache` are not measured again."""
    sampler = HashTableSampler(game)
    errors = np.zeros((0, 2, len(points))) if cache is None else cache[:seeds]
    yield errors
    for seed in range(len(errors), seeds):
        new = np.array([sampler.errors(decay, seed, points) for decay in (None, DECAY)])
        errors = np.concatenate([errors, new[None]])
        yield errors


def report(game: str, plain: Curve, reduced: Curve) -> None:
    """Prints the lines of the table."""
    wins = (reduced.error < plain.error).sum(axis=0)
    for number, point in enumerate(plain.trajectories):
        means = [f"{c.mean[number]:8.4f} +- {c.standard_error[number]:.4f}" for c in (plain, reduced)]
        print(
            f"{game:30}{point:>10,}  {means[0]:>20}  {means[1]:>20}  {wins[number]:>4} of {len(plain.error)}",
            flush=True,
        )


def draw_band(axes: Any, places: Sequence[float], error: Errors, label: str) -> None:
    """Draws the mean over seeds of [S, N] errors and its standard error, on logarithmic axes."""
    curve = Curve((), error)
    (line,) = axes.plot(places, curve.mean, marker="o", markersize=3, label=label)
    low, high = curve.mean - curve.standard_error, curve.mean + curve.standard_error
    axes.fill_between(places, low, high, alpha=0.25, color=line.get_color(), linewidth=0)
    axes.set(xscale="log", yscale="log")
    axes.grid(True, which="major", alpha=0.3)


def save(figure: Any, path: pathlib.Path) -> None:
    figure.savefig(path, dpi=120)


def draw_figure(path: pathlib.Path, curves: Iterable[tuple[str, Curve, Curve]]) -> None:
    import matplotlib.figure

    shown = list(curves)
    figure = matplotlib.figure.Figure(figsize=(3.6 * len(shown), 3.6), layout="constrained")
    for axes, (game, plain, reduced) in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        draw_band(axes, plain.trajectories, plain.error, "outcome sampling")
        draw_band(axes, reduced.trajectories, reduced.error, f"with baselines, decay {DECAY:g}")
        what = "bound on exploitability" if game in BOUNDED_GAMES else "exploitability"
        axes.set(title=f"{game} ({len(plain.error)} seeds)", xlabel="trajectories", ylabel=f"{what} (payoff units)")
        axes.title.set_fontsize(9)
    figure.axes[0].legend(frameon=False, fontsize=8)
    save(figure, path)


def run_study(
    games: Sequence[str], seeds: int, bounded_seeds: int, cache: pathlib.Path | None = None
) -> Iterable[tuple[str, Curve, Curve]]:
    """Measures all games; bounds take long, so `cache` caches each of their seeds."""
    for game in games:
        if game in BOUNDED_GAMES:
            for errors in bounded_curves(game, bounded_seeds, load_errors(cache, game)):
                save_errors(cache, game, errors)
            plain, reduced = (Curve(BOUNDED_POINTS, errors[:, number]) for number in range(2))
        else:
            plain, reduced = (exact_curve(game, decay, seeds) for decay in (None, DECAY))
        report(game, plain, reduced)
        yield game, plain, reduced


def load_errors(cache: pathlib.Path | None, game: str) -> Errors | None:
    if cache is None or not cache.exists():
        return None
    cached = bounded_files.read_json(cache)
    is_same = cached["settings"] == _cache_settings()
    return np.array(cached[game]) if is_same and cached.get(game) else None


def save_errors(cache: pathlib.Path | None, game: str, errors: Errors) -> None:
    if cache is not None and len(errors):
        atomic_files.write_atomically(
            cache, json.dumps({"settings": _cache_settings(), game: errors.tolist()}).encode()
        )


def _cache_settings() -> list[float]:
    return [DECAY, EXPLORATION, FIRST_SEED, BOUNDED_BATCH, _BITS, _RESPONSE, *BOUNDED_POINTS]


def main() -> None:
    parser = argparse.ArgumentParser(description="Outcome sampling with and without baselines.")
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("--games", nargs="+", default=GAMES)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument(
        "--bounded-seeds", type=int, default=20, help="seeds for games whose exploitability is only bounded"
    )
    arguments = parser.parse_args()
    devices.use_one_device_per_core()
    print(f"{'game':30}{'trajectories':>10}  {'plain':>18}  {'baselines':>20}  baselines win", flush=True)
    cache = arguments.picture.with_suffix(".json")
    draw_figure(arguments.picture, run_study(arguments.games, arguments.seeds, arguments.bounded_seeds, cache))


if __name__ == "__main__":
    main()
