"""The hash table against a dictionary: with deliberate collisions, full, and on other platforms."""

import functools
from typing import Any

import hypothesis
import hypothesis.strategies as st
import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

from gdlx.solvers.mccfr import hash_table

Key = tuple[int, int]
PLATFORMS = ("cuda", "tpu")
WIDTH = 24  # keys per call in the tests below, so that they compile once


def hash_to_one_place(high: jax.Array, low: jax.Array) -> jax.Array:
    del low
    return jnp.full_like(high, 13)


def hash_to_few_places(high: jax.Array, low: jax.Array) -> jax.Array:
    return (high + low) % 5 * 7


HASH_FNS = {"spread": hash_table.hash_keys, "one place": hash_to_one_place, "few places": hash_to_few_places}
lookup = jax.jit(hash_table.lookup, static_argnames="hash_fn")
insert = jax.jit(hash_table.insert, static_argnames="hash_fn")


def words(keys: list[Key] | np.ndarray) -> jax.Array:
    """uint32[2, V]"""
    return jnp.asarray(np.asarray(keys, np.uint32).reshape(-1, 2).T)


def random_keys(count: int, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).integers(0, 2**32, (2, count), np.uint32))


def all_of(keys: jax.Array) -> jax.Array:
    return jnp.ones(keys.shape[1], jnp.bool_)


class Model:
    """A dictionary of the rows that a table should hold, checked after every call."""

    def __init__(self, bits: int, hash_fn: hash_table.HashFn) -> None:
        self.table = hash_table.init(bits)
        self.hash_fn = hash_fn
        self.rows: dict[Key, int] = {}

    def insert(self, keys: list[Key], to_insert: list[bool]) -> None:
        padded_keys = keys + [(7, 7)] * (WIDTH - len(keys))
        flags = to_insert + [False] * (WIDTH - len(keys))
        self.table, row_array, new_array = insert(
            self.table, words(padded_keys), jnp.asarray(flags), hash_fn=self.hash_fn
        )
        rows, new = np.asarray(row_array).tolist(), np.asarray(new_array).tolist()
        before = dict(self.rows)
        for key, wanted_here, row in zip(padded_keys, flags, rows, strict=True):
            if wanted_here and row >= 0:
                assert self.rows.setdefault(key, row) == row
            elif wanted_here:
                assert key not in self.rows
        for key, wanted_here, row in zip(padded_keys, flags, rows, strict=True):
            if key in before:
                assert row == before[key]
            elif not wanted_here:  # another copy may have inserted it, before or after this one was searched for
                assert row in (-1, self.rows.get(key))
        new_keys = {key for key, is_new in zip(padded_keys, new, strict=True) if is_new}
        assert new_keys == self.rows.keys() - before.keys()
        assert all(wanted_here for wanted_here, is_new in zip(flags, new, strict=True) if is_new)
        self.check()

    def check(self) -> None:
        assert len(set(self.rows.values())) == len(self.rows) == int(hash_table.count_used(self.table))
        known = list(self.rows)
        for start in range(0, len(known) + 1, WIDTH):
            part = known[start : start + WIDTH]
            actual = lookup(self.table, words(part + [(8, 8)] * (WIDTH - len(part))), hash_fn=self.hash_fn)
            expected = [self.rows[key] for key in part] + [self.rows.get((8, 8), -1)] * (WIDTH - len(part))
            assert actual.tolist() == expected


small = st.integers(0, 3)
word = st.one_of(small, st.integers(0, 2**32 - 1))
offers = st.lists(st.tuples(st.tuples(word, word), st.booleans()), max_size=WIDTH)


@pytest.mark.parametrize("hash_name", HASH_FNS)
@hypothesis.given(calls=st.lists(offers, min_size=1, max_size=5))
def test_it_is_a_dictionary(hash_name: str, calls: list[list[tuple[Key, bool]]]) -> None:
    """In a table of 64 entries, which some of the examples fill; with few places there are many collisions."""
    model = Model(6, HASH_FNS[hash_name])
    for offered in calls:
        model.insert([key for key, _ in offered], [expected for _, expected in offered])


@pytest.mark.parametrize("hash_name", HASH_FNS)
def test_a_full_table_keeps_what_it_has(hash_name: str) -> None:
    """If all keys hash to one place, the search wraps around the end of the table."""
    model = Model(6, HASH_FNS[hash_name])
    first = [(n, n + 1) for n in range(20)]
    model.insert(first, [True] * 20)
    first_rows = dict(model.rows)
    assert len(first_rows) == 20
    for call in range(3):
        model.insert([(100 + call, n) for n in range(20)], [True] * 20)
    assert len(model.rows) == int(hash_table.count_used(model.table)) == 64
    assert first_rows.items() <= model.rows.items()
    filled = model.table
    model.insert([(500, n) for n in range(20)] + first[:4], [True] * 24)
    assert len(model.rows) == 64
    assert np.array_equal(model.table.high, filled.high)
    assert np.array_equal(model.table.low, filled.low)


def test_the_search_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hash_table, "MAX_WINDOWS", 2)
    keys = words([(9, n) for n in range(40)])
    limited = jax.jit(lambda table: hash_table.insert(table, keys, all_of(keys), hash_fn=hash_to_one_place))
    table, rows, _ = limited(hash_table.init(6))
    assert int(hash_table.count_used(table)) == 2 * hash_table.WINDOW
    assert sorted(rows[rows >= 0].tolist()) == list(range(8, 24))  # the window of 13 and the next


