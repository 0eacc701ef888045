"""Benchmark `large`: games with ten billion terminal histories, unrolled in blocks and solved exactly; games of states.

Counts are compared with published ones, to the digit. Each game runs in a process of its own, then starts again in
another one with what the first one cached. Times are processor seconds of all threads.
"""

import functools
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from gdlx.experiments.bench import harness
from gdlx.experiments.bench.measuring import children, host_machine

if TYPE_CHECKING:
    from gdlx.envs.trees import game_tree

_ITERATIONS = 40
_ABRUPT = "phantom_ttt:tries=abrupt"
_ABRUPT_VALUE = 0.5502  # published, on the scale from -1 to 1
_CLOSE = 0.001  # of the range of payoffs: the exploitability to which the classical games are solved
_BETWEEN, _MOST_ITERATIONS = 20, 2_000  # between two measurements of it, and in all


class _Known(NamedTuple):
    """Published facts: terminal histories, information sets with those of one action, and the first player's value."""

    terminals: int
    information_sets: int
    value: float  # on the scale from -1 to 1
    symmetric: float  # target for iterations and evaluations without symmetric information sets, in processor seconds


_COUNTED = {
    "terminals": "terminal histories",
    "information_sets": "information sets, with those of one mark",
}
_GAMES = {
    "phantom_ttt": _Known(9_829_101_024, 5_990_669, 0.6667, 0.1),
    "dark_hex": _Known(9_469_697_760, 6_072_917, 1.0, 0.25),
}
_ABRUPT_TERMINALS = 13_578_403_440  # published


class _Seconds(NamedTuple):
    """In which a game of states is to be solved, from the start of a process: with an empty cache, and again."""

    cold: float
    warm: float


_STATE_GAMES = {
    "tictactoe": _Seconds(10.0, 3.0),
    "connect_four:width=4,height=4": _Seconds(60.0, 60.0),
    "repeated_rps:rounds=9": _Seconds(60.0, 60.0),
    "simultaneous_tictactoe": _Seconds(60.0, 60.0),
    "simultaneous_breakthrough": _Seconds(60.0, 60.0),
}


def figures() -> Iterator[harness.Figure]:
    for game, known in _GAMES.items():
        with tempfile.TemporaryDirectory() as cache:  # so that nothing is cached before
            yield from _figures(game, known, children.call(measure, game, _ITERATIONS, cache))
            yield harness.Figure(
                f"{game}: the next process, from its start to the first iteration of CFR+, processor time",
                children.call(start_again, game, cache),
                "s",
                target=harness.Target(20),
            )
            yield from _symmetric_figures(game, known, children.call(measure, game, _ITERATIONS, cache, True))
    with tempfile.TemporaryDirectory() as cache:
        yield from _abrupt_figures(children.call(measure, _ABRUPT, _ITERATIONS, cache, True))
        yield harness.Figure(
            f"{_ABRUPT_NAME}: the next process, from its start to the first iteration of CFR+, processor time",
            children.call(start_again, _ABRUPT, cache, True),
            "s",
        )
    for game, seconds in _STATE_GAMES.items():
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = (children.call(measure_states, game, cache) for _ in range(2))
        yield from _state_figures(game, seconds, cold, warm)


def _state_figures(
    game: str, seconds: _Seconds, cold: dict[str, float], warm: dict[str, float]
) -> Iterator[harness.Figure]:
    yield harness.Figure(f"{game}: states", cold["states"], "")
    name = f"{game}: a process that solves it exactly by backward induction"
    for when, measured, target in (("with an empty cache", cold, seconds.cold), ("again", warm, seconds.warm)):
        yield harness.Figure(f"{name}, {when}, processor time", measured["seconds"], "s", target=harness.Target(target))
    yield harness.Figure(
        f"{game}: its exploitability, of the range", cold["exploitability"], "", target=harness.Target(1e-9)
    )


