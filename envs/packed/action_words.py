"""Legal and chosen actions of a batch, in words, as `BatchedEnv` returns and takes them, and uniform choice."""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs import env as envs
from gdlx.envs import state as states
from gdlx.envs.lowering import lower, random_move, rng, tape
from gdlx.envs.packed import lanes
from gdlx.propnet.common.text import plurals

Words = TypeVar("Words")
_Spec: Any = jax.sharding.PartitionSpec
_UNROLLED_ACTIONS = 64


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ActionWords:
    """One action of every player in every game; the integers that it stands for are `index`.

    Attributes:
      words: uint32[.., A, W], one-hot along A; no bit is set where no action is legal. The first axis, if there are
        three, is that of the players.
      batch: the number of games.
    """

    words: jax.Array
    batch: int = dataclasses.field(metadata={"static": True})

    def __repr__(self) -> str:
        return _shown(self)

    @property
    def index(self) -> jax.Array:
        """int32[B, ..], 0 where no action is legal."""
        actions = self.words.shape[-2]
        numbers = []
        for place in range(max(1, (actions - 1).bit_length())):
            rows = self.words[..., np.flatnonzero(np.arange(actions) >> place & 1), :]
            numbers.append(jax.lax.reduce(rows, np.uint32(0), jax.lax.bitwise_or, (rows.ndim - 2,)))
        return jnp.moveaxis(lanes.unpack_numbers(jnp.stack(numbers, axis=-2)), -1, 0)[: self.batch]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LegalActions:
    """The legal actions of every player in every game; as an array of bools they are `mask`.

    Attributes:
      words: uint32[.., A, W]. The first axis, if there are three, is that of the players.
      batch: the number of games.
      mesh: over which the words are divided, if they are.

    >>> import gdlx
    >>> game = gdlx.make("tictactoe").batched(100)
    >>> legal = game.legal(game.reset())
    >>> legal.mask.shape, legal.mask[0].sum(axis=1).tolist(), legal.first().index[99].tolist()
    ((100, 2, 10), [9, 1], [0, 9])
    """

    words: jax.Array
    batch: int = dataclasses.field(metadata={"static": True})
    mesh: jax.sharding.Mesh | None = dataclasses.field(default=None, metadata={"static": True})

    def __repr__(self) -> str:
        return _shown(self)

    @property
    def mask(self) -> jax.Array:
        """bool[B, .., A]"""
        *players, actions, words = self.words.shape
        rows = self.words.reshape(-1, words)
        return lanes.unpack_games(rows)[: self.batch].reshape(self.batch, *players, actions)

    def first(self) -> ActionWords:
        """The first legal action of every player."""
        rows = jnp.moveaxis(self.words, -2, 0)
        if len(rows) > _UNROLLED_ACTIONS:
            upto = jax.lax.associative_scan(jnp.bitwise_or, rows)
            chosen = jnp.concatenate([rows[:1], rows[1:] & ~upto[:-1]])
        else:
            upto = itertools.accumulate(rows, jnp.bitwise_or)
            chosen = jnp.stack([rows[0], *(row & ~earlier for row, earlier in zip(rows[1:], upto, strict=False))])
        return ActionWords(jnp.moveaxis(chosen, 0, -2), self.batch)


def _shown(value: ActionWords | LegalActions) -> str:
    players = "".join(f"{plurals.count(number, 'player')}, " for number in getattr(value.words, "shape", ())[:-2])
    return f"{type(value).__name__}({plurals.count(value.batch, 'game')}: {players}{value.words.shape[-2]} actions)"


def random_actions(key: jax.Array, legal: LegalActions | jax.Array) -> Any:
    """Draws actions uniformly among the legal ones, independently for all players and games.

    Args:
      key: a key of `jax.random`.
      legal: `BatchedEnv.legal`, or bool[.., A] masks.

    Returns:
      `ActionWords` for `BatchedEnv.step`, or int32[..] actions for masks; 0 where no action is legal.

    >>> import gdlx, jax
    >>> int(gdlx.random_actions(jax.random.key(0), jax.numpy.array([False, True, False])))
    1
    """
    if not isinstance(legal, LegalActions):
        return _random_indices(key, jnp.asarray(legal))
    rows = jnp.moveaxis(legal.words, -2, 0)  # [A, .., W]
    chosen = on_shards(legal.mesh, _choose, rows, word_numbers(rows), random_seed(key))
    return ActionWords(jnp.moveaxis(chosen, 0, -2), legal.batch)


