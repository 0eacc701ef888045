"""Random playouts of thousands of games, 32 in every word, from a network alone.

Games go through the tape of a step in groups of words, each group for many steps at a time, as one piece of machine
code where that is possible. A game that ends starts again.
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

WORD = 32
GROUP = 2048  # words that go through the tape together where it is too large for one piece of machine code


class PlayoutError(errors.UserError, ValueError):
    """A game that cannot be played, or a limit that makes no sense."""


class Rollouts(NamedTuple):
    """Axes: R registers (and the step counter), W words, that is 32 W games."""

    state: jax.Array  # [R, W] uint32, bits of the games
    streams: rng.Streams  # [W] each


class Totals(NamedTuple):
    """What happened in a call, over all its games and steps."""

    ends: jax.Array  # [] uint32, terminal states reached
    unplayable: jax.Array  # [] uint32, states without a legal move for some role
    overlong: jax.Array  # [] uint32, games stopped by the step limit
    goals: jax.Array  # [G] uint32, how often each goal was a player's (highest) one at an end; rows of roles in order
    several: jax.Array  # [] uint32, ends in which a player had more than one goal value
    none: jax.Array  # [] uint32, ends in which a player had none


@dataclasses.dataclass(frozen=True, eq=False)
class Playout:
    """The playout program of one network."""

    net: propnet.PropNet
    max_steps: int = 10_000

    def __post_init__(self) -> None:
        if self.max_steps < 1:
            raise PlayoutError(f"max_steps is a number of joint moves, 1 or more; not {self.max_steps}")
        game = machine.of(self.net)
        if game.judge(game.initial(1))[0].any():
            raise PlayoutError(f"{self.net.name} is over before the first move: its initial state is terminal")

    @functools.cached_property
    def counter_bits(self) -> int:
        return self.max_steps.bit_length()

    @functools.cached_property
    def step_tape(self) -> tape.Tape:
        return playout_tape.whole(self.net, self.max_steps)

    @functools.cached_property
    def _parts(self) -> "_Parts":
        return _Parts(
            legal=tape.of_network(self.net, np.concatenate([role.legal for role in self.net.roles])),
            choosing=playout_tape.choosing(self.net),
            next=tape.of_network(self.net, self.net.next),
            judge=tape.of_network(
                self.net, np.concatenate([[self.net.terminal], *(role.goal for role in self.net.roles)])
            ),
            concluding=playout_tape.concluding(self.net, self.max_steps),
        )

    @property
    def bytes_per_game(self) -> float:
        """Memory that stays with a game between calls."""
        return (len(self.net.initial) + self.counter_bits + 4 * WORD) / 8

    def init(self, key: jax.Array, words: int, first_word: int = 0) -> Rollouts:
        """Games at the start; `first_word` numbers the words of a part of a larger batch."""
        start = np.concatenate([self.net.initial, np.zeros(self.counter_bits, bool)])
        column = jnp.asarray(np.where(start, 0xFFFFFFFF, 0).astype(np.uint32))
        return Rollouts(jnp.repeat(column[:, None], words, axis=1), rng.streams(key, first_word, words))

    def run(self, games: Rollouts, steps: int | jax.Array) -> tuple[Rollouts, Totals]:
        """Every game makes so many steps (at most 2^32 divided by the games, or counts overflow)."""
        words = games.state.shape[1]
        size = self._width or GROUP
        whole = words // size * size
        if words <= size:
            return self._run_group(games, steps)
        grouped = jax.tree.map(lambda x: jnp.moveaxis(x[..., :whole].reshape(*x.shape[:-1], -1, size), -2, 0), games)
        after, per_group = jax.lax.map(lambda group: self._run_group(group, steps), grouped)
        after = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -2).reshape(*x.shape[1:-1], whole), after)
        totals: Totals = jax.tree.map(lambda x: x.sum(axis=0, dtype=jnp.uint32), per_group)
        if whole == words:
            return after, totals
        rest, happened = self._run_group(jax.tree.map(lambda x: x[..., whole:], games), steps)
        joined: Rollouts = jax.tree.map(lambda *parts: jnp.concatenate(parts, axis=-1), after, rest)
        return joined, jax.tree.map(jnp.add, totals, happened)

    @functools.cached_property
    def _width(self) -> int | None:
        programs = tuple(self._parts) if len(self.net.feedback) else (self.step_tape,)
        return cpu_kernel.width(max(program.rows for program in programs))

    def _run_group(self, games: Rollouts, steps: int | jax.Array) -> tuple[Rollouts, Totals]:
        in_one_piece = functools.partial(cpu_kernel.run, self._run_plain) if self._width else self._run_plain
        found: tuple[Rollouts, Totals] = jax.lax.platform_dependent(
            games, jnp.asarray(steps, jnp.int32), cpu=in_one_piece, default=self._run_plain
        )
        return found

    def _run_plain(self, games: Rollouts, steps: jax.Array) -> tuple[Rollouts, Totals]:
        registers = len(self.net.initial) + self.counter_bits
        goal_rows = sum(len(role.goal_values) for role in self.net.roles)

        def step(_: jax.Array, carry: tuple[Rollouts, Totals]) -> tuple[Rollouts, Totals]:
            (state, streams), totals = carry
            streams, rows = self._step(state, streams)
            counts = jax.lax.population_count(rows[registers:]).sum(axis=1, dtype=jnp.uint32)
            happened = Totals(
                ends=counts[playout_tape.TERMINAL],
                unplayable=counts[playout_tape.UNPLAYABLE],
                overlong=counts[playout_tape.OVERLONG],
                goals=counts[playout_tape.GOALS : playout_tape.GOALS + goal_rows],
                several=counts[playout_tape.SEVERAL],
                none=counts[playout_tape.NONE],
            )
            return Rollouts(rows[:registers], streams), jax.tree.map(jnp.add, totals, happened)

        zero = jnp.zeros((), jnp.uint32)
        start = Totals(zero, zero, zero, jnp.zeros(goal_rows, jnp.uint32), zero, zero)
        found: tuple[Rollouts, Totals] = jax.lax.fori_loop(0, steps, step, (games, start))
        return found

    def _step(self, state: jax.Array, streams: rng.Streams) -> tuple[rng.Streams, jax.Array]:
        """New state and what happened, the rows of step_tape.whole."""
        if not len(self.net.feedback):
            return self._with_choice(self.step_tape, state, streams)
        parts = self._parts
        registers = len(self.net.initial)
        still = jnp.zeros((parts.legal.inputs - registers, state.shape[1]), jnp.uint32)
        legal = rolled.run(parts.legal, jnp.concatenate([state[:registers], still]))
        streams, chosen = self._with_choice(parts.choosing, legal, streams)
        following = rolled.run(parts.next, jnp.concatenate([state[:registers], chosen[:-1]]))
        judged = rolled.run(parts.judge, jnp.concatenate([following, still]))
        known = jnp.concatenate([following, state[registers:], judged, chosen[-1:]])
        return streams, rolled.run(parts.concluding, known)

    def _with_choice(self, program: tape.Tape, known: jax.Array, streams: rng.Streams) -> tuple[rng.Streams, jax.Array]:
        """A tape whose middle holds counts of legal moves and whose last inputs are their ranks, drawn in between."""
        blank = jnp.zeros((program.inputs - known.shape[0], known.shape[1]), jnp.uint32)
        rows = rolled.start(program, jnp.concatenate([known, blank]))
        counting, moving = program.segments
        rows = rolled.advance(program, counting, rows)
        counts = rows[program.middle] ^ program.middle_mask[:, None]
        bounds = np.cumsum([0, *playout_tape.rank_bits(self.net)])
        streams, ranks = random_move.draw_ranks(streams, [counts[a:b] for a, b in itertools.pairwise(bounds)])
        if ranks:
            rows = jax.lax.dynamic_update_slice(rows, jnp.concatenate(ranks), (1 + known.shape[0], 0))
        return streams, rolled.finish(program, rolled.advance(program, moving, rows))


class _Parts(NamedTuple):
    """The step of a network with recursion through state."""

    legal: tape.Tape
    choosing: tape.Tape
    next: tape.Tape
    judge: tape.Tape
    concluding: tape.Tape
