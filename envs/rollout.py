"""Random playouts of thousands of games, 32 in every word, from a network alone.

One step of all games is one tape: what is legal, a uniformly random move for every role, the next state, its end and
goals, and a fresh start where a game has ended. Games go through it in groups of words that fit the cache, each
group for many steps at a time.
"""

import dataclasses
import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs import chooser, rng, rolled, tape
from gdlx.propnet import circuit, emit, network

WORD = 32
GROUP = 1024  # words that go through the tape together: their rows fit the second-level cache of common CPUs


class Rollouts(NamedTuple):
    """Axes: R registers (and the step counter), W words, that is 32 W games."""

    state: jax.Array  # [R, W] uint32, bits of the games
    streams: rng.Streams  # [W] each


class Totals(NamedTuple):
    """What happened in a call, over all its games and steps."""

    ends: jax.Array  # [] uint32, terminal states reached
    unplayable: jax.Array  # [] uint32, states without a legal move for some role
    overlong: jax.Array  # [] uint32, games stopped by the step limit
    goals: jax.Array  # [G] uint32, how often each goal row of each player held at an end; rows of roles in order
    several: jax.Array  # [] uint32, ends in which a player had more than one goal value
    none: jax.Array  # [] uint32, ends in which a player had none


@dataclasses.dataclass(frozen=True, eq=False)
class Playout:
    """The playout program of one network."""

    net: network.PropNet
    max_steps: int = 10_000

    @functools.cached_property
    def counter_bits(self) -> int:
        return self.max_steps.bit_length()

    @functools.cached_property
    def rank_bits(self) -> list[int]:
        """Bits of the rank of a move among the legal ones, for every role that ever has a choice."""
        return [len(role.moves).bit_length() for role in self.net.roles if len(role.moves) > 1]

    @functools.cached_property
    def step_tape(self) -> tape.Tape:
        return _step_tape(self.net, self.max_steps)

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
        """Every game makes so many steps (at most 2^32 divided by the games, or counts overflow); a game that ends
        starts again.
        """
        words = games.state.shape[1]
        size = _group_size(words)
        grouped = jax.tree.map(lambda x: jnp.moveaxis(x.reshape(*x.shape[:-1], -1, size), -2, 0), games)
        after, totals = jax.lax.map(lambda group: self._run_group(group, steps), grouped)
        joined = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -2).reshape(*x.shape[1:-1], words), after)
        return joined, jax.tree.map(lambda x: x.sum(axis=0), totals)

    def _run_group(self, games: Rollouts, steps: int | jax.Array) -> tuple[Rollouts, Totals]:
        registers = len(self.net.initial) + self.counter_bits
        goal_rows = sum(len(role.goal_values) for role in self.net.roles)

        def step(_: jax.Array, carry: tuple[Rollouts, Totals]) -> tuple[Rollouts, Totals]:
            (state, streams), totals = carry
            streams, rows = self._step(state, streams)
            counts = jax.lax.population_count(rows[registers:]).sum(axis=1, dtype=jnp.uint32)
            happened = Totals(counts[0], counts[1], counts[2], counts[5 : 5 + goal_rows], counts[3], counts[4])
            return Rollouts(rows[:registers], streams), jax.tree.map(jnp.add, totals, happened)

        zero = jnp.zeros((), jnp.uint32)
        start = Totals(zero, zero, zero, jnp.zeros(goal_rows, jnp.uint32), zero, zero)
        return jax.lax.fori_loop(0, steps, step, (games, start))


    def _step(self, state: jax.Array, streams: rng.Streams) -> tuple[rng.Streams, jax.Array]:
        """The outputs of the step tape; its middle holds the counts of legal moves, its last inputs their ranks."""
        program = self.step_tape
        blank = jnp.zeros((program.inputs - state.shape[0], state.shape[1]), jnp.uint32)
        rows = rolled.start(program, jnp.concatenate([state, blank]))
        counting, moving = program.segments
        rows = rolled.advance(program, counting, rows)
        counts = rows[program.middle] ^ program.middle_mask[:, None]
        bounds = np.cumsum([0, *self.rank_bits])
        streams, ranks = chooser.draw_ranks(streams, [counts[a:b] for a, b in itertools.pairwise(bounds)])
        if ranks:
            rows = jax.lax.dynamic_update_slice(rows, jnp.concatenate(ranks), (1 + state.shape[0], 0))
        return streams, rolled.finish(program, rolled.advance(program, moving, rows))


