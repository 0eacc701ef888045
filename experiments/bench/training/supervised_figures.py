"""Figures of supervised value networks and of depth-limited solving with them, for the benchmark `train`.

python -m gdlx.experiments.bench.training.supervised_figures          the figures
python -m gdlx.experiments.bench.training.supervised_figures public-states   sizes of public states in the library
"""

import dataclasses
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gdlx.experiments.bench import harness

if TYPE_CHECKING:
    from gdlx.nets.learners import supervised
    from gdlx.solvers import tabular_policies, tasks

_ERROR, _NEAR = 0.02, 0.05  # of the payoff range


@dataclasses.dataclass(frozen=True)
class Case:
    game: str
    depth: int
    iterations: int
    steps: int  # of training in each
    batch: int = 512
    minibatch: int = 32
    solving: int = 300
    search: int = 300  # iterations of depth-limited solving


CASES = (
    Case("kuhn_poker", 3, 10, 400),
    Case("leduc_poker", 4, 20, 500, batch=256, minibatch=16),
    Case("goofspiel:cards=4", 1, 20, 1_000, batch=2_048),
)
_DEEPEST, _FEW = 4, 100_000  # joint actions, and nodes, in the table of public states


def figures(cases: tuple[Case, ...] = CASES) -> Iterator[harness.Figure]:
    """Value errors on held-out ranges, and exploitability of depth-limited solving with the network."""
    for case in cases:
        yield from _of_case(case)


def _of_case(case: Case) -> Iterator[harness.Figure]:
    import jax

    from gdlx.nets.learners import supervised
    from gdlx.nets.values import depth_limited

    learner = supervised.make_for_game(case.game, _settings(case))
    begun = time.perf_counter()
    state = jax.jit(learner.init)(jax.random.key(0))
    iterate = jax.jit(learner.iterate)
    for _ in range(case.iterations):
        state, report = iterate(state)
    error, played = float(report["value_error"]), float(report["value_error_played"])
    spent = time.perf_counter() - begun
    yield harness.Figure(
        f"{case.game}, cuts every {case.depth}: value error on held-out ranges, fraction of the payoff range",
        error,
        "",
        target=harness.Target(_ERROR),
        note=f"{played:.2%} weighted by how often views are played; {case.iterations * case.steps:,} training "
        f"steps, {case.iterations * case.batch:,} solved ranges, {spent:.0f} s with compilation",
    )
    begun = time.perf_counter()
    values = depth_limited.network_values(learner, learner.values(state))
    solved = depth_limited.solve(learner.task, case.depth, values, iterations=case.search)
    spent = time.perf_counter() - begun
    blind = depth_limited.solve(learner.task, case.depth, depth_limited.zero_values, iterations=case.search)
    exploitability, without = (_exploitability(learner.task, policies) for policies in (solved, blind))
    yield harness.Figure(
        f"{case.game}, cuts every {case.depth}: exploitability of depth-limited solving, fraction of the payoff range",
        exploitability,
        "",
        target=harness.Target(_NEAR),
        note=f"{without:.2%} with values of zero at all cuts; {case.search} iterations per segment, "
        f"{spent:.0f} s with compilation",
    )


def _exploitability(task: "tasks.TreeTask", policies: "tabular_policies.Policies") -> float:
    exploitability = task.metrics(policies).exploitability
    assert exploitability is not None
    return exploitability / float(np.ptp(task.payoff_range))


def _settings(case: Case) -> "supervised.Settings":
    from gdlx.nets.learners import supervised

    return supervised.Settings(
        depth=case.depth,
        batch=case.batch,
        solving=case.solving,
        capacity=case.iterations * case.batch,
        steps=case.steps,
        minibatch=case.minibatch,
        rate=2e-3,
        horizon=case.iterations * case.steps,
    )


class PublicStateSizes(NamedTuple):
    """Sizes of the public states of one depth."""

    depth: int
    nodes: int
    states: int
    largest: int  # views of all players in the largest one
    views: int


def measure_public_states(game: str, deepest: int = _DEEPEST) -> PublicStateSizes | None:
    """Measures the largest depth up to `deepest` with few nodes; None if every match has ended by then."""
    from gdlx.envs import game_spec
    from gdlx.envs.trees import game_tree
    from gdlx.nets.values import public_states

    for depth in range(deepest, 0, -1):
        try:
            tree = game_spec.unroll_game(game_spec.GameSpec(game), depth=depth + 1, max_nodes=_FEW, keep_edges=True)
            public = public_states.find_public_states(tree, depth)
        except (game_tree.TooLargeError, public_states.CutError):
            continue
        largest = int(np.bincount(public.state).max())
        return PublicStateSizes(depth, len(public.weight), public.states, largest, public.views)
    return None


def _print_sizes() -> None:
    from gdlx.propnet import library

    print("| game | joint actions | nodes | public states | views of the largest | views |")
    print("|---|---|---|---|---|---|")
    for game in library.names():
        sizes = measure_public_states(game)
        numbers = ["-"] * 5 if sizes is None else [f"{number:,}" for number in sizes]
        print(f"| {game} | {' | '.join(numbers)} |")


if __name__ == "__main__":
    if sys.argv[1:] == ["public-states"]:
        _print_sizes()
    else:
        for figure in figures():
            print(figure)