def on_shards(mesh: jax.sharding.Mesh | None, function: Callable[..., Words], *arguments: jax.Array) -> Words:
    """Calls a function of arrays whose last axis is that of words on each device with its own words.

    Arguments of one axis are the same everywhere.
    """
    if mesh is None:
        return function(*arguments)
    names = mesh.axis_names
    shapes = jax.eval_shape(function, *arguments)
    mapped = jax.shard_map(
        function,
        mesh=mesh,
        in_specs=tuple(_Spec(*(None,) * (x.ndim - 1), names) if x.ndim > 1 else _Spec() for x in arguments),
        out_specs=jax.tree.map(lambda x: _Spec(*(None,) * (len(x.shape) - 1), names), shapes),
        check_vma=False,
    )
    words_of_batch: Words = mapped(*arguments)
    return words_of_batch


def word_numbers(rows: jax.Array) -> jax.Array:
    """uint32[1, W]: so that random numbers of a word do not depend on the number of devices."""
    return jnp.arange(rows.shape[-1], dtype=jnp.uint32)[None]


def random_seed(key: jax.Array) -> jax.Array:
    """uint32[..] words of a key, typed or not."""
    return jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else jnp.asarray(key, jnp.uint32)


def _random_indices(key: jax.Array, mask: jax.Array) -> jax.Array:
    """The legal action of a random rank. A probability is off by at most A / 2^32."""
    if mask.ndim < 1 or mask.dtype != jnp.bool_:
        raise envs.EnvError(
            f"a mask of legal actions must be bool[.., actions]; got {mask.dtype} of shape {mask.shape}"
        )
    count = jnp.sum(mask, axis=-1, dtype=jnp.uint32)
    drawn = jax.random.bits(key, mask.shape[:-1], jnp.uint32)
    rank = states.scale_down(drawn, count)

    def pass_by(carry: tuple[jax.Array, jax.Array], option: jax.Array) -> tuple[tuple[jax.Array, jax.Array], None]:
        seen, index = carry[0] + option, carry[1]
        return (seen, index + (seen <= rank)), None

    carry = (jnp.zeros_like(rank), jnp.zeros(rank.shape, jnp.int32))
    if mask.shape[-1] <= _UNROLLED_ACTIONS:  # several times faster than a cumulative sum
        for action in range(mask.shape[-1]):
            carry, _ = pass_by(carry, mask[..., action])
    else:
        carry, _ = jax.lax.scan(pass_by, carry, jnp.moveaxis(mask, -1, 0))
    return jnp.where(count > 0, carry[1], 0)


def _choose(rows: jax.Array, numbers: jax.Array, seed: jax.Array) -> jax.Array:
    """uint32[A, .., W] legal actions -> one of them, likewise, one-hot."""
    actions = rows.shape[0]
    if actions == 1:
        return rows
    players, words = int(np.prod(rows.shape[1:-1], dtype=int)), rows.shape[-1]
    flat = rows.reshape(actions, players * words)
    counting, choosing = _tapes(actions)
    count = lower.run(counting, flat)
    index = (numbers + np.arange(players, dtype=np.uint32)[:, None] * np.uint32(1 << 26)).reshape(-1)
    rank = random_move.scale_count(rng.hash_words(seed, index, random_move.EXTRA_BITS + len(count)), count)
    return lower.run(choosing, jnp.concatenate([flat, rank])).reshape(rows.shape)


@functools.lru_cache(maxsize=64)
def _tapes(actions: int) -> tuple[tape.Tape, tape.Tape]:
    """From legal actions to their number, and from legal actions and a rank to the one-hot action of that rank."""
    builder = tape.TapeBuilder(actions)
    legal = [builder.input(number) for number in range(actions)]
    counting = builder.tape(random_move.count_legal(builder, legal).count)
    builder = tape.TapeBuilder(actions + actions.bit_length())
    inputs = [builder.input(number) for number in range(actions + actions.bit_length())]
    legal, rank = inputs[:actions], inputs[actions:]
    tree = random_move.count_legal(builder, legal)
    return counting, builder.tape(random_move.select_by_rank(builder, tree, rank, legal))


def require_integers(actions: jax.Array, shape: tuple[int, ...], name: str, what: str) -> jax.Array:
    """Checks an array of actions of a batch."""
    array = jnp.asarray(actions)
    if array.shape != shape or not jnp.issubdtype(array.dtype, jnp.integer):
        raise envs.EnvError(
            f"actions of {name} must be integers of shape {shape}, {what}; got {array.dtype} of shape {array.shape}"
        )
    return array
