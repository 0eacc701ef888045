"""Batches of games that run in lockstep, for samplers: what `Env` does for one game, without unpacking words.

All state of a game is bits in `rows`, 32 games in a word, which go through the tapes of a step as they are; only what a
sampler reads is unpacked, with games along the last axis. Game g is bit g // W of word g % W, so that unpacking a row
needs no transposition. Actions are passed as binary numbers and decoded by a tape, and so is the action of chance, as
the rank of a legal one: the cost of packing grows with the number of rows.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs import env as envs
from gdlx.envs.lowering import lower, packing, tape
from gdlx.envs.packed import step_tapes, word_arrays
from gdlx.envs.views import info_key
from gdlx.envs.views import public as public_knowledge

GAMES_PER_WORD = packing.GAMES_PER_WORD
_ALL = np.uint32(0xFFFFFFFF)


class PackedState(NamedTuple):
    """A batch of matches; read it by its properties.

    Axes: S rows, W words, P players, A actions of the player with the most, B games (32 W - B lanes are unused).

    All but the rows and keys follows from the rows. A terminated game does not change. The fields keep the axes 32 and
    W separate: a loop that computes them is vector code only if nothing in it changes shapes. So read the state at the
    start of a loop's body, not the one that the body returns.

    >>> import gdlx
    >>> state = PackedEnv(gdlx.make("rps")).start(2)
    >>> state
    PackedState(2 games)
    >>> state.legal.shape, state.terminated.tolist()
    ((2, 3, 2), [False, False])
    """

    rows: jax.Array  # [S, W] uint32, every bit of the games; their order is private
    high_words: jax.Array  # [P, 32, W] uint32, first words of the keys
    low_words: jax.Array  # [P, 32, W] uint32, second words
    legal_words: jax.Array  # [P, A, 32, W] bool
    payoff_words: jax.Array  # [P, 32, W] float32
    flag_words: jax.Array  # [3, 32, W] bool: terminated, unplayable, goal_conflict
    outcomes: jax.Array  # [B] int32, number of legal actions of chance; 0 once terminated or without a random role

    def __repr__(self) -> str:
        try:  # leaves of a pytree need not be arrays
            return f"PackedState({self.batch:,} games)"
        except (AttributeError, IndexError):
            return "PackedState()"

    @property
    def batch(self) -> int:
        return self.outcomes.shape[0]

    @property
    def keys(self) -> tuple[jax.Array, jax.Array]:
        """uint32[P, B] first and second words of `State.info_key`; one more row with public state keys."""
        return word_arrays.flatten(self.high_words, self.batch), word_arrays.flatten(self.low_words, self.batch)

    @property
    def legal(self) -> jax.Array:
        """bool[P, A, B]; all false once terminated."""
        return word_arrays.flatten(self.legal_words, self.batch)

    @property
    def payoff(self) -> jax.Array:
        """float32[P, B]; 0 until terminated, and where unplayable."""
        return word_arrays.flatten(self.payoff_words, self.batch)

    @property
    def terminated(self) -> jax.Array:
        """bool[B]"""
        return word_arrays.flatten(self.flag_words[0], self.batch)

    @property
    def unplayable(self) -> jax.Array:
        """bool[B], terminated because some role had no legal move, or by the step limit."""
        return word_arrays.flatten(self.flag_words[1], self.batch)

    @property
    def goal_conflict(self) -> jax.Array:
        """bool[B], terminated with several goal values (the highest counts) or none for a player."""
        return word_arrays.flatten(self.flag_words[2], self.batch)


class Layout(NamedTuple):
    """The rows of a state. `registers` and `counter` are updated by a step; the others are functions of them."""

    registers: slice
    counter: slice  # steps taken, as a binary number; no rows without a limit
    legal: tuple[slice, ...]  # of each player
    chance: slice  # legal actions of chance
    outcomes: slice  # their number, in binary
    goals: tuple[slice, ...]  # of each player: which goal value is the highest; the last row is for none
    flags: slice  # terminated, unplayable, goal_conflict


@dataclasses.dataclass(frozen=True, eq=False)
class PackedEnv:
    """Batches of one game in lockstep, without resets: what solvers sample with. Learners take `BatchedEnv`.

    All functions are pure, and work inside jit, loops and shard_map.

    Attributes:
      env: the game.
      public: what is public of actions and percepts. If set, the last key of a state is that of its public state.

    >>> import gdlx
    >>> game = PackedEnv(gdlx.make("rps"))
    >>> game
    PackedEnv(rps: players player1, player2; 3 actions, zero-sum)
    >>> state = game.step(game.start(2), jnp.array([[0, 1], [1, 1]]), jnp.zeros(2))
    >>> state.payoff.tolist()
    [[50.0, 0.0], [-50.0, 0.0]]
    """

    env: envs.Env
    public: public_knowledge.PublicInfo | None = None

    def __repr__(self) -> str:
        public = "" if self.public is None else ", public state keys"
        return f"Packed{repr(self.env)[:-1]}{public})"

    def start(self, batch: int) -> PackedState:
        """A batch of games in the initial state."""
        state: PackedState = _start(self, batch)
        return state

    def step(self, state: PackedState, actions: jax.Array, chance: jax.Array) -> PackedState:
        """Applies a joint action in every game.

        Args:
          state: the current states.
          actions: int32[P, B], legal actions of the players; ignored in terminated games.
          chance: float32[B] in [0, 1). Chance takes its legal action of rank floor(chance * outcomes).

        Returns:
          The next states.
        """
        words = state.rows.shape[1]
        rank = jnp.minimum((chance * state.outcomes).astype(jnp.int32), state.outcomes - 1)
        numbers = [*actions, rank]
        codes = [word_arrays.pack_number(n, bits, words) for n, bits in zip(numbers, self.code_bits, strict=True)]
        rows, events = self._advance(state.rows, jnp.concatenate(codes))
        return self._seen(rows, *self._next_keys(state, events), state.batch)

    def take(self, state: PackedState, lanes: jax.Array) -> PackedState:
        """Gathers the games of int32[M] lanes, in that order and with repetitions."""
        words, words_after = state.rows.shape[1], -(-lanes.shape[0] // GAMES_PER_WORD)
        bits = (state.rows[:, lanes % words] >> (lanes // words).astype(jnp.uint32)) & jnp.uint32(1)
        in_words = word_arrays.to_words(bits, words_after)
        rows = word_arrays.pack_lanes([in_words[:, n] for n in range(GAMES_PER_WORD)])
        high, low = (word_arrays.to_words(key[:, lanes], words_after) for key in state.keys)
        return self._seen(rows, high, low, lanes.shape[0])

    @staticmethod
    def join(first: PackedState, second: PackedState) -> PackedState:
        """Concatenates two batches of whole words: in each of the 32 rows of lanes, `first` comes before `second`."""
        joined: PackedState = jax.tree.map(
            lambda a, b: jnp.concatenate([a, b], axis=-1),
            first._replace(outcomes=first.outcomes.reshape(GAMES_PER_WORD, -1)),
            second._replace(outcomes=second.outcomes.reshape(GAMES_PER_WORD, -1)),
        )
        return joined._replace(outcomes=joined.outcomes.reshape(-1))

    @staticmethod
    def join_lanes(first: jax.Array, second: jax.Array) -> jax.Array:
        """Concatenates arrays over lanes in the order of `join`: [.., B] and [.., C] -> [.., B + C]"""
        parts = [part.reshape(*part.shape[:-1], GAMES_PER_WORD, -1) for part in (first, second)]
        return jnp.concatenate(parts, axis=-1).reshape(*first.shape[:-1], -1)

    def state_keys(self, state: PackedState) -> tuple[jax.Array, jax.Array]:
        """uint32[B] twice: 64-bit keys of the states of the game, regardless of information sets."""
        changing = state.rows[: self.layout.counter.stop]
        high, low = word_arrays.hash_rows(changing[None], info_key.hash_constants(changing.shape[0], 4))
        return word_arrays.flatten(high[0], state.batch), word_arrays.flatten(low[0], state.batch)

    def registers(self, rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """[R, N] registers, from the unpacked rows [S, N] of games."""
        return rows[self.layout.registers]

    def steps(self, rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
        """[N] joint actions taken, from the unpacked rows [S, N] of games; 0 without a step limit."""
        counter = rows[self.layout.counter]
        return np.asarray((counter << np.arange(len(counter))[:, None]).sum(axis=0), np.int32)

    def _seen(self, rows: jax.Array, high: jax.Array, low: jax.Array, batch: int) -> PackedState:
        """A state with all fields that are functions of its rows."""
        at = self.layout
        legal = word_arrays.stack_players([rows[legal] for legal in at.legal], self.env.num_actions, rows)
        return PackedState(
            rows=rows,
            high_words=high,
            low_words=low,
            legal_words=word_arrays.unpack_bits(legal) != 0,
            payoff_words=self._payoff(rows),
            flag_words=word_arrays.unpack_bits(rows[at.flags]) != 0,
            outcomes=word_arrays.unpack_number(rows[at.outcomes], batch),
        )

    def _payoff(self, rows: jax.Array) -> jax.Array:
        """From the goal rows of all players, of which at most one is true for a player."""
        goals = [rows[values] for values in self.layout.goals]
        most = max((len(values) for values in goals), default=0)
        bits = word_arrays.unpack_bits(word_arrays.stack_players(goals, most, rows)) != 0
        offset = np.float32(self.env.payoffs.offset)
        values = np.zeros((len(goals), most, 1, 1), np.float32)
        for player, role in enumerate(self.env.propnet.players):
            values[player, : len(role.goal_values) + 1, 0, 0] = np.array([*role.goal_values, 0], np.float32) - offset
        total = jnp.zeros((len(goals), GAMES_PER_WORD, rows.shape[1]), jnp.float32)
        for number in range(most):
            total = jnp.where(bits[:, number], values[:, number], total)
        return total

    def _next_keys(self, state: PackedState, events: jax.Array) -> tuple[jax.Array, jax.Array]:
        """events uint32[P, E, W]: action, percepts and legal actions of each player."""
        over = state.flag_words[0]
        before: Any = (state.high_words, state.low_words)  # a pair works as well as an array
        event: Any = word_arrays.hash_rows(events, self.event_constants)
        high, low = info_key.extend(before, event)
        return jnp.where(over, before[0], high), jnp.where(over, before[1], low)

    @functools.cached_property
    def event_constants(self) -> info_key.HashConstants:
        """uint32[2 A + Q, 2] hash constants of the events of `move`."""
        options, moves = (info_key.hash_constants(self.env.num_actions, salt) for salt in (1, 2))
        return np.concatenate([moves, info_key.hash_constants(self.env.num_percepts, 3), options])

    @functools.cached_property
    def code_bits(self) -> tuple[int, ...]:
        """Number of bits of each player's action, and of the rank of chance's."""
        return (
            *((len(role.moves) - 1).bit_length() for role in self.env.propnet.players),
            self.env.num_chance_actions.bit_length(),
        )

    @functools.cached_property
    def layout(self) -> Layout:
        players, chance_moves = self.env.propnet.players, self.env.num_chance_actions
        sizes = [len(self.env.propnet.initial), self.env.max_steps.bit_length(), *(len(role.moves) for role in players)]
        sizes += [chance_moves, chance_moves.bit_length(), *(len(role.goal_values) + 1 for role in players), 3]
        registers, counter, *rest = step_tapes.slices(sizes)
        legal, (chance, outcomes), goals = rest[: len(players)], rest[len(players) :][:2], rest[len(players) + 2 : -1]
        return Layout(registers, counter, tuple(legal), chance, outcomes, tuple(goals), rest[-1])

    @functools.cached_property
    def _tapes(self) -> "_Tapes":
        propnet = self.env.propnet
        random = [role for role in propnet.roles if role.is_random]
        judged = [role.legal for role in (*propnet.players, *random)]
        return _Tapes(
            decode=step_tapes.build_decode_tape(propnet, self.code_bits, self.env.max_steps.bit_length()),
            move=tape.compile_tape(propnet, np.concatenate([propnet.next, *(role.sees for role in propnet.players)])),
            judge=tape.compile_tape(
                propnet, np.concatenate([*judged, [propnet.terminal], *(role.goal for role in propnet.players)])
            ),
            conclude=step_tapes.build_outcome_tape(propnet, self.env.max_steps),
        )

    @functools.cached_property
    def first(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """Rows and keys of the initial state; concrete, even while a jit is being traced."""
        at = self.layout
        changing = np.zeros((at.counter.stop, 1), np.uint32)
        changing[at.registers, 0] = np.where(self.env.propnet.initial, _ALL, 0)
        with jax.ensure_compile_time_eval():
            rows = np.asarray(jax.jit(self._judged)(changing))[:, 0]
        options = info_key.hash_constants(self.env.num_actions, 1)
        keys = [np.zeros((0, 2), np.uint32)]
        for legal in at.legal:
            event = options[: legal.stop - legal.start][rows[legal] != 0].sum(axis=0, dtype=np.uint32)
            with jax.ensure_compile_time_eval():
                keys.append(np.asarray(jax.jit(info_key.extend)(np.zeros(2, np.uint32), event))[None])
        if self.public is not None:
            keys.append(np.zeros((1, 2), np.uint32))
        return rows, np.concatenate(keys)

    def run_tape(self, program: tape.Tape, *inputs: jax.Array) -> jax.Array:
        """Evaluates straight-line boolean code on the rows of all inputs, in the form in which the game is lowered."""
        return lower.run(program, jnp.concatenate(inputs), self.env.form)

    def _judged(self, changing: jax.Array) -> jax.Array:
        """All rows of a state, from those of its registers and counter."""
        registers, counter = changing[self.layout.registers], changing[self.layout.counter]
        no_moves = jnp.zeros((self._tapes.judge.inputs - registers.shape[0], registers.shape[1]), jnp.uint32)
        judged = self.run_tape(self._tapes.judge, registers, no_moves)
        return jnp.concatenate([changing, self.run_tape(self._tapes.conclude, counter, judged)])

    def _advance(self, rows: jax.Array, codes: jax.Array) -> tuple[jax.Array, jax.Array]:
        """uint32[S, W], uint32[N, W] -> new rows, and the events of the players' keys."""
        at = self.layout
        decoded = self.run_tape(self._tapes.decode, codes, rows[at.chance], rows[at.counter])
        moves = sum(len(role.moves) for role in self.env.propnet.roles)
        after, events = self.move(rows, decoded[:moves], decoded[moves:])
        if self.public is not None:
            events = jnp.concatenate([events, events[:1] & self._public_rows])
        over = rows[at.flags.start]
        return (rows & over) | (after & ~over), events

    def move(self, rows: jax.Array, does: jax.Array, counter: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Applies joint actions, also to games that are over.

        Args:
          rows: uint32[S, W] of the states.
          does: uint32[D, W], one-hot actions of all roles, in file order.
          counter: uint32[.., W], joint actions taken afterwards.

        Returns:
          The rows of the next states, and uint32[P, 2 A + Q, W] events: the actions, percepts and next legal actions of
          each player.
        """
        at, propnet = self.layout, self.env.propnet
        after, seen = self.advance(rows, does, counter)
        roles = zip(propnet.roles, step_tapes.slices([len(role.moves) for role in propnet.roles]), strict=True)
        chosen = [does[moves] for role, moves in roles if not role.is_random]
        sensed = [seen[percepts] for percepts in step_tapes.slices([len(role.percepts) for role in propnet.players])]
        options = [after[legal] for legal in at.legal]
        widths = (self.env.num_actions, self.env.num_percepts, self.env.num_actions)
        per_player = zip((chosen, sensed, options), widths, strict=True)
        parts = [word_arrays.stack_players(event, width, rows) for event, width in per_player]
        return after, jnp.concatenate(parts, axis=1)

    def advance(
        self, rows: jax.Array, does: jax.Array, counter: jax.Array, *, percepts: bool = True
    ) -> tuple[jax.Array, jax.Array]:
        """`move` without events: the rows of the next states, and uint32[Q, W] percepts of all players, if wanted."""
        at = self.layout
        program = self._tapes.move if percepts else self._blind_tape
        moved = self.run_tape(program, rows[at.registers], does)
        registers, seen = moved[at.registers], moved[at.registers.stop :]
        return self._judged(jnp.concatenate([registers, counter])), seen

    @functools.cached_property
    def _blind_tape(self) -> tape.Tape:
        return tape.compile_tape(self.env.propnet, self.env.propnet.next)

    @functools.cached_property
    def _public_rows(self) -> npt.NDArray[np.uint32]:
        """[1, E, 1] all ones where a bit of the first player's events is public."""
        assert self.public is not None
        moves, percepts = (np.any(part[0], axis=1).reshape(-1) for part in self.public)
        widths = (self.env.num_actions, self.env.num_percepts)
        shown = [np.pad(part, (0, width - len(part))) for part, width in zip((moves, percepts), widths, strict=True)]
        rows = np.concatenate([*shown, np.zeros(self.env.num_actions, np.bool_)])
        return np.where(rows, _ALL, np.uint32(0))[None, :, None]


def register_keys(state: PackedState, constants: jax.Array) -> tuple[jax.Array, jax.Array]:
    """uint32[B] twice: 64-bit keys of the states of the game, the sums of the constants [R, 2] of their true registers.

    Unlike `PackedEnv.state_keys`, without the number of steps.
    """
    high, low = word_arrays.hash_rows(state.rows[: len(constants)][None], constants)  # registers are the first rows
    return word_arrays.flatten(high[0], state.batch), word_arrays.flatten(low[0], state.batch)


class _Tapes(NamedTuple):
    decode: tape.Tape
    move: tape.Tape
    judge: tape.Tape
    conclude: tape.Tape


@functools.partial(jax.jit, static_argnames=("game", "batch"))  # one by one, each operation would be compiled
def _start(game: PackedEnv, batch: int) -> PackedState:
    rows, keys = game.first
    words = -(-batch // GAMES_PER_WORD)
    every = jnp.broadcast_to(jnp.asarray(rows)[:, None], (len(rows), words))
    high, low = (jnp.broadcast_to(jnp.asarray(key)[:, None, None], (len(key), GAMES_PER_WORD, words)) for key in keys.T)
    return game._seen(every, high, low, batch)
