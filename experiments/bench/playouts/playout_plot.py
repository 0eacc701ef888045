"""Plots playout speed over the batch size, and over the size of the propnet."""

import pathlib
from collections.abc import Callable

from gdlx.envs import devices
from gdlx.experiments.bench import playout_bench
from gdlx.propnet import library

_BATCHES = tuple(256 * 4**power for power in range(7))
_OVER_BATCH = ("tictactoe", "connect_four", "meier")
_NAMED = ("rps", "kuhn_poker", "tictactoe", "smallest", "connect_four", "krieg_tictactoe", "gops", "meier")
_BATCH = 262_144
_PASSES = 2  # some minutes apart; the faster counts, since other load only slows a run down


def draw(path: pathlib.Path, advance: Callable[[str], None] = lambda note: None) -> dict[str, object]:
    """Measures and plots; returns the measurements, in millions of states per second."""
    devices.use_one_device_per_core()
    over_batch = {game: [0.0] * len(_BATCHES) for game in _OVER_BATCH}
    over_operations = dict.fromkeys(library.names(), (0.0, 0))
    for _ in range(_PASSES):
        for game, rates in over_batch.items():
            rates[:] = [max(old, _rate(game, batch, advance)[0]) for old, batch in zip(rates, _BATCHES, strict=True)]
        for game, known in over_operations.items():
            over_operations[game] = max(known, _rate(game, _BATCH, advance))
    _save(path, over_batch, over_operations)
    return {
        "batches": list(_BATCHES),
        "over_batch": over_batch,
        "over_operations": {
            game: {"operations": operations, "rate": rate} for game, (rate, operations) in over_operations.items()
        },
        "picture": str(path),
    }


def _rate(game: str, batch: int, advance: Callable[[str], None]) -> tuple[float, int]:
    """Millions of states per second, and operations per step."""
    from gdlx.envs.packed import playouts, sharded_playouts
    from gdlx.propnet import games

    propnet = games.compile_game(game)
    play = sharded_playouts.ShardedPlayout(propnet, 10_000, batch // playouts.GAMES_PER_WORD)
    stats = play.start(0, steps=8)

    def run(steps: int) -> None:
        nonlocal stats
        stats = play.advance(stats, steps)

    rate = playout_bench.measure_rate(run, play.words * playouts.GAMES_PER_WORD, seconds=1.0) / 1e6
    advance(f"{game}, {batch} games: {rate:.1f} million states/s")
    return rate, playouts.Playout(propnet).step_tape.operations


def _save(
    path: pathlib.Path, over_batch: dict[str, list[float]], over_operations: dict[str, tuple[float, int]]
) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained", sharey=True)
    for game, rates in over_batch.items():
        left.plot(_BATCHES, rates, marker="o", label=game)
    left.set(xscale="log", yscale="log", xlabel="games in the batch", ylabel="million states a second")
    left.set_xticks(_BATCHES, ["256", "1 K", "4 K", "16 K", "64 K", "256 K", "1 M"])
    left.minorticks_off()
    left.legend()
    for game, (rate, operations) in over_operations.items():
        right.plot(operations, rate, "o", color="C0")
        if game in _NAMED:
            right.annotate(game, (operations, rate), xytext=(4, 3), textcoords="offset points", fontsize=8)
    right.margins(x=0.15)
    right.set(xscale="log", xlabel=f"operations of a step ({_BATCH:,} games)")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
