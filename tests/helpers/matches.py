"""Random matches in an environment, replayed by the interpreter."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs import env as envs
from gdlx.envs.views import render
from gdlx.propnet.datalog import interpreter
from gdlx.propnet.syntax import ground_terms, rulesheet

FIELDS = (
    "registers",
    "legal_mask",
    "chance_mask",
    "percepts",
    "actions",
    "rewards",
    "goals",
    "terminated",
    "unplayable",
    "goal_conflict",
    "illegal",
    "illegal_chance",
    "info_key",
    "step",
)
TRACKED = ("percepts", "actions", "info_key")


class MatchBatch(NamedTuple):
    """Axes: T steps, B matches."""

    states: envs.State  # [T + 1, B, ..] numpy
    chance: np.ndarray  # [T, B] chance moves, -1 without a random role

    def states_of(self, match: int) -> list[envs.State]:
        """The states of one match, to its end or the last step."""
        states = render.unstack_states(jax.tree.map(lambda field: field[:, match], self.states))
        steps = sum(not bool(state.terminated) for state in states)
        return states[: steps + 1]


def masked_argmax(mask: jax.Array, scores: jax.Array) -> jax.Array:
    """The true position with the highest score along the last axis; 0 where there is none."""
    return jnp.argmax(jnp.where(mask, scores, -1.0), axis=-1).astype(jnp.int32)


@functools.partial(jax.jit, static_argnames="env")
def _random(env: envs.Env, scores: jax.Array, chance_scores: jax.Array) -> tuple[envs.State, envs.State, jax.Array]:
    def step(state: envs.State, given: tuple[jax.Array, jax.Array]) -> tuple[envs.State, tuple[envs.State, jax.Array]]:
        chance = masked_argmax(state.chance_mask, given[1]) if env.num_chance_actions else None
        after = env.step(state, masked_argmax(state.legal_mask, given[0]), None, chance)
        return after, (after, jnp.asarray(-1) if chance is None else chance)

    def match(scores: jax.Array, chance_scores: jax.Array) -> tuple[envs.State, envs.State, jax.Array]:
        start = env.init()
        _, (states, chances) = jax.lax.scan(step, start, (scores, chance_scores))
        return start, states, chances

    return jax.vmap(match)(scores, chance_scores)


def play_random(env: envs.Env, *, matches: int, steps: int, seed: int = 0) -> MatchBatch:
    """Random matches by vmap, scan and jit, with random numbers from numpy: those of jax take long to compile."""
    env = env.tracking(*TRACKED)
    rng = np.random.default_rng(seed)
    scores = rng.random((matches, steps, env.num_players, env.num_actions), np.float32)
    chance_scores = rng.random((matches, steps, env.num_chance_actions), np.float32)
    first, later, chances = jax.device_get(_random(env, scores, chance_scores))

    def stacked(first: Any, later: Any) -> Any:
        return np.concatenate([np.broadcast_to(first, (1, *first.shape)), np.moveaxis(later, 0, 1)])

    return MatchBatch(jax.tree.map(stacked, first, later), np.moveaxis(chances, 0, 1))


def compare_with_rules(env: envs.Env, sheet: rulesheet.Rulesheet, actual: MatchBatch, numbers: Sequence[int]) -> int:
    """Replays some of the matches with the interpreter; returns the number of states that were compared."""
    rules = interpreter.Interpreter(sheet)
    compared = 0
    for match in numbers:
        states = actual.states_of(match)
        by_rules = rules.initial
        for step, state in enumerate(states):
            _compare(env, rules, by_rules, state)
            compared += 1
            if step + 1 < len(states):
                joint = _joint(env, states[step + 1], int(actual.chance[step, match]))
                seen = rules.percepts(by_rules, joint)
                for player, name in enumerate(env.players):
                    texts = sorted(map(ground_terms.to_text, seen[name]))
                    assert list(render.percept_names(env, states[step + 1], player)) == texts
                by_rules = rules.next(by_rules, joint)
    return compared


def _compare(env: envs.Env, rules: interpreter.Interpreter, by_rules: interpreter.State, state: envs.State) -> None:
    assert set(render.fluent_names(env, state)) == {ground_terms.to_text(fluent) for fluent in by_rules}
    assert bool(state.terminated) == rules.is_terminal(by_rules)
    if rules.is_terminal(by_rules):
        goals = rules.goals(by_rules)
        assert state.goals.tolist() == [goals[name][0] for name in env.players]
        return
    legal = rules.legal(by_rules)
    for player, name in enumerate(env.players):
        assert list(render.legal_names(env, state, player)) == [ground_terms.to_text(move) for move in legal[name]]
    if env.num_chance_actions:
        assert list(render.legal_chance_names(env, state)) == [ground_terms.to_text(move) for move in legal["random"]]


def _joint(env: envs.Env, after: envs.State, chance: int) -> dict[str, ground_terms.GroundTerm]:
    moves = {name: render.move_name(env, n, int(after.actions[n])) for n, name in enumerate(env.players)}
    if env.num_chance_actions:
        moves["random"] = render.chance_name(env, chance)
    return {role: ground_terms.from_text(move)[0] for role, move in moves.items()}