def _symmetric_figures(game: str, known: _Known, measured: dict[str, float]) -> Iterator[harness.Figure]:
    name = f"{game} without symmetric information sets"
    yield harness.Figure(
        f"{name}: difference from the published {known.terminals:,} terminal histories",
        abs(measured["terminals"] - known.terminals),
        "",
        target=harness.Target(0),
    )
    yield harness.Figure(f"{name}: from the rules to the sequence form, processor time", measured["unroll"], "s")
    yield harness.Figure(f"{name}: peak memory", measured["memory"], "GiB")
    for what, number in (("an iteration of CFR+", "iteration"), ("exact exploitability", "evaluation")):
        yield harness.Figure(
            f"{name}: {what}, processor time", measured[number], "s", target=harness.Target(known.symmetric)
        )
    yield harness.Figure(
        f"{name}: exploitability after {_ITERATIONS} iterations of CFR+, of the range",
        100 * measured["exploitability"],
        "%",
    )
    yield harness.Figure(
        f"{name}: a process that solves it to {_CLOSE:.1%} of the range by CFR+, processor time",
        measured["solved"],
        "s",
        target=harness.Target(300),
    )


_ABRUPT_NAME = "abrupt phantom_ttt without symmetric information sets"


def _abrupt_figures(measured: dict[str, float]) -> Iterator[harness.Figure]:
    name = _ABRUPT_NAME
    yield harness.Figure(
        f"{name}: difference from the published {_ABRUPT_TERMINALS:,} terminal histories",
        abs(measured["terminals"] - _ABRUPT_TERMINALS),
        "",
        target=harness.Target(0),
    )
    yield harness.Figure(
        f"{name}: from the rules to an exact exploitability, processor time",
        measured["unroll"] + measured["evaluation"],
        "s",
        target=harness.Target(600),
    )
    yield harness.Figure(f"{name}: peak memory", measured["memory"], "GiB", target=harness.Target(8))
    yield harness.Figure(f"{name}: an iteration of CFR+, processor time", measured["iteration"], "s")
    yield harness.Figure(f"{name}: exact exploitability, processor time", measured["evaluation"], "s")
    yield from _progress(name, measured, _ABRUPT_VALUE)


def _figures(game: str, known: _Known, measured: dict[str, float]) -> Iterator[harness.Figure]:
    for what, published in (("terminals", known.terminals), ("information_sets", known.information_sets)):
        yield harness.Figure(
            f"{game}: difference from the published {published:,} {_COUNTED[what]}",
            abs(measured[what] - published),
            "",
            target=harness.Target(0),
        )
    yield harness.Figure(
        f"{game}: from the rules to the sequence form, processor time",
        measured["unroll"],
        "s",
        target=harness.Target(120),
    )
    yield harness.Figure(f"{game}: peak memory", measured["memory"], "GiB", target=harness.Target(4))
    yield harness.Figure(
        f"{game}: an iteration of CFR+, processor time", measured["iteration"], "s", target=harness.Target(0.5)
    )
    yield harness.Figure(
        f"{game}: exact exploitability, processor time", measured["evaluation"], "s", target=harness.Target(0.5)
    )
    yield from _progress(game, measured, known.value)


def _progress(name: str, measured: dict[str, float], value: float) -> Iterator[harness.Figure]:
    yield harness.Figure(
        f"{name}: exploitability after {_ITERATIONS} iterations of CFR+, of the range",
        100 * measured["exploitability"],
        "%",
    )
    yield harness.Figure(
        f"{name}: the first player's value after them, from -1 to 1",
        measured["value"],
        "",
        better="higher",
        peer="published",
        peer_value=value,
    )


