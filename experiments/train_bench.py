"""Benchmark `train`: networks that learn games. Each part measures one way to train them."""

from collections.abc import Callable, Iterator

from gdlx.experiments import bench, train_deep_cfr, train_self_play, train_supervised

_PARTS: tuple[Callable[[], Iterator[bench.Figure]], ...] = (
    train_deep_cfr.figures,
    train_self_play.speed,
    train_supervised.figures,
    train_self_play.strong,
)


def figures() -> Iterator[bench.Figure]:
    for part in _PARTS:
        yield from part()
