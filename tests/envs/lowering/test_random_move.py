"""The choice of a random move on bit slices: exact arithmetic, legal moves only, and uniform at fixed seeds."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest
import scipy.stats

from gdlx.envs.lowering import playout_tape, random_move, rng, tape
from gdlx.envs.packed import playouts
from gdlx.tests.helpers import sheets, support, tapes

LEAST_P = 1e-4  # of a chi-square test; seeds are fixed, so that a failure is a change of the code

# Roles with 5, 1 and 3 moves, and a random one with 2.
CHOICES = """
(role a) (role b) (role random) (role c)
(legal a 1) (legal a 2) (legal a 3) (legal a 4) (legal a 5) (legal b 1) (legal random 1) (legal random 2)
(legal c 1) (legal c 2) (legal c 3)
(<= (next done) (does a 1)) (<= (next done) (does a 2)) (<= (next done) (does a 3)) (<= (next done) (does a 4))
(<= (next done) (does a 5))
(<= terminal (true done)) (goal a 50) (goal b 50) (goal c 50)
"""
SIZES = (5, 1, 2, 3)


def sliced(numbers: npt.NDArray[np.int64], bits: int) -> tape.Words:
    """Bit b of all numbers in row b, 32 numbers a word."""
    rows = (numbers[None] >> np.arange(bits)[:, None] & 1).astype(np.uint32).reshape(bits, -1, 32)
    actual: tape.Words = (rows << np.arange(32, dtype=np.uint32)).sum(axis=2, dtype=np.uint32)
    return actual


def joined(rows: jax.Array | tape.Words) -> npt.NDArray[np.int64]:
    """Bit-sliced numbers as plain ones."""
    actual: npt.NDArray[np.int64] = (bits_of(rows).astype(np.int64) << np.arange(len(rows))[:, None]).sum(axis=0)
    return actual


def bits_of(rows: jax.Array | tape.Words) -> npt.NDArray[np.bool_]:
    """uint32[rows, W] -> bool[rows, 32 W]"""
    words = np.asarray(rows)
    actual: npt.NDArray[np.bool_] = (words[:, :, None] >> np.arange(32, dtype=np.uint32) & 1).astype(bool)
    return actual.reshape(len(words), -1)


def is_uniform(seen: npt.NDArray[np.int64]) -> bool:
    return len(seen) == 1 or bool(scipy.stats.chisquare(seen).pvalue > LEAST_P)


@pytest.mark.parametrize("bits", [1, 2, 5])
def test_add_and_halve_is_exact(bits: int) -> None:
    pairs = np.array(list(itertools.product(range(2**bits), repeat=2)) * 32).T
    a, b = (jnp.asarray(sliced(numbers, bits)) for numbers in pairs)
    assert joined(random_move._add_and_halve(a, b)).tolist() == (pairs.sum(axis=0) // 2).tolist()


@pytest.mark.parametrize("moves", range(1, 9))
def test_the_legal_move_of_every_rank(moves: int) -> None:
    """For every set of legal moves and every rank below its size; nothing is taken from the empty set."""
    rank_bits = moves.bit_length()
    builder = tape.TapeBuilder(moves + rank_bits)
    legal = [builder.input(n) for n in range(moves)]
    tree = random_move.count_legal(builder, legal)
    assert len(tree.count) == rank_bits
    rank = [builder.input(moves + n) for n in range(rank_bits)]
    program = builder.tape(random_move.select_by_rank(builder, tree, rank, legal), middle=tree.count)
    cases = [
        (options, expected, [n for n in range(moves) if options[n]])
        for options in support.all_columns(moves)
        for expected in range(max(1, sum(options)))
    ]
    for start in range(0, len(cases), 64):
        part = cases[start : start + 64]
        columns = [(*options, *(bool(expected >> n & 1) for n in range(rank_bits))) for options, expected, _ in part]
        inputs = tapes.pack_columns(columns)
        actual = tapes.unpack_columns(tapes.interpret_tape(program, inputs), len(part))
        for (_, expected, able), chosen in zip(part, actual, strict=True):
            assert [n for n in range(moves) if chosen[n]] == able[expected : expected + 1]
        counting = tape.Tape(
            **{**vars(program), "outputs": program.intermediate, "output_mask": program.intermediate_mask}
        )
        counting = tape.Tape(**{**vars(counting), "segments": program.segments[:1]})
        counts = tapes.unpack_columns(tapes.interpret_tape(counting, inputs), len(part))
        assert [sum(bit << n for n, bit in enumerate(count)) for count in counts] == [len(able) for *_, able in part]


def test_ranks_are_uniform() -> None:
    counts = [0, 1, 2, 3, 5, 6, 7, 10, 31]
    words = 1024
    rows = [jnp.asarray(sliced(np.full(32 * words, count), max(1, count.bit_length()))) for count in counts]
    streams = rng.make_streams(jax.random.key(3), 0, words)
    _, ranks = jax.jit(random_move.draw_ranks)(streams, rows)
    for count, rank in zip(counts, ranks, strict=True):
        seen = np.bincount(joined(rank), minlength=max(1, count))
        assert len(seen) == max(1, count)  # never as much as the count
        assert is_uniform(seen), (count, seen)
    pair = joined(ranks[4]) * 6 + joined(ranks[5])
    assert is_uniform(np.bincount(pair, minlength=30))  # and independent of each other


def test_moves_of_all_roles_are_legal_and_uniform() -> None:
    """All combinations of legal sets of four roles side by side, each 512 times."""
    play = playouts.Playout(sheets.compile_text(CHOICES))
    program = playout_tape.build_choice_tape(play.propnet)
    columns = np.array([*support.all_columns(sum(SIZES))] * 512).T
    legal = jnp.asarray(sliced_bits(columns))
    streams = rng.make_streams(jax.random.key(5), 0, legal.shape[1])
    _, rows = jax.jit(lambda known, streams: play._with_choice(program, known, streams))(legal, streams)
    actual = bits_of(rows)
    does, stuck = actual[:-1], actual[-1]
    assert not (does & ~columns).any()
    first = 0
    free = np.zeros(columns.shape[1], bool)
    for size in SIZES:
        own, options = does[first : first + size], columns[first : first + size]
        assert np.array_equal(own.sum(axis=0), options.any(axis=0))
        free |= ~options.any(axis=0)
        number = (options << np.arange(size)[:, None]).sum(axis=0)
        for case in range(1, 2**size):
            seen = own[:, number == case].sum(axis=1)[[bool(case >> n & 1) for n in range(size)]]
            assert is_uniform(seen), (size, case, seen)
        first += size
    assert np.array_equal(stuck, free)


def sliced_bits(columns: npt.NDArray[np.bool_]) -> tape.Words:
    lanes = columns.reshape(len(columns), -1, 32).astype(np.uint32) << np.arange(32, dtype=np.uint32)
    actual: tape.Words = lanes.sum(axis=2, dtype=np.uint32)
    return actual


def test_a_stream_depends_on_the_key_and_its_index_only() -> None:
    key = jax.random.key(7)
    whole = rng.make_streams(key, 0, 10)
    part = rng.make_streams(key, 4, 3)
    assert all(np.array_equal(a[4:7], b) for a, b in zip(whole, part, strict=True))
    _, words = rng.draw_rows(whole, 4)
    _, others = rng.draw_rows(rng.make_streams(jax.random.key(8), 0, 10), 4)
    assert not np.intersect1d(words, others).size
    assert rng.make_streams(jax.random.PRNGKey(7), 0, 2).a.dtype == jnp.uint32  # keys of the old kind will do too


def test_random_words_are_balanced() -> None:
    """Every bit is set half of the time, and neighbours in stream and time are independent."""
    _, words = rng.draw_rows(rng.make_streams(jax.random.key(0), 0, 1024), 16)
    bits = bits_of(words).reshape(16, 1024, 32).astype(int)
    samples = 16 * 1024
    for other in (np.ones_like(bits), np.roll(bits, 1, axis=0), np.roll(bits, 1, axis=1), np.roll(bits, 1, axis=2)):
        agree = (bits == other).sum(axis=(0, 1))
        assert np.abs(agree - samples / 2).max() < 5 * np.sqrt(samples) / 2


def test_scaled_counts_are_exact() -> None:
    """floor(drawn * count / 2^k), computed with Python's integers, with few bits and with many."""
    for largest in (3, 12, 200):
        bits, words = largest.bit_length(), 64
        rounds = random_move.EXTRA_BITS + bits
        drawn = rng.hash_words(jnp.array([7, largest], jnp.uint32), jnp.arange(words, dtype=jnp.uint32), rounds)
        counts = np.random.default_rng(largest).integers(0, largest + 1, 32 * words)
        rank = jax.jit(random_move.scale_count)(drawn, jnp.asarray(sliced(counts, bits)))
        expected = joined(drawn).astype(object) * counts >> rounds
        assert (joined(rank) == expected.astype(int)).all()


