"""Replay buffers, against plain Python lists."""

from typing import Any

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from gdlx.nets.models import replay_buffers

BATCH = 6


def items_of(numbers: list[int]) -> dict[str, Any]:
    return {"number": jnp.array(numbers, jnp.int32), "row": jnp.array([[n, -n] for n in numbers], jnp.float32)}


def whole(buffer: replay_buffers.ReplayBuffer) -> list[int]:
    filled = int(buffer.filled)
    rows = np.asarray(buffer.items["row"])[:filled]
    numbers = np.asarray(buffer.items["number"])[:filled].tolist()
    np.testing.assert_array_equal(rows[:, 0], numbers)  # what belongs together stays together
    np.testing.assert_array_equal(rows[:, 1], -rows[:, 0])
    actual: list[int] = numbers
    return actual


add_last = jax.jit(replay_buffers.add_fifo)
add_fairly = jax.jit(replay_buffers.add_reservoir)


@hypothesis.settings(max_examples=40)
@hypothesis.given(st.lists(st.lists(st.booleans(), min_size=BATCH, max_size=BATCH), max_size=6), st.integers(1, 9))
def test_the_last_ones(to_insert: list[list[bool]], capacity: int) -> None:
    buffer = replay_buffers.init(jax.tree.map(lambda x: x[0], items_of([0])), capacity)
    kept: list[int] = []
    for batch, flags in enumerate(to_insert):
        numbers = list(range(batch * BATCH, (batch + 1) * BATCH))
        buffer = add_last(buffer, items_of(numbers), jnp.array(flags))
        kept += [number for number, flag in zip(numbers, flags, strict=True) if flag]
    assert int(buffer.num_added) == len(kept)
    assert sorted(whole(buffer)) == kept[-capacity:]


@hypothesis.settings(max_examples=40)
@hypothesis.given(
    st.lists(st.lists(st.booleans(), min_size=BATCH, max_size=BATCH), max_size=6), st.integers(1, 9), st.integers(0, 99)
)
def test_a_reservoir_with_the_same_draws(to_insert: list[list[bool]], capacity: int, seed: int) -> None:
    """One item after the other, by hand."""
    buffer = replay_buffers.init(jax.tree.map(lambda x: x[0], items_of([0])), capacity)
    places: list[int] = []
    seen = 0
    for batch, flags in enumerate(to_insert):
        key = jax.random.fold_in(jax.random.key(seed), batch)
        numbers = list(range(batch * BATCH, (batch + 1) * BATCH))
        bits = jax.random.bits(key, (BATCH,), jnp.uint32)
        buffer = add_fairly(buffer, items_of(numbers), jnp.array(flags), bits)
        for number, flag, draw in zip(numbers, flags, bits.tolist(), strict=True):
            if not flag:
                continue
            seen += 1
            if len(places) < capacity:
                places.append(number)
            elif (place := draw * seen >> 32) < capacity:
                places[place] = number
    assert whole(buffer) == places


@hypothesis.given(st.integers(0, 2**32 - 1), st.integers(1, 2**31 - 1))
def test_parts_of_many(bits: int, count: int) -> None:
    assert int(replay_buffers._scale_bits(jnp.uint32(bits), jnp.int32(count))) == bits * count >> 32


def test_no_count_runs_over() -> None:
    """After a billion items a buffer still has the last ones, and each slot of a reservoir can still be replaced."""
    full = replay_buffers.init({"number": jnp.int32(0)}, 10)._replace(num_added=jnp.int32(replay_buffers.MAX_COUNT - 2))
    numbers, every = {"number": jnp.arange(1, 26)}, jnp.ones(25, jnp.bool_)
    last = replay_buffers.add_fifo(full, numbers, every)
    assert int(last.filled) == 10
    assert sorted(last.items["number"].tolist()) == list(range(16, 26))
    after = replay_buffers.add_fifo(last, {"number": jnp.array([26])}, jnp.ones(1, jnp.bool_))
    assert sorted(after.items["number"].tolist()) == list(range(17, 27))
    fair = replay_buffers.add_reservoir(full, numbers, every, jax.random.bits(jax.random.key(0), (25,)))
    assert (int(fair.filled), int(fair.num_added)) == (10, replay_buffers.MAX_COUNT)
    drawn = np.asarray(
        replay_buffers._scale_bits(jax.random.bits(jax.random.key(1), (10_000,)), jnp.int32(replay_buffers.MAX_COUNT))
    )
    assert len(set((drawn % 64).tolist())) == 64


def test_a_reservoir_is_fair() -> None:
    """8 of 40 items are kept: each in about a fifth of 2 000 runs."""

    def run(key: jax.Array) -> jax.Array:
        buffer = replay_buffers.init({"number": jnp.int32(0)}, 8)
        for batch in range(4):
            items = {"number": jnp.arange(10, dtype=jnp.int32) + 10 * batch}
            bits = jax.random.bits(jax.random.fold_in(key, batch), (10,), jnp.uint32)
            buffer = replay_buffers.add_reservoir(buffer, items, jnp.ones(10, bool), bits)
        actual: jax.Array = buffer.items["number"]
        return actual

    kept = np.asarray(jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(0), 2_000)))
    counts = np.bincount(kept.ravel(), minlength=40)
    statistic = float(((counts - 400) ** 2 / 320).sum())  # variance of each: 2 000 x 0.2 x 0.8
    assert statistic < 80  # 39 degrees of freedom: one in ten thousand


def test_samples_are_of_what_is_there() -> None:
    buffer = replay_buffers.init({"number": jnp.int32(0)}, 50)
    items = {"number": jnp.arange(10, dtype=jnp.int32) + 7}
    buffer = replay_buffers.add_fifo(buffer, items, jnp.arange(10) < 4)
    drawn = np.asarray(replay_buffers.sample(buffer, jax.random.key(1), 1_000)["number"])
    assert set(drawn.tolist()) == {7, 8, 9, 10}
    assert np.bincount(drawn).max() < 400


@pytest.mark.parametrize("capacity", [1, 3])
def test_one_batch_larger_than_all_places(capacity: int) -> None:
    buffer = replay_buffers.init({"number": jnp.int32(0)}, capacity)
    buffer = replay_buffers.add_fifo(buffer, {"number": jnp.arange(10, dtype=jnp.int32)}, jnp.ones(10, bool))
    assert sorted(np.asarray(buffer.items["number"]).tolist()) == list(range(10 - capacity, 10))
