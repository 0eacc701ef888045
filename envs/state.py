"""The state of one match as words, and everything that can be read from their bits."""

import dataclasses
import itertools
import json
from collections.abc import Sequence
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from gdlx.propnet.common import errors

_BITS = 32
_MOST_STACKED = 64  # bits that are read one by one, which XLA fuses with whatever uses them


class EnvError(errors.UserError, ValueError):
    """An invalid argument, reported at trace time together with what was expected."""


@dataclasses.dataclass(frozen=True)
class StateLayout:
    """How many bits each part of a state has, in this order, then flags and percepts. Axes: N players.

    Attributes:
      registers: of the propnet.
      counter: of the number of steps, with a step limit.
      legal: actions of each player.
      chance: actions of chance.
      outcomes: of the number of its legal ones.
      goal_values: of each player, with a bit for each and one for none.
      percepts: of each player; None where neither they nor `info_key` are tracked.
      offset: what is subtracted from goal values.
      shows_percepts: whether percepts are tracked.
    """

    registers: int
    counter: int
    legal: tuple[int, ...]
    chance: int
    outcomes: int
    goal_values: tuple[tuple[int, ...], ...]
    percepts: tuple[int, ...] | None
    offset: float
    shows_percepts: bool = False

    @property
    def sizes(self) -> dict[str, int]:
        """The number of bits of each part."""
        return {
            "registers": self.registers,
            "counter": self.counter,
            "legal": sum(self.legal),
            "chance": self.chance,
            "outcomes": self.outcomes,
            "goals": sum(len(values) + 1 for values in self.goal_values),
            "terminated": 1,
            "unplayable": 1,
            "goal_conflict": 1,
            "moved": 1,
            "illegal": len(self.legal),
            "illegal_chance": 1,
            "percepts": sum(self.percepts or ()),
        }

    def slice(self, name: str) -> slice:
        """The bits of a part."""
        sizes = self.sizes
        bounds = dict(zip(sizes, itertools.pairwise([0, *itertools.accumulate(sizes.values())]), strict=True))
        return slice(*bounds[name])

    @property
    def words(self) -> int:
        """Of a state."""
        return -(-sum(self.sizes.values()) // _BITS)


@dataclasses.dataclass(frozen=True)
class State:
    """The state of one match: bits in words, of which the rest are functions, so that a program pays for what it reads.

    What a function of the bits cannot tell is there if the environment tracks it: see `gdlx.make`.

    Axes: K words, R registers, N players, A actions (of the player with the most), P percepts (likewise), C chance
    actions (0 without a random role).

    Attributes:
      words: [K] uint32, the bits of `layout`.
      step: [] int32, joint actions taken so far.
      layout: where the bits are.

    >>> import gdlx
    >>> env = gdlx.make("rps")
    >>> state = env.init()
    >>> state.legal_mask.tolist(), bool(state.terminated)
    ([[True, True, True], [True, True, True]], False)
    >>> jax.vmap(env.step, in_axes=(None, 0, None))(state, jnp.array([[0, 1], [1, 1]]), None).rewards.tolist()
    [[50.0, -50.0], [0.0, 0.0]]
    """

    words: jax.Array
    step: jax.Array
    _actions: jax.Array | None  # [N] int32
    _info_key: jax.Array | None  # [N, 2] uint32
    layout: StateLayout

    def __repr__(self) -> str:
        shape = getattr(self.words, "shape", None)
        if not isinstance(shape, tuple) or not shape:
            return f"State({type(self.words).__name__} leaves)"
        batch = f", batch {shape[:-1]}" if shape[:-1] else ""
        players, actions = len(self.layout.legal), max(self.layout.legal, default=0)
        return f"State({self.layout.registers} registers, {players} players, {actions} actions{batch})"

    @property
    def registers(self) -> jax.Array:
        """[R] bool, of the propnet."""
        return self._part("registers")

    @property
    def legal_mask(self) -> jax.Array:
        """[N, A] bool; all false once terminated."""
        return self._by_player("legal", self.layout.legal, max(self.layout.legal, default=0))

    @property
    def chance_mask(self) -> jax.Array:
        """[C] bool, legal actions of chance; all false once terminated."""
        return self._part("chance")

    @property
    def chance_outcomes(self) -> jax.Array:
        """[] uint32, the number of legal actions of chance."""
        bits = self._part("outcomes")
        places = np.arange(bits.shape[-1], dtype=np.uint32)
        count: jax.Array = (bits.astype(np.uint32) << places).sum(axis=-1, dtype=np.uint32)
        return count

    @property
    def rewards(self) -> jax.Array:
        """[N] float32, payoffs in the step that terminates the match, else 0."""
        offset = np.float32(self.layout.offset)
        values = [[np.float32(value) - offset for value in (*own, 0)] for own in self.layout.goal_values]
        return self._of_goals(values, np.float32(0), where=self._bit("moved"))

    @property
    def goals(self) -> jax.Array:
        """[N] int32, goal values (0..100) once terminated, else 0."""
        values = [[np.int32(value) for value in (*own, 0)] for own in self.layout.goal_values]
        return self._of_goals(values, np.int32(0), where=self._bit("terminated"))

    @property
    def terminated(self) -> jax.Array:
        """[] bool"""
        return self._bit("terminated")

    @property
    def unplayable(self) -> jax.Array:
        """[] bool, terminated because some role had no legal move, or by `max_steps`; rewards are then 0."""
        return self._bit("unplayable")

    @property
    def goal_conflict(self) -> jax.Array:
        """[] bool, terminated with several goal values (the highest counts) or none for a player."""
        return self._bit("goal_conflict")

    @property
    def illegal(self) -> jax.Array:
        """[N] bool, players whose action was illegal; the state then did not change."""
        return self._part("illegal")

    @property
    def illegal_chance(self) -> jax.Array:
        """[] bool, the same for a `chance_action` passed to `step`."""
        return self._bit("illegal_chance")

    @property
    def has_moved(self) -> jax.Array:
        """[] bool, whether the last step changed the state: the match was not over, and all actions were legal."""
        return self._bit("moved")

    @property
    def percepts(self) -> jax.Array:
        """[N, P] bool, of the last joint action; with `track="percepts"`."""
        if self.layout.percepts is None or not self.layout.shows_percepts:
            raise _untracked("percepts")
        return self.percepts_of_last

    @property
    def percepts_of_last(self) -> jax.Array:
        """`percepts` also where only `info_key` is tracked, for which they are needed."""
        assert self.layout.percepts is not None
        return self._by_player("percepts", self.layout.percepts, max(self.layout.percepts, default=0))

    @property
    def actions(self) -> jax.Array:
        """[N] int32, the last joint action, -1 before the first; with `track="actions"`."""
        if self._actions is None:
            raise _untracked("actions")
        return self._actions

    @property
    def info_key(self) -> jax.Array:
        """[N, 2] uint32, keys of the players' information sets; with `track="info_key"`."""
        if self._info_key is None:
            raise _untracked("info_key")
        return self._info_key

    def _part(self, name: str) -> jax.Array:
        part = self.layout.slice(name)
        bits: jax.Array = _read_bits(self.words, part.start, part.stop)
        return bits

    def _bit(self, name: str) -> jax.Array:
        bit: jax.Array = _read_bit(self.words, self.layout.slice(name).start)
        return bit

    def _by_player(self, name: str, sizes: Sequence[int], width: int) -> jax.Array:
        """[N, width], padded with false."""
        array: Any = np if isinstance(self.words, np.ndarray) else jnp
        start, lead = self.layout.slice(name).start, self.words.shape[:-1]
        if len(sizes) * width <= _MOST_STACKED:
            nothing = array.zeros(lead, np.bool_)
            bits = [
                _read_bit(self.words, first + number) if number < size else nothing
                for first, size in zip(itertools.accumulate([start, *sizes]), sizes, strict=False)
                for number in range(width)
            ]
            flat = array.stack(bits, axis=-1) if bits else array.zeros((*lead, 0), np.bool_)
            few: jax.Array = flat.reshape(*lead, len(sizes), width)
            return few
        edges = [(0, 0)] * len(lead)
        rows = [
            array.pad(_read_bits(self.words, first, first + size), [*edges, (0, width - size)])
            for first, size in zip(itertools.accumulate([start, *sizes]), sizes, strict=False)
        ]
        many: jax.Array = array.stack(rows, axis=-2)
        return many

    def _of_goals(self, values: Sequence[Sequence[Any]], nothing: Any, where: Any) -> jax.Array:
        """[N] the value of each player's goal bit, if there is one."""
        array: Any = np if isinstance(self.words, np.ndarray) else jnp
        number = self.layout.slice("goals").start
        players = []
        for own in values:
            total = array.full(self.words.shape[:-1], nothing)
            for value in own:
                total = array.where(_read_bit(self.words, number), value, total)
                number += 1
            players.append(array.where(where, total, nothing))
        empty = array.zeros((*self.words.shape[:-1], 0), nothing.dtype)
        stacked: jax.Array = array.stack(players, axis=-1) if players else empty
        return stacked


def _read_bit(words: Any, number: int) -> Any:
    return (words[..., number // _BITS] >> np.uint32(number % _BITS)) & np.uint32(1) != 0


def _read_bits(words: Any, start: int, stop: int) -> Any:
    """uint32[.., K] -> bool[.., stop - start]"""
    first, last = start // _BITS, -(-stop // _BITS)
    spread = (words[..., first:last, None] >> np.arange(_BITS, dtype=np.uint32)) & np.uint32(1)
    flat = spread.reshape(*words.shape[:-1], (last - first) * _BITS)
    return flat[..., start - first * _BITS : stop - first * _BITS] != 0


def scale_down(drawn: jax.Array, count: jax.Array) -> jax.Array:
    """floor(drawn * count / 2^32): a number below a count of less than 2^16, from random bits."""
    low, high = (drawn & jnp.uint32(0xFFFF)) * count, (drawn >> 16) * count
    scaled: jax.Array = (high + (low >> 16)) >> 16
    return scaled


def _untracked(name: str) -> EnvError:
    return EnvError(f'states have `{name}` only if their environment tracks it: gdlx.make(.., track=("{name}",))')


_LEAVES = ("words", "step", "_actions", "_info_key")


def _unflatten(layout: StateLayout, leaves: Any) -> State:
    words, step, actions, key = leaves
    return State(words, step, actions, key, layout)


def _flatten_with_keys(state: State) -> tuple[list[tuple[Any, Any]], StateLayout]:
    return [(jax.tree_util.GetAttrKey(name), getattr(state, name)) for name in _LEAVES], state.layout


def _serialize(layout: Any) -> bytes:
    return json.dumps(dataclasses.asdict(layout)).encode()


def _deserialize(data: bytes) -> StateLayout:
    fields = json.loads(data)
    tuples = {name: tuple(fields[name]) for name in ("legal",)}
    tuples["goal_values"] = tuple(tuple(values) for values in fields["goal_values"])
    tuples["percepts"] = None if fields["percepts"] is None else tuple(fields["percepts"])  # type: ignore[assignment]
    return StateLayout(**(fields | tuples))


jax.tree_util.register_pytree_with_keys(
    State,
    _flatten_with_keys,
    _unflatten,
    lambda state: (tuple(getattr(state, name) for name in _LEAVES), state.layout),
)
# So that a step exported by jax.export can be saved.
jax.export.register_pytree_node_serialization(
    State, serialized_name="gdlx.envs.state.State", serialize_auxdata=_serialize, deserialize_auxdata=_deserialize
)
