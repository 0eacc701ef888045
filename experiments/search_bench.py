"""Benchmark `search`: what is found by playing, beside what the whole tree tells."""

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from gdlx.experiments import bench

if TYPE_CHECKING:
    from gdlx.solvers import problems, profiles

_BOUNDED_GAMES = ("leduc_poker", "goofspiel:cards=5", "liars_dice")
_ITERATIONS = (0, 10, 100)  # of cfr, whose average policies are bounded; after none they are uniform


def figures() -> Iterator[bench.Figure]:
    for part in _PARTS:
        yield from part()


def bounds_beside_exact() -> Iterator[bench.Figure]:
    """Which part of the exact exploitability is found, for policies of three qualities."""
    for game in _BOUNDED_GAMES:
        yield from _bounds_of(game)


def _bounds_of(game: str) -> Iterator[bench.Figure]:
    import jax

    import gdlx
    from gdlx.envs import trees, walk
    from gdlx.solvers import bounds, problems, table_policy

    task = problems.problem(trees.Game(game))
    playing = walk.Walk(gdlx.make(game))
    plan = bounds.plan(playing, len(task.tree.counts.nodes) - 1)
    compiling = 0.0
    for iterations, policies in _policies(task):
        exact = task.metrics(policies).exploitability
        assert exact is not None
        frozen = table_policy.of_policies(policies, playing.env, task.tree)
        begun = time.perf_counter()
        *_, found = bounds.search(playing, frozen, jax.random.key(0), seconds=bounds.DEFAULT_SECONDS, plan=plan)
        spent = time.perf_counter() - begun
        assert found.exploitability is not None
        compiling = compiling or spent - found.seconds
        yield bench.Figure(
            f"{game}, cfr after {iterations} iterations: bound {found.exploitability:.3g} "
            f"± {found.standard_error:.2g}, exploitability {exact:.3g}",
            found.exploitability / exact,
            "",
            better="higher",
            target=bench.Target(0.7),
        )
        yield bench.Figure(f"{game}, cfr after {iterations} iterations: time of the bound", found.seconds, "s")
    yield bench.Figure(f"{game}: compiling, once for all bounds", compiling, "s")


def _policies(task: "problems.Problem") -> Iterator[tuple[int, "profiles.Policies"]]:
    """Average policies after each number of iterations."""
    from gdlx.solvers import presets, processes

    process = processes.FullProcess(task, presets.find("cfr"))
    state, done = process.init(), 0
    for iterations in _ITERATIONS:
        state, done = process.advance(state, iterations - done), iterations
        yield iterations, process.policies(state)


_PARTS: tuple[Callable[[], Iterator[bench.Figure]], ...] = (bounds_beside_exact,)
