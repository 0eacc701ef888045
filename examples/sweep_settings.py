"""A thousand runs of discounted CFR with other exponents, in one compiled program: python examples/sweep_settings.py"""

import numpy as np
import numpy.typing as npt

import gdlx
from gdlx.solvers import algorithms
from gdlx.solvers.exact import batch, regret_matching

RUNS = 1024


def main() -> npt.NDArray[np.float64]:
    """Returns the exploitability of every run."""
    game, _ = gdlx.envs.sequence_form(gdlx.unroll("kuhn_poker"))
    draw = np.random.default_rng(0).uniform
    settings = regret_matching.Settings(alpha=draw(1, 3, RUNS), beta=draw(-1, 1, RUNS), gamma=draw(1, 4, RUNS))
    result = batch.solve(game, algorithms.find("dcfr"), settings, iterations=200)
    exploitability: npt.NDArray[np.float64] = result.improvements.sum(axis=0) / 2
    best = int(exploitability.argmin())
    print(
        f"best of {RUNS}: alpha {settings.alpha[best]:.2f}, beta {settings.beta[best]:.2f}, "
        f"gamma {settings.gamma[best]:.2f} with exploitability {exploitability[best]:.1e}"
    )
    return exploitability


if __name__ == "__main__":
    main()
