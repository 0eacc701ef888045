"""A CFR variant of your own, beside two known ones: python examples/custom_cfr_variant.py

A variant that differs from CFR in its discounts is an `Algorithm` with other `Settings`. It runs in the same compiled
program as the others, with their metrics, checkpoints, batches and result folders.
"""

import gdlx
from gdlx.solvers import algorithms
from gdlx.solvers.exact import cfr, regret_matching

# Predictive CFR whose negative regrets fade slowly, and whose average weighs policy t with t^3.
SLOW = algorithms.Algorithm(
    "slow-pcfr",
    cfr.step,
    regret_matching.Settings(alpha=1.5, beta=0.3, gamma=3.0, optimism=1.0),
    "discounted predictive CFR with slowly fading negative regrets",
)


def main() -> dict[str, float | None]:
    """Returns the exploitability of every algorithm after the same iterations."""
    exploitability = {}
    for algorithm in ("cfr", "dcfr", SLOW):
        solution = gdlx.solve("kuhn_poker", algorithm, iterations=300)
        exploitability[solution.algorithm] = solution.exploitability
        print(solution)
    return exploitability


if __name__ == "__main__":
    main()