def _group_size(words: int) -> int:
    """The largest divisor of a number of words that is at most GROUP."""
    return next(size for size in range(min(words, GROUP), 0, -1) if words % size == 0)


def _step_tape(net: network.PropNet, max_steps: int) -> tape.Tape:
    """Inputs: registers, step counter, ranks of the moves. Middle: counts of legal moves. Outputs: registers, step
    counter; rows of what happened: terminal, unplayable, overlong, several goals, no goal; goal rows at an end.
    """
    registers = len(net.initial)
    counter_bits = max_steps.bit_length()
    rank_bits = [len(role.moves).bit_length() for role in net.roles if len(role.moves) > 1]
    builder = tape.Builder(registers + counter_bits + sum(rank_bits))
    inputs = iter(builder.input(n) for n in range(builder.inputs))
    state = list(itertools.islice(inputs, registers))
    counter = list(itertools.islice(inputs, counter_bits))
    legal = iter(_cone(builder, net, np.concatenate([role.legal for role in net.roles]), state, []))
    does: list[tape.Literal] = []
    counts: list[tape.Literal] = []
    stuck = tape.FALSE
    for role in net.roles:
        own = list(itertools.islice(legal, len(role.moves)))
        stuck = builder.disjunction(stuck, builder.any_of(own) ^ 1)
        if len(own) > 1:
            tree = chooser.count_legal(builder, own)
            counts += tree.count
            own = chooser.take(builder, tree, list(itertools.islice(inputs, len(tree.count))), own)
        does += own
    following = _cone(builder, net, net.next, state, does)
    judged = _cone(
        builder, net, np.concatenate([[net.terminal], *(role.goal for role in net.roles)]), following, []
    )
    going = stuck ^ 1
    terminal = builder.conjunction(judged[0], going)
    counted = _increment(builder, counter)
    full = builder.all_of(bit ^ (not max_steps >> n & 1) for n, bit in enumerate(counted))
    overlong = builder.all_of([full, terminal ^ 1, going])
    ended = builder.any_of([terminal, stuck, overlong])
    fresh = [
        builder.disjunction(bit, ended) if start else builder.conjunction(bit, ended ^ 1)
        for bit, start in zip(following, net.initial.tolist(), strict=True)
    ]
    counter = [builder.conjunction(bit, ended ^ 1) for bit in counted]
    goals = [builder.conjunction(goal, terminal) for goal in judged[1:]]
    several, none = _goal_faults(builder, net, goals, terminal)
    return builder.tape([*fresh, *counter, terminal, stuck, overlong, several, none, *goals], middle=counts)


def _cone(
    builder: tape.Builder,
    net: network.PropNet,
    outputs: network.Ints,
    state: list[tape.Literal],
    does: list[tape.Literal],
) -> list[tape.Literal]:
    whole = net.as_circuit()
    gates = emit.shared(circuit.pruned(circuit.Circuit(whole.inputs, whole.gates, tuple(map(int, outputs)))))
    return builder.add_circuit(gates, dict(enumerate([*state, *does], 1)))


def _increment(builder: tape.Builder, number: list[tape.Literal]) -> list[tape.Literal]:
    carry = tape.TRUE
    found = []
    for bit in number:
        found.append(builder.exclusive(bit, carry))
        carry = builder.conjunction(bit, carry)
    return found


def _goal_faults(
    builder: tape.Builder, net: network.PropNet, goals: list[tape.Literal], terminal: tape.Literal
) -> tuple[tape.Literal, tape.Literal]:
    """Whether some player has several goal values at this end, or none."""
    several = none = tape.FALSE
    for role in net.roles:
        own, goals = goals[: len(role.goal_values)], goals[len(role.goal_values) :]
        if role.is_random:
            continue
        seen = tape.FALSE
        for goal in own:
            several = builder.disjunction(several, builder.conjunction(seen, goal))
            seen = builder.disjunction(seen, goal)
        none = builder.disjunction(none, builder.conjunction(terminal, seen ^ 1))
    return several, none
