"""Batches of games for programs of users: states stay in words from step to step, and views are functions of them.

A program pays for what it reads: legal actions, rewards, observations and keys are unpacked where they are asked for,
and XLA drops the rest. Chance is drawn in words too.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs import env as envs
from gdlx.envs.lowering import random_move, rng, tape
from gdlx.envs.packed import action_words, lanes, packed_env, step_tapes, word_arrays
from gdlx.envs.views import info_key, observation_window

if TYPE_CHECKING:
    from gdlx.envs.packed import turn_based

_ALL = np.uint32(0xFFFFFFFF)
TRACKABLE = ("info_key", "infostate", "window:T")


class BatchedState(NamedTuple):
    """The games of a batch, in words. Read it by the functions of `BatchedEnv`.

    Axes: S rows, W words, P players, T steps, E events, G lanes (32 W, of which the first are games).

    >>> import gdlx
    >>> game = gdlx.make("kuhn_poker").batched(50)
    >>> states = game.reset()
    >>> states, game.terminated(states).any()
    (BatchedState(2 words of 32 games), Array(False, dtype=bool))
    """

    rows: jax.Array  # [S, W] uint32, all bits of the games
    key_words: jax.Array  # [P, 2, G] uint32, or P = 0 where `info_key` is not tracked
    window: jax.Array  # [P, T, E, W] uint32, actions and percepts; T = 0 where no window is tracked

    def __repr__(self) -> str:
        shape = getattr(self.rows, "shape", None)
        return f"BatchedState({shape[-1]:,} words of {lanes.GAMES_PER_WORD} games)" if shape else "BatchedState()"


class TimeStep(NamedTuple):
    """What a step led to, before games that have ended start again. Axes: B games, P players.

    >>> import gdlx
    >>> game = gdlx.make("kuhn_poker").batched(50)
    >>> states = game.reset()
    >>> states, timestep = game.step(states, game.legal(states).first(), jax.random.key(0))
    >>> timestep, timestep.rewards.shape
    (TimeStep(50 games), (50, 2))
    """

    rewards: jax.Array  # [B, P] float32, payoffs in the step that terminates a game, else 0
    terminated: jax.Array  # [B] bool, the rules ended the game
    truncated: jax.Array  # [B] bool, stopped by `max_steps` or in a state where some role has no legal move
    discount: jax.Array  # [B] float32, 0 where terminated, else 1
    illegal: jax.Array  # [B, P] bool, players whose action was illegal; their game stayed as it was
    final: BatchedState  # the states themselves, for observations of games that have ended

    def __repr__(self) -> str:
        return f"TimeStep({len(self.terminated)} games)"


@dataclasses.dataclass(frozen=True, eq=False)
class BatchedEnv:
    """A batch of one game in lockstep. All functions are pure: call them inside `jit` and `scan`. See `Env.batched`.

    Attributes:
      env: the game.
      batch: the number of games.
      track: what states keep of the past: `"info_key"`, `"infostate"`, `"window:T"`.
      auto_reset: whether games that have ended start again within the step.
      mesh: devices among which the games are divided; None for the default device, or whatever XLA chooses.

    >>> import gdlx
    >>> game = gdlx.make("kuhn_poker").batched(1000)
    >>> game
    BatchedEnv(kuhn_poker: 1,000 games)
    >>> key = jax.random.key(0)
    >>> states = game.reset()
    >>> states, timestep = game.step(states, game.legal(states).first(), key)
    >>> timestep.rewards.shape, int(timestep.terminated.sum()), game.observe(states, "state").shape
    ((1000, 2), 0, (1000, 17))
    """

    env: envs.Env
    batch: int
    track: tuple[str, ...] = ()
    auto_reset: bool = True
    mesh: jax.sharding.Mesh | None = None

    def __post_init__(self) -> None:
        if isinstance(self.batch, bool) or not isinstance(self.batch, int) or self.batch < 1:
            raise envs.EnvError(f"a batch of {self.env.name} needs 1 or more games; got {self.batch!r}")
        object.__setattr__(self, "track", (self.track,) if isinstance(self.track, str) else tuple(self.track))
        windows = [name for name in self.track if name != "info_key"]
        if len(windows) > 1:
            raise envs.EnvError(f"`track=` takes one of {' and '.join(windows)}, not several: the longest has them all")
        for name in windows:
            observation_window.encoder_steps(self.env, name, TRACKABLE)
        if self.mesh is not None and self.batch % (lanes.CHUNK_GAMES * self.mesh.size):
            least = lanes.CHUNK_GAMES * self.mesh.size
            raise envs.EnvError(
                f"a batch on {self.mesh.size} devices must be a multiple of {least:,} games "
                f"({lanes.CHUNK_GAMES} for each device); got {self.batch:,}"
            )

    def __repr__(self) -> str:
        tracked = f", tracks {', '.join(self.track)}" if self.track else ""
        return f"BatchedEnv({self.env.name}: {self.batch:,} games{tracked})"

    @property
    def num_players(self) -> int:
        return self.env.num_players

    @property
    def num_actions(self) -> int:
        return self.env.num_actions

    # ---- The program of a match

    def reset(self, key: jax.Array | None = None) -> BatchedState:
        """All games in the initial state.

        Args:
          key: ignored. The initial state is deterministic, and chance acts within `step`.
        """
        del key
        rows, keys = self._packed.first
        words = lanes.words_for(self.batch)
        first = jnp.broadcast_to(jnp.asarray(rows)[:, None], (len(rows), words))
        tracked = keys if "info_key" in self.track else keys[:0]
        key_words = jnp.broadcast_to(jnp.asarray(tracked)[:, :, None], (*tracked.shape, lanes.GAMES_PER_WORD * words))
        width = self.env.num_actions + self.env.num_percepts
        window = jnp.zeros((self.num_players, self._window_length, width, words), jnp.uint32)
        state = BatchedState(first, key_words, window)
        placed = action_words.on_shards(self.mesh, lambda *words: words, *state)
        return BatchedState(*placed)

    def legal(self, states: BatchedState) -> action_words.LegalActions:
        """The legal actions of every player; none in games that have ended."""
        return action_words.LegalActions(self._legal_words(states.rows), self.batch, self.mesh)

    def step(
        self, states: BatchedState, actions: action_words.ActionWords | jax.Array, key: jax.Array | None = None
    ) -> tuple[BatchedState, TimeStep]:
        """Applies one joint action in every game.

        Args:
          states: the current states.
          actions: [B, P] integers, an action of each player, or `ActionWords` as `random_actions` returns them.
          key: draws the actions of chance. Only games with a random role need it.

        Returns:
          The next states, in which games that have ended start again if `auto_reset` is set, and the `TimeStep`. A game
          with an illegal action stays as it is, and so does one that has ended without `auto_reset`.

        Raises:
          EnvError: if an argument has the wrong shape or dtype, or is missing.
        """
        self.require_key(key)
        return self.advance(states, self._chosen(actions), key)

    def turn_based(self) -> "turn_based.TurnBasedBatch":
        """The same games with an action of the current player alone, if they are turn-taking.

        Raises:
          EnvError: if several players decide at once.
        """
        from gdlx.envs.packed import turn_based

        return turn_based.TurnBasedBatch(self)

    def advance(
        self, states: BatchedState, does: jax.Array, key: jax.Array | None, ranks: jax.Array | None = None
    ) -> tuple[BatchedState, TimeStep]:
        """`step` with one-hot actions uint32[P, A, W], and with the rank of chance's action in place of a key.

        The rank among the legal actions of chance is a binary number in uint32[bits, W], the lowest bit first.
        """
        flags = self._packed.layout.flags.start
        if ranks is None:
            ranks = self._draw_ranks(states, key)
        rows, events, checked = self._on_shards(self._moved, states.rows, does, ranks)
        over, now_over, illegal, stays = states.rows[flags], rows[flags], checked[:-1], checked[-1]
        moved = BatchedState(rows, self._next_keys(states, events, stays), self._next_window(states, events, stays))
        ended, unplayable = lanes.unpack(rows[flags : flags + 2]) != 0
        terminated = (ended & ~unplayable)[: self.batch]
        timestep = TimeStep(
            rewards=self._rewards(rows, now_over & ~over),
            terminated=terminated,
            truncated=unplayable[: self.batch],
            discount=1.0 - terminated.astype(jnp.float32),
            illegal=(lanes.unpack(illegal) != 0).T[: self.batch],
            final=moved,
        )
        return (self._restarted(moved) if self.auto_reset else moved), timestep

    # ---- Views of a state

    def observe(self, states: BatchedState, encoder: str = "state", player: int | None = None) -> jax.Array:
        """Observations for networks.

        Args:
          states: the current states.
          encoder: `"state"` for all registers of the game, bool[B, R], also those that are hidden from players; else
            what the environment tracks, `"infostate"` or `"window:T"`: bool[B, P, T * (A + Q) + A], actions and
            percepts of the last T steps (zeros before the first), then legal actions, as in
            `gdlx.envs.views.observation_window`. `"infostate"` has as many steps as `max_steps`, or else as the longest
            of a thousand random matches; of a longer match it has the last ones.
          player: one player alone, as in bool[B, T * (A + Q) + A].

        Returns:
          The array.
        """
        if encoder == "state":
            return lanes.unpack_games(states.rows[self._packed.layout.registers])[: self.batch]
        rows = self.player_rows(states, encoder)
        if player is not None:
            return lanes.unpack_games(rows[player])[: self.batch]
        players, width, words = rows.shape
        return lanes.unpack_games(rows.reshape(-1, words))[: self.batch].reshape(self.batch, players, width)

    def observation_size(self, encoder: str = "state") -> int:
        """The length of an observation, of one player if it is a player's."""
        if encoder == "state":
            return len(self.env.propnet.initial)
        return observation_window.tensor_size(self.env, steps=observation_window.encoder_steps(self.env, encoder))

    def info_key(self, states: BatchedState) -> jax.Array:
        """uint32[B, P, 2] keys of the players' information sets, as `State.info_key`; needs `track="info_key"`."""
        if "info_key" not in self.track:
            raise envs.EnvError(f'{self.env.name} does not keep keys: make it with .batched(.., track=("info_key",))')
        return jnp.moveaxis(states.key_words, -1, 0)[: self.batch]

    def terminated(self, states: BatchedState) -> jax.Array:
        """bool[B], games that have ended, also those that were truncated; none are left by a step with `auto_reset`."""
        return (lanes.unpack(states.rows[self._packed.layout.flags.start]) != 0)[: self.batch]

    def rewards(self, states: BatchedState) -> jax.Array:
        """float32[B, P] payoffs of games that have ended, else 0."""
        return self._rewards(states.rows, jnp.broadcast_to(_ALL, states.rows.shape[1:]))

    def registers(self, states: BatchedState, game: int) -> npt.NDArray[np.bool_]:
        """bool[R] registers of one game, on the host."""
        rows = np.asarray(states.rows)[self._packed.layout.registers]
        chunk, within = divmod(game, min(lanes.GAMES_PER_WORD * rows.shape[1], lanes.CHUNK_GAMES))
        lane, word = divmod(within, min(rows.shape[1], lanes.CHUNK_WORDS))
        return (rows[:, chunk * lanes.CHUNK_WORDS + word] >> np.uint32(lane) & 1).astype(np.bool_)

    def render(self, states: BatchedState, game: int = 0) -> str:
        """The true fluents of one game as text, and the legal actions of its players."""
        registers = self.registers(states, game)
        propnet = self.env.propnet
        values = np.concatenate([[False], registers])
        truths = values[propnet.fluent_literals >> 1] ^ (propnet.fluent_literals & 1).astype(bool)
        legal = np.asarray(self.legal(states).mask[game])
        lines = [f"{self.env.name}, game {game:,} of {self.batch:,}"]
        lines += [f"  {fluent}" for fluent, holds in zip(propnet.fluents, truths, strict=True) if holds]
        for role, options in zip(propnet.players, legal, strict=True):
            names = [move for move, allowed in zip(role.moves, options.tolist(), strict=False) if allowed]
            lines.append(f"{role.name}: {' '.join(names) or 'the game is over'}")
        return "\n".join(lines)

    # ---- Inside words

    def require_key(self, key: jax.Array | None) -> None:
        """Refuses to step without a key where chance moves."""
        if self.env.num_chance_actions and key is None:
            raise envs.EnvError(f"{self.env.name} has a random role: pass a key to step")

    def legal_rows(self, states: BatchedState) -> tuple[jax.Array, ...]:
        """uint32[A_p, W] legal actions of each player, without padding."""
        return tuple(states.rows[legal] for legal in self._packed.layout.legal)

    def run_tape(self, program: tape.Tape, *inputs: jax.Array) -> jax.Array:
        """`PackedEnv.run_tape` on every device."""
        return self._on_shards(functools.partial(self._packed.run_tape, program), *inputs)

    @functools.cached_property
    def _packed(self) -> packed_env.PackedEnv:
        return packed_env.PackedEnv(self.env)

    @functools.cached_property
    def _window_length(self) -> int:
        return max(
            (observation_window.encoder_steps(self.env, name, TRACKABLE) for name in self.track if name != "info_key"),
            default=0,
        )

    def _legal_words(self, rows: jax.Array) -> jax.Array:
        """uint32[P, A, W]"""
        width = self.num_actions
        padded = [
            jnp.pad(rows[legal], ((0, width - (legal.stop - legal.start)), (0, 0)))
            for legal in self._packed.layout.legal
        ]
        return jnp.stack(padded) if padded else jnp.zeros((0, width, rows.shape[1]), jnp.uint32)

    def _chosen(self, actions: action_words.ActionWords | jax.Array) -> jax.Array:
        """uint32[P, A, W], one-hot."""
        words = lanes.words_for(self.batch)
        shape = (self.num_players, self.num_actions, words)
        if isinstance(actions, action_words.ActionWords):
            if actions.words.shape != shape:
                raise envs.EnvError(
                    f"actions of {self!r} must have words of shape {shape}; got {actions.words.shape}: choose them "
                    "from the legal actions of the same environment"
                )
            return actions.words
        array = action_words.require_integers(
            actions, (self.batch, self.num_players), repr(self), f"one for each of {', '.join(self.env.players)}"
        )
        return self.one_hot(array.T, words)

    def one_hot(self, actions: jax.Array, words: int) -> jax.Array:
        """[N, B] integers -> uint32[N, A, W]; no bit is set for what is no action."""
        known = jnp.where((actions >= 0) & (actions < self.num_actions), actions, self.num_actions)
        codes = [lanes.pack_numbers(numbers, self.num_actions.bit_length(), words) for numbers in known]
        return jnp.stack([self.run_tape(self._decode_tape, code) for code in codes])

    @functools.cached_property
    def _decode_tape(self) -> tape.Tape:
        return step_tapes.build_one_hot_tape(self.num_actions)

    @functools.cached_property
    def _check_tape(self) -> tape.Tape:
        return step_tapes.build_check_tape(self.env.propnet)

    @functools.cached_property
    def _chance_tape(self) -> tape.Tape:
        return step_tapes.build_chance_tape(self.env.num_chance_actions, self.env.max_steps)

    def _on_shards(self, function: Callable[..., action_words.Words], *arguments: jax.Array) -> action_words.Words:
        return action_words.on_shards(self.mesh, function, *arguments)

    def _draw_ranks(self, states: BatchedState, key: jax.Array | None) -> jax.Array:
        """uint32[bits, W] random ranks of chance's actions."""
        at = self._packed.layout
        counts = states.rows[at.outcomes]
        if key is None or not len(counts):
            return counts[:0]

        def draw(counts: jax.Array, numbers: jax.Array, seed: jax.Array) -> jax.Array:
            drawn = rng.hash_words(seed, numbers[0], random_move.EXTRA_BITS + len(counts))
            return random_move.scale_count(drawn, counts)

        return self._on_shards(draw, counts, action_words.word_numbers(counts), action_words.random_seed(key))

    def _moved(self, rows: jax.Array, does: jax.Array, ranks: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """The rows of the next states, events uint32[P, 2 A + Q, W], and uint32[P + 1, W]: players whose action is
        illegal, and games that stay as they are.
        """
        at, propnet = self._packed.layout, self.env.propnet
        decided = self._packed.run_tape(self._chance_tape, ranks, rows[at.chance], rows[at.counter])
        chance, counter = decided[: self.env.num_chance_actions], decided[self.env.num_chance_actions :]
        chosen = [one[: len(player.moves)] for one, player in zip(does, propnet.players, strict=True)]
        players = iter(chosen)
        joint = jnp.concatenate([chance if role.is_random else next(players) for role in propnet.roles])
        after, events = self._packed.move(rows, joint, counter)
        # A tape, because XLA would compute `stays` again for each of the rows.
        over = rows[at.flags.start : at.flags.start + 1]
        checked = self._packed.run_tape(self._check_tape, *chosen, *(rows[legal] for legal in at.legal), over)
        stays = checked[-1]
        return (rows & stays) | (after & ~stays), events, checked

    def _next_keys(self, states: BatchedState, events: jax.Array, stays: jax.Array) -> jax.Array:
        if not states.key_words.shape[0]:
            return states.key_words
        high, low = word_arrays.hash_rows(lanes.split(events), self._packed.event_constants)
        event: Any = tuple(part.reshape(self.num_players, -1) for part in (high, low))
        before: Any = (states.key_words[:, 0], states.key_words[:, 1])
        after = info_key.extend_words(before, event)
        keeps = lanes.unpack(stays) != 0
        return jnp.stack([jnp.where(keeps, old, new) for old, new in zip(before, after, strict=True)], axis=1)

    def _next_window(self, states: BatchedState, events: jax.Array, stays: jax.Array) -> jax.Array:
        width = states.window.shape[2]
        after = jnp.concatenate([states.window[:, 1:], events[:, None, :width]], axis=1)
        return (states.window & stays) | (after[:, after.shape[1] - states.window.shape[1] :] & ~stays)

    def _restarted(self, states: BatchedState) -> BatchedState:
        """Games that have ended start again."""
        over = states.rows[self._packed.layout.flags.start]
        rows, keys = self._packed.first
        first = jnp.asarray(rows)[:, None]
        tracked = jnp.asarray(keys[: states.key_words.shape[0]])[:, :, None]
        return BatchedState(
            rows=(states.rows & ~over) | (first & over),
            key_words=jnp.where(lanes.unpack(over) != 0, tracked, states.key_words),
            window=states.window & ~over,
        )

    def _rewards(self, rows: jax.Array, where: jax.Array) -> jax.Array:
        """float32[B, P] payoffs of games whose bit is set in uint32[W], else 0."""
        offset = np.float32(self.env.payoffs.offset)
        rewards = []
        for role, goals in zip(self.env.propnet.players, self._packed.layout.goals, strict=True):
            bits = lanes.unpack(rows[goals] & where) != 0
            total = jnp.zeros(bits.shape[1:], jnp.float32)
            for value, bit in zip((*role.goal_values, 0), bits, strict=True):  # the last row is for no goal at all
                total = jnp.where(bit, np.float32(value) - offset, total)
            rewards.append(total)
        batch = self.batch
        return jnp.stack(rewards, axis=1)[:batch] if rewards else jnp.zeros((batch, 0), jnp.float32)

    def player_rows(self, states: BatchedState, encoder: str) -> jax.Array:
        """uint32[P, O, W] rows of what each player has seen."""
        longest = self._window_length
        steps = longest if encoder == "window" and longest else observation_window.encoder_steps(self.env, encoder)
        if steps > self._window_length:
            raise envs.EnvError(
                f"{self.env.name} does not keep {encoder}: make it with .batched(.., track=({encoder!r},))"
            )
        window = states.window[:, self._window_length - steps :]
        players, _, width, words = window.shape
        return jnp.concatenate([window.reshape(players, steps * width, words), self._legal_words(states.rows)], axis=1)
