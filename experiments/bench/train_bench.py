"""Benchmark `train`: training of networks. Each part measures one way of training."""

from collections.abc import Callable, Iterator

from gdlx.experiments.bench import harness
from gdlx.experiments.bench.training import deep_cfr_figures, self_play_figures, supervised_figures

_PARTS: tuple[Callable[[], Iterator[harness.Figure]], ...] = (
    deep_cfr_figures.figures,
    self_play_figures.speed_figures,
    supervised_figures.figures,
    self_play_figures.strength_figures,
)


def figures() -> Iterator[harness.Figure]:
    for part in _PARTS:
        yield from part()