def measure(game: str, iterations: int, cache: str, symmetries: bool = False) -> dict[str, float]:
    """Unrolls and solves a game in this process, and caches its tree and programs in a folder.

    With `symmetries` it is solved for one of all symmetric information sets, and classical games until they are close
    to an equilibrium.
    """
    import os
    import time

    import jax

    from gdlx.envs import compilation_cache, game_spec
    from gdlx.envs.trees import sequence_form
    from gdlx.solvers import algorithms
    from gdlx.solvers.exact import best_response, cfr

    os.environ["GDLX_CACHE"] = cache
    compilation_cache.enable()
    begun = time.process_time()
    tree = game_spec.unroll_game(game_spec.GameSpec(game), symmetries=symmetries)
    form, _ = sequence_form.sequence_form(tree)
    unrolled = time.process_time() - begun
    step = jax.jit(functools.partial(cfr.step, settings=algorithms.find("cfr+").settings))
    evaluate = jax.jit(best_response.evaluate_average)
    state = jax.block_until_ready(step(form, cfr.init(form)))  # type: ignore[no-untyped-call]
    jax.block_until_ready(evaluate(form, state))  # type: ignore[no-untyped-call]
    begun = time.process_time()
    for _ in range(iterations - 1):
        state = jax.block_until_ready(step(form, state))  # type: ignore[no-untyped-call]
    per_iteration = (time.process_time() - begun) / (iterations - 1)
    begun = time.process_time()
    evaluation = jax.block_until_ready(evaluate(form, state))  # type: ignore[no-untyped-call]
    evaluated = time.process_time() - begun
    low, high = tree.payoff_range
    last, done = evaluation, iterations
    while symmetries and game in _GAMES and last.nash_conv / 2 > _CLOSE * (high - low) and done < _MOST_ITERATIONS:
        for _ in range(_BETWEEN):
            state = step(form, state)
        done += _BETWEEN
        last = jax.block_until_ready(evaluate(form, state))  # type: ignore[no-untyped-call]
    return {
        "solved": time.process_time(),
        "terminals": float(tree.summary()["terminals"]),
        "information_sets": sum(tree.information_sets.values()) + sum(map(_single_marks, tree.players)),
        "unroll": unrolled,
        "memory": host_machine.process_peak_mb() * 1e6 / 2**30,
        "iteration": per_iteration,
        "evaluation": evaluated,
        "exploitability": float(evaluation.nash_conv) / 2 / (high - low),
        "value": float(evaluation.value[0]) / ((high - low) / 2),
    }


def start_again(game: str, cache: str, symmetries: bool = False) -> float:
    """Returns the processor seconds of this process until the first iteration, with what `measure` cached."""
    import os
    import time

    import jax

    from gdlx.envs import compilation_cache, game_spec
    from gdlx.envs.trees import sequence_form
    from gdlx.solvers import algorithms
    from gdlx.solvers.exact import cfr

    os.environ["GDLX_CACHE"] = cache
    compilation_cache.enable()
    tree = game_spec.unroll_game(game_spec.GameSpec(game), symmetries=symmetries)
    form, _ = sequence_form.sequence_form(tree)
    step = jax.jit(functools.partial(cfr.step, settings=algorithms.find("cfr+").settings))
    jax.block_until_ready(step(form, cfr.init(form)))  # type: ignore[no-untyped-call]
    return time.process_time()


def measure_states(game: str, cache: str) -> dict[str, float]:
    """Solves a game of states in this process, and caches what it can in a folder."""
    import os
    import time

    from gdlx.envs import compilation_cache
    from gdlx.solvers import algorithms, tasks
    from gdlx.solvers.runs import solver_run

    os.environ["GDLX_CACHE"] = cache
    compilation_cache.enable()
    task = tasks.make_state_task(game)
    solution = solver_run.solve_exactly(task, algorithms.find("backward-induction"))
    low, high = task.payoff_range
    assert solution.exploitability is not None
    return {
        "states": float(task.graph.states),
        "seconds": time.process_time(),
        "exploitability": solution.exploitability / (high - low),
    }


def _single_marks(player: "game_tree.Player") -> int:
    """Information sets with one action that is a mark: other sources count them, but not those of waiting."""
    from gdlx.envs.trees import game_tree

    assert isinstance(player.views, game_tree.InfosetTree)
    forced = player.views.forced
    is_wait = [name == "noop" for name in player.action_names]
    return int(sum(not is_wait[move] for move in forced[forced >= 0].tolist()))
