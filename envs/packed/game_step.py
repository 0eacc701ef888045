"""The step of one game as a function of its words, for `Env.step`: under vmap, the rows of 32 games in each word."""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs import env as envs
from gdlx.envs import state
from gdlx.envs.lowering import packing, tape
from gdlx.envs.packed import packed_env, step_tapes

_BITS = 32


@dataclasses.dataclass(frozen=True, eq=False)
class GameStep:
    """The step of a game.

    Attributes:
      env: the game.
      layout: of the states; with percepts if they are to be kept.
    """

    env: envs.Env
    layout: state.StateLayout

    def first(self) -> npt.NDArray[np.uint32]:
        """uint32[K], the words of the initial state; concrete, even while a jit is being traced."""
        rows, _ = self._packed.first
        bits = np.zeros(_BITS * self.layout.words, np.uint32)
        bits[: len(rows)] = rows & 1
        bits[self.layout.slice("moved")] = 1
        places = np.arange(_BITS, dtype=np.uint32)
        words: npt.NDArray[np.uint32] = (bits.reshape(-1, _BITS) << places).sum(axis=1, dtype=np.uint32)
        return words

    def __call__(
        self, words: jax.Array, actions: jax.Array, rank: jax.Array | None, allowed: jax.Array | None
    ) -> jax.Array:
        """uint32[K] words after a joint action.

        Args:
          words: uint32[K], the state.
          actions: [N] integers, actions of the players.
          rank: [] uint32, the rank of chance's action among the legal ones; None without a random role.
          allowed: [] bool, whether that action is legal; None if it is.
        """
        count = self.env.num_actions
        codes = jnp.where((actions >= 0) & (actions < count), actions, count).astype(jnp.uint32)
        numbers = [codes[player] for player in range(self.env.num_players)]
        numbers.append(jnp.uint32(0) if rank is None else rank)
        numbers.append(jnp.uint32(0) if allowed is None else 1 - allowed.astype(jnp.uint32))
        packed = [jnp.uint32(0) for _ in range(self._number_words)]
        for number, place in zip(numbers, self._places, strict=True):
            packed[place // _BITS] = packed[place // _BITS] | number << jnp.uint32(place % _BITS)
        joined = jnp.concatenate([words, jnp.stack(packed)])
        return packing.packed_call(self._advance, joined, self.layout.words)

    def _advance(self, inputs: jax.Array) -> jax.Array:
        """Rows of states and numbers -> rows of the next states."""
        at, propnet, game = self._packed.layout, self.env.propnet, self._packed
        rows = inputs[: at.flags.stop]
        first = _BITS * self.layout.words
        places = zip(self._places, self._number_bits, strict=True)
        numbers = [inputs[first + place : first + place + size] for place, size in places]
        over = rows[at.flags.start : at.flags.start + 1]
        legal = [rows[options] for options in at.legal]
        decided = game.run_tape(self._action_tape, *numbers, *legal, rows[at.chance], rows[at.counter], over)
        moves = sum(len(role.moves) for role in propnet.roles)
        counter = at.counter.stop - at.counter.start
        stays, does = decided[-1], decided[:moves]
        after, seen = game.advance(rows, does, decided[moves : moves + counter], percepts=self._has_percepts)
        following = [(rows & stays) | (after & ~stays), ~stays[None], decided[moves + counter : -1]]
        if self._has_percepts:
            old = inputs[self.layout.slice("percepts")]
            following.append((old & stays) | (seen & ~stays))
        joined = jnp.concatenate(following)
        return jnp.pad(joined, ((0, first - joined.shape[0]), (0, 0)))

    @property
    def _has_percepts(self) -> bool:
        return self.layout.percepts is not None

    @functools.cached_property
    def _packed(self) -> packed_env.PackedEnv:
        return packed_env.PackedEnv(self.env)

    @functools.cached_property
    def _number_bits(self) -> Sequence[int]:
        """Bits of the players' actions, of the rank of chance's, and of whether that is illegal."""
        action = self.env.num_actions.bit_length()
        return (*[action] * self.env.num_players, self.env.num_chance_actions.bit_length(), 1)

    @functools.cached_property
    def _places(self) -> Sequence[int]:
        """Where these numbers are, none of them in two words."""
        places, here = [], 0
        for size in self._number_bits:
            if here // _BITS != (here + size - 1) // _BITS and size:
                here = -(-here // _BITS) * _BITS
            places.append(here)
            here += size
        return places

    @property
    def _number_words(self) -> int:
        return (self._places[-1] + self._number_bits[-1] - 1) // _BITS + 1

    @functools.cached_property
    def _action_tape(self) -> tape.Tape:
        return step_tapes.build_action_tape(self.env.propnet, self.env.num_actions.bit_length(), self.env.max_steps)


def make_layout(env: envs.Env) -> state.StateLayout:
    """The layout of the states of a game: first the rows of `PackedEnv`."""
    players, chance = env.propnet.players, env.num_chance_actions
    return state.StateLayout(
        registers=len(env.propnet.initial),
        counter=env.max_steps.bit_length(),
        legal=tuple(len(role.moves) for role in players),
        chance=chance,
        outcomes=chance.bit_length(),
        goal_values=tuple(tuple(role.goal_values) for role in players),
        percepts=tuple(len(role.percepts) for role in players) if {"info_key", "percepts"} & {*env.track} else None,
        offset=float(env.payoffs.offset),
        shows_percepts="percepts" in env.track,
    )
