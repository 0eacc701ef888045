"""Plots the convergence of several algorithms on one game:
`python -m gdlx.experiments.studies.convergence leduc_poker PICTURE.png`.

In double precision, since in single precision exploitability may not fall below a millionth of the payoff range.
"""

import pathlib
import sys
from collections.abc import Sequence

ALGORITHMS = ("cfr", "cfr+", "dcfr", "pcfr+", "hs-pcfr+", "fp")
ITERATIONS = 10_000


def plot_convergence(
    game: str, path: pathlib.Path, algorithms: Sequence[str] = ALGORITHMS, iterations: int = ITERATIONS
) -> None:
    """Solves a game with each algorithm, and plots exploitability over iterations and time."""
    import jax

    import gdlx
    from gdlx.envs import game_spec
    from gdlx.solvers.runs import plot

    with jax.enable_x64(True):
        tree = game_spec.unroll_game(game_spec.GameSpec(game))
        runs = {name: gdlx.solve(tree, name, iterations=iterations).metrics for name in algorithms}
    plot.plot_convergence(path, runs, game)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m gdlx.experiments.studies.convergence GAME PICTURE.png")
    plot_convergence(sys.argv[1], pathlib.Path(sys.argv[2]))
