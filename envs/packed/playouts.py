"""Random playouts of thousands of games, 32 in every word, from a propnet alone.

Groups of words go through the tape of a step for many steps at a time, as one fused CPU kernel if possible. A game that
ends starts again.
"""

import dataclasses
import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.lowering import cpu_kernel, playout_tape, random_move, rng, rolled, tape
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import errors
from gdlx.propnet.simulate import machine

GAMES_PER_WORD = 32
WORDS_PER_GROUP = 2048  # words that go through the tape together if it is too large for a fused CPU kernel


class PlayoutError(errors.UserError, ValueError):
    """A game that cannot be played, or an invalid limit."""


class PlayoutState(NamedTuple):
    """Axes: R registers (and the bits of the step counter), W words of 32 games."""

    state: jax.Array  # [R, W] uint32, bits of the games
    streams: rng.Streams  # [W] each


class PlayoutCounts(NamedTuple):
    """Counts over all games and steps of a call."""

    terminals: jax.Array  # [] uint32, terminal states reached
    unplayable: jax.Array  # [] uint32, states without a legal move for some role
    truncated: jax.Array  # [] uint32, games stopped by the step limit
    goals: jax.Array  # [G] uint32, how often each goal value was a player's (highest) one in a terminal, by role
    multiple_goals: jax.Array  # [] uint32, terminals in which a player had more than one goal value
    no_goal: jax.Array  # [] uint32, terminals in which a player had none


