"""Benchmark `search`: bounds and beliefs by play, beside exact exploitability; first moves in a large game."""

import dataclasses
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from gdlx.experiments.bench import harness, hidden_pieces
from gdlx.experiments.bench.measuring import children

if TYPE_CHECKING:
    from gdlx.solvers import tabular_policies, tasks
    from gdlx.solvers.search import beliefs as consistent_states

_BOUNDED_GAMES = ("leduc_poker", "goofspiel:cards=5", "liars_dice")
_ITERATIONS = (0, 10, 100)  # of cfr, whose average policies are bounded; after 0 they are uniform

_BELIEF_GAMES = ("leduc_poker", "blind_tictactoe", "phantom_tictactoe")
_METHODS: "tuple[consistent_states.BeliefMethod, ...]" = ("enumerate", "particles", "rejection")

_AGENTS = (  # which think for one iteration, so that compiling is measured
    "random",
    "uct:iterations=1",
    "pimc:iterations=1,visits=1",
    "mccfr:iterations=1",
    "oos:iterations=1,start_iterations=1",
    "cfr:iterations=1",
)


def figures() -> Iterator[harness.Figure]:
    for part in _PARTS:
        yield from part()


def bound_figures() -> Iterator[harness.Figure]:
    """The bound as a fraction of the exact exploitability, for policies of three qualities."""
    for game in _BOUNDED_GAMES:
        yield from _bounds_of(game)


def _bounds_of(game: str) -> Iterator[harness.Figure]:
    import jax

    import gdlx
    from gdlx.envs import game_spec
    from gdlx.envs.packed import packed_env
    from gdlx.solvers import tasks
    from gdlx.solvers.bounds import search_bounds
    from gdlx.solvers.mccfr import table_policy

    task = tasks.make_tree_task(game_spec.GameSpec(game))
    playing = packed_env.PackedEnv(gdlx.make(game))
    config = search_bounds.make_config(playing, len(task.tree.counts.nodes) - 1)
    compiling = 0.0
    for iterations, policies in _policies(task):
        exact = task.metrics(policies).exploitability
        assert exact is not None
        frozen = table_policy.from_tabular(policies, playing.env, task.tree)
        begun = time.perf_counter()
        *_, bound = search_bounds.search(
            playing, frozen, jax.random.key(0), seconds=search_bounds.DEFAULT_SECONDS, config=config
        )
        spent = time.perf_counter() - begun
        assert bound.exploitability is not None
        compiling = compiling or spent - bound.seconds
        yield harness.Figure(
            f"{game}, cfr after {iterations} iterations: bound {bound.exploitability:.3g} "
            f"± {bound.standard_error:.2g}, exploitability {exact:.3g}",
            bound.exploitability / exact,
            "",
            better="higher",
            target=harness.Target(0.7),
        )
        yield harness.Figure(f"{game}, cfr after {iterations} iterations: time of the bound", bound.seconds, "s")
    yield harness.Figure(f"{game}: compiling, once for all bounds", compiling, "s")


def belief_figures() -> Iterator[harness.Figure]:
    """How many games are consistent with what a player has observed, and the time to find 1 024 of them."""
    from gdlx.players.agents import match_beliefs
    from gdlx.players.matches import arenas
    from gdlx.solvers.search import beliefs

    for game in _BELIEF_GAMES:
        arena = arenas.make_arena(game)
        seen = match_beliefs.play_random_match(arena, np.random.default_rng(0))[0]
        view = dataclasses.replace(seen, events=seen.events[:-1])  # before the last joint action
        for method in _METHODS:
            what = f"{game}, after {view.step} joint actions, {method}"
            try:
                beliefs.compute_belief(arena.packed, view, method=method)  # compiles
            except beliefs.TooManyStatesError as error:
                yield harness.Figure(what, None, "", note=str(error))
                continue
            begun = time.perf_counter()
            report = beliefs.compute_belief(arena.packed, view, method=method, seed=1).report
            spent = time.perf_counter() - begun
            yield harness.Figure(
                f"{what}: {report.accepted:,} of {report.tried:,} agree; their probability",
                report.likelihood,
                "",
                "higher",
            )
            yield harness.Figure(f"{what}: time", spent, "s")


def first_move_figures() -> Iterator[harness.Figure]:
    """Processor time from the rules of a large game to an agent's first move, in a new process with an empty cache."""
    for name in _AGENTS:
        with tempfile.TemporaryDirectory() as folder:
            seconds = children.call(first_move_seconds, name, hidden_pieces.rules(), folder)
        agent_name = name.partition(":")[0]
        yield harness.Figure(
            f"game of hidden pieces: first move of {agent_name}, compiling included",
            seconds,
            "s of processor time",
            target=harness.Target(15),
        )


def first_move_seconds(name: str, rules: str, cache: str) -> float:
    """Processor seconds of this process and its children until an agent has chosen its first move."""
    os.environ["GDLX_CACHE"] = cache
    from gdlx.envs import compilation_cache, host
    from gdlx.envs.views import history
    from gdlx.players.agents import agent, agent_registry
    from gdlx.players.matches import arenas, match

    compilation_cache.enable()
    arena = arenas.make_arena(rules=rules)
    player = agent_registry.make_agent(name)
    match.prepare(player, arena)
    registers = arena.env.propnet.initial.tobytes()
    legal = host.HostEnv(arena.env.propnet, arena.env.payoffs, arena.steps).position(registers).legal[0]
    context = agent.PlayerContext(arena, 0, np.random.default_rng(0))
    view = history.ActionObservationHistory(arena.env, 0, legal)
    assert player.start_match(context, agent.Clock(1.0)).choose(view, agent.Clock(1.0)) in legal
    children_usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children_usage.ru_utime + children_usage.ru_stime


def _policies(task: "tasks.TreeTask") -> Iterator[tuple[int, "tabular_policies.Policies"]]:
    """Average policies after each number of iterations."""
    from gdlx.solvers import algorithms
    from gdlx.solvers.runs import tree_solvers

    solver = tree_solvers.FullSolver(task, algorithms.find("cfr"))
    state, done = solver.init(), 0
    for iterations in _ITERATIONS:
        state, done = solver.advance(state, iterations - done), iterations
        yield iterations, solver.policies(state)


_PARTS: tuple[Callable[[], Iterator[harness.Figure]], ...] = (
    bound_figures,
    belief_figures,
    first_move_figures,
)