def test_hashed_words_are_uniform_and_independent() -> None:
    """Ranks by chi-square; of neighbours, of players, of rounds, and of keys that differ in one bit, also in pairs."""
    words, count = 4_096, 6

    def ranks(key: tuple[int, int], first: int) -> np.ndarray:
        index = jnp.arange(first, first + words, dtype=jnp.uint32)
        drawn = rng.hash_words(jnp.array(key, jnp.uint32), index, random_move.EXTRA_BITS + 3)
        counts = jnp.asarray(sliced(np.full(32 * words, count), 3))
        found: np.ndarray = joined(random_move.scale_count(drawn, counts))
        return found

    whole = ranks((0, 1), 0)
    assert is_uniform(np.bincount(whole, minlength=count))
    for other in (
        ranks((0, 1), 1 << 26),
        ranks((0, 3), 0),
        ranks((1 << 31, 1), 0),
        np.roll(whole, 1),
        np.roll(whole, 32),
    ):
        assert is_uniform(np.bincount(whole * count + other, minlength=count * count))
    drawn = np.asarray(rng.hash_words(jnp.array([5, 6], jnp.uint32), jnp.arange(words, dtype=jnp.uint32), 20))
    ones = np.unpackbits(drawn.view(np.uint8).reshape(20, -1), axis=1).astype(int)
    assert is_uniform(np.array([ones.sum(), (1 - ones).sum()]))
    for later in range(1, 20):
        agree = (ones[0] == ones[later]).sum()
        assert is_uniform(np.array([agree, ones.shape[1] - agree]))