@dataclasses.dataclass(frozen=True, eq=False)
class Playout:
    """The playout program of one propnet."""

    propnet: propnet.PropNet
    max_steps: int = 10_000

    def __post_init__(self) -> None:
        if self.max_steps < 1:
            raise PlayoutError(f"`max_steps=` must be 1 or more joint actions; got {self.max_steps}")
        game = machine.for_propnet(self.propnet)
        if game.terminal_and_goals(game.initial(1))[0].any():
            raise PlayoutError(f"{self.propnet.name} is over before the first move: its initial state is terminal")

    @functools.cached_property
    def counter_bits(self) -> int:
        return self.max_steps.bit_length()

    @functools.cached_property
    def step_tape(self) -> tape.Tape:
        return playout_tape.build_step_tape(self.propnet, self.max_steps)

    @functools.cached_property
    def _parts(self) -> "_StepTapes":
        return _StepTapes(
            legal=tape.compile_tape(self.propnet, np.concatenate([role.legal for role in self.propnet.roles])),
            choosing=playout_tape.build_choice_tape(self.propnet),
            next=tape.compile_tape(self.propnet, self.propnet.next),
            judge=tape.compile_tape(
                self.propnet, np.concatenate([[self.propnet.terminal], *(role.goal for role in self.propnet.roles)])
            ),
            concluding=playout_tape.build_outcome_tape(self.propnet, self.max_steps),
        )

    @property
    def bytes_per_game(self) -> float:
        """Memory of the state of one game."""
        return (len(self.propnet.initial) + self.counter_bits + 4 * GAMES_PER_WORD) / 8

    def init(self, key: jax.Array, words: int, first_word: int = 0) -> PlayoutState:
        """Games in the initial state; `first_word` is the index of the first word in a larger batch."""
        start = np.concatenate([self.propnet.initial, np.zeros(self.counter_bits, bool)])
        column = jnp.asarray(np.where(start, 0xFFFFFFFF, 0).astype(np.uint32))
        return PlayoutState(jnp.repeat(column[:, None], words, axis=1), rng.make_streams(key, first_word, words))

    def run(self, games: PlayoutState, steps: int | jax.Array) -> tuple[PlayoutState, PlayoutCounts]:
        """Advances every game by so many steps (at most 2^32 divided by the games, or counts overflow)."""
        words = games.state.shape[1]
        size = self._width or WORDS_PER_GROUP
        grouped_words = words // size * size
        if words <= size:
            return self._run_group(games, steps)
        grouped = jax.tree.map(
            lambda x: jnp.moveaxis(x[..., :grouped_words].reshape(*x.shape[:-1], -1, size), -2, 0), games
        )
        after, per_group = jax.lax.map(lambda group: self._run_group(group, steps), grouped)
        after = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -2).reshape(*x.shape[1:-1], grouped_words), after)
        totals: PlayoutCounts = jax.tree.map(lambda x: x.sum(axis=0, dtype=jnp.uint32), per_group)
        if grouped_words == words:
            return after, totals
        rest, happened = self._run_group(jax.tree.map(lambda x: x[..., grouped_words:], games), steps)
        joined: PlayoutState = jax.tree.map(lambda *parts: jnp.concatenate(parts, axis=-1), after, rest)
        return joined, jax.tree.map(jnp.add, totals, happened)

    @functools.cached_property
    def _width(self) -> int | None:
        programs = tuple(self._parts) if len(self.propnet.feedback) else (self.step_tape,)
        return cpu_kernel.choose_width(max(program.rows for program in programs))

    def _run_group(self, games: PlayoutState, steps: int | jax.Array) -> tuple[PlayoutState, PlayoutCounts]:
        on_cpu = functools.partial(cpu_kernel.run_fused, self._run_plain) if self._width else self._run_plain
        result: tuple[PlayoutState, PlayoutCounts] = jax.lax.platform_dependent(
            games, jnp.asarray(steps, jnp.int32), cpu=on_cpu, default=self._run_plain
        )
        return result

    def _run_plain(self, games: PlayoutState, steps: jax.Array) -> tuple[PlayoutState, PlayoutCounts]:
        registers = len(self.propnet.initial) + self.counter_bits
        goal_rows = sum(len(role.goal_values) for role in self.propnet.roles)

        def step(_: jax.Array, carry: tuple[PlayoutState, PlayoutCounts]) -> tuple[PlayoutState, PlayoutCounts]:
            (state, streams), totals = carry
            streams, rows = self._step(state, streams)
            counts = jax.lax.population_count(rows[registers:]).sum(axis=1, dtype=jnp.uint32)
            happened = PlayoutCounts(
                terminals=counts[playout_tape.TERMINAL],
                unplayable=counts[playout_tape.UNPLAYABLE],
                truncated=counts[playout_tape.TRUNCATED],
                goals=counts[playout_tape.GOALS : playout_tape.GOALS + goal_rows],
                multiple_goals=counts[playout_tape.MULTIPLE_GOALS],
                no_goal=counts[playout_tape.NO_GOAL],
            )
            return PlayoutState(rows[:registers], streams), jax.tree.map(jnp.add, totals, happened)

        zero = jnp.zeros((), jnp.uint32)
        start = PlayoutCounts(zero, zero, zero, jnp.zeros(goal_rows, jnp.uint32), zero, zero)
        result: tuple[PlayoutState, PlayoutCounts] = jax.lax.fori_loop(0, steps, step, (games, start))
        return result

    def _step(self, state: jax.Array, streams: rng.Streams) -> tuple[rng.Streams, jax.Array]:
        """The new state and the outcome rows, as in `playout_tape.build_step_tape`."""
        if not len(self.propnet.feedback):
            return self._with_choice(self.step_tape, state, streams)
        parts = self._parts
        registers = len(self.propnet.initial)
        no_moves = jnp.zeros((parts.legal.inputs - registers, state.shape[1]), jnp.uint32)
        legal = rolled.run(parts.legal, jnp.concatenate([state[:registers], no_moves]))
        streams, chosen = self._with_choice(parts.choosing, legal, streams)
        following = rolled.run(parts.next, jnp.concatenate([state[:registers], chosen[:-1]]))
        judged = rolled.run(parts.judge, jnp.concatenate([following, no_moves]))
        known = jnp.concatenate([following, state[registers:], judged, chosen[-1:]])
        return streams, rolled.run(parts.concluding, known)

    def _with_choice(self, program: tape.Tape, known: jax.Array, streams: rng.Streams) -> tuple[rng.Streams, jax.Array]:
        """Runs a tape with counts of legal moves as middle, and draws its last inputs, their ranks, in between."""
        blank = jnp.zeros((program.inputs - known.shape[0], known.shape[1]), jnp.uint32)
        rows = rolled.load_inputs(program, jnp.concatenate([known, blank]))
        counting, moving = program.segments
        rows = rolled.run_segment(program, counting, rows)
        counts = rows[program.intermediate] ^ program.intermediate_mask[:, None]
        bounds = np.cumsum([0, *playout_tape.rank_bits(self.propnet)])
        streams, ranks = random_move.draw_ranks(streams, [counts[a:b] for a, b in itertools.pairwise(bounds)])
        if ranks:
            rows = jax.lax.dynamic_update_slice(rows, jnp.concatenate(ranks), (1 + known.shape[0], 0))
        return streams, rolled.read_outputs(program, rolled.run_segment(program, moving, rows))


class _StepTapes(NamedTuple):
    """The step of a propnet with recursion through state."""

    legal: tape.Tape
    choosing: tape.Tape
    next: tape.Tape
    judge: tape.Tape
    concluding: tape.Tape
