"""Several algorithms on one game in one picture:
`python -m gdlx.experiments.studies.convergence leduc_poker PICTURE.png`.

In double precision, since single precision can end at a millionth of the payoffs' range.
"""

import pathlib
import sys
from collections.abc import Sequence

ALGORITHMS = ("cfr", "cfr+", "dcfr", "pcfr+", "hs-pcfr+", "fp")
ITERATIONS = 10_000


def plot_convergence(
    game: str, path: pathlib.Path, algorithms: Sequence[str] = ALGORITHMS, iterations: int = ITERATIONS
) -> None:
    """Solve a game with each algorithm, and plot how exploitability falls over iterations and time."""
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