@pytest.mark.parametrize("key", [(0, 0), (0, 1), (1, 0), (2**32 - 1, 2**32 - 1)])
def test_no_key_is_taken_for_an_empty_entry(key: Key) -> None:
    model = Model(6, hash_table.hash_keys)
    model.insert([key], [False])
    assert model.rows == {}
    model.insert([key, key], [True, True])
    assert list(model.rows) == [key]


def test_keys_that_share_a_word_are_different() -> None:
    model = Model(6, hash_to_one_place)
    model.insert([(4, n) for n in range(9)] + [(n, 4) for n in range(9)], [True] * 18)
    assert len(model.rows) == 17  # (4, 4) is in both


@pytest.mark.parametrize(("bits", "load"), [(12, 0.8), (14, 0.97)])
def test_many_keys_at_once(bits: int, load: float) -> None:
    """All keys are new and occur twice, so that more are left after the first round than one compacted round takes."""
    count = int(load * 2**bits)
    keys = random_keys(count)
    twice = jnp.concatenate([keys, keys[:, ::-1]], axis=1)
    table, rows, _ = insert(hash_table.init(bits), twice, all_of(twice))
    assert np.array_equal(rows[:count], rows[count:][::-1])
    assert int(hash_table.count_used(table)) == len(set(rows.tolist())) == count
    assert rows.min() >= 0
    after, same_rows, new = insert(table, twice, all_of(twice))
    assert np.array_equal(same_rows, rows)
    assert all(np.array_equal(a, b) for a, b in zip(after, table, strict=True))
    assert not new.any()
    again, same_rows, _ = insert(hash_table.init(bits), twice, all_of(twice))
    assert np.array_equal(same_rows, rows)
    assert all(np.array_equal(a, b) for a, b in zip(again, table, strict=True))
    assert np.array_equal(lookup(table, keys), rows[:count])
    assert (lookup(table, random_keys(count, seed=1)) == -1).all()


def test_rows_are_stable() -> None:
    """In a loop, as in samplers. Keys may be a pair of arrays."""
    batches = jnp.stack([random_keys(500, seed) for seed in range(6)])

    def add(table: hash_table.Table, keys: jax.Array) -> tuple[hash_table.Table, jax.Array]:
        after, rows, _ = hash_table.insert(table, keys, all_of(keys))
        return after, rows

    table, rows = jax.jit(functools.partial(jax.lax.scan, add))(hash_table.init(12), batches)
    assert int(hash_table.count_used(table)) == len(set(rows.ravel().tolist())) == 3_000
    for keys, expected in zip(batches, rows, strict=True):
        assert np.array_equal(lookup(table, (keys[0], keys[1])), expected)


def test_no_keys_at_all() -> None:
    table, rows, _ = insert(hash_table.init(3), words([]), jnp.zeros(0, bool))
    assert (rows.shape, int(hash_table.count_used(table))) == ((0,), 0)


@pytest.mark.parametrize("bits", [0, 2])
def test_tables_smaller_than_a_window(bits: int) -> None:
    keys = random_keys(12)
    table, rows, _ = insert(hash_table.init(bits), keys, all_of(keys))
    assert int(hash_table.count_used(table)) == int((rows >= 0).sum()) == 2**bits
    assert np.array_equal(lookup(table, keys), rows)


@pytest.mark.parametrize("bits", [-1, 31])
def test_tables_of_no_size(bits: int) -> None:
    with pytest.raises(ValueError, match="0 to 30"):
        hash_table.init(bits)


def test_under_vmap() -> None:
    """Several tables with separate keys behave as one by one."""
    keys = jnp.stack([random_keys(300, seed) for seed in range(3)])
    tables: Any = jax.tree.map(lambda x: jnp.stack([x] * 3), hash_table.init(9))
    to_insert = jnp.asarray(np.random.default_rng(0).random((3, 300)) < 0.9)
    many, rows, new = jax.jit(jax.vmap(hash_table.insert))(tables, keys, to_insert)
    looked_up = jax.jit(jax.vmap(hash_table.lookup))(many, keys)
    for n in range(3):
        one, expected, expected_new = insert(hash_table.init(9), keys[n], to_insert[n])
        assert np.array_equal(rows[n], expected)
        assert np.array_equal(new[n], expected_new)
        assert np.array_equal(looked_up[n], lookup(one, keys[n]))
        assert all(np.array_equal(a[n], b) for a, b in zip(many, one, strict=True))


def test_hashes_are_spread() -> None:
    """Keys that differ in single bits, as counters do, fill windows as evenly as random ones."""
    for place in range(2):
        counted = jnp.zeros((2, 2**15), jnp.uint32).at[place].set(jnp.arange(1, 2**15 + 1, dtype=jnp.uint32))
        for shift in (0, 8, 17):
            keys = counted << shift
            windows = np.asarray(hash_table.hash_keys(keys[0], keys[1])) % 2**16 // 8
            fill = np.bincount(windows, minlength=2**13)
            assert fill.max() <= 20  # 4 on average
            assert 0.7 * 4 < fill.var() < 1.4 * 4


def test_it_lowers_for_accelerators() -> None:
    table, keys = hash_table.init(16), random_keys(4096)
    for function, arguments in ((hash_table.lookup, (keys,)), (hash_table.insert, (keys, all_of(keys)))):
        exported = jax.export.export(jax.jit(function), platforms=PLATFORMS)(table, *arguments)
        assert exported.platforms == PLATFORMS
        assert "custom_call" not in exported.mlir_module()
        assert not any(name in exported.mlir_module() for name in ("f64", "i64>>"))
