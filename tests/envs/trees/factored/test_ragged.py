"""Ragged arrays against lists of Python lists."""

import hypothesis
import hypothesis.strategies as st
import numpy as np

from gdlx.envs.trees.factored import ragged

ROWS = st.lists(st.lists(st.integers(0, 6), max_size=5), min_size=1, max_size=12)


def from_lists(rows: list[list[int]]) -> ragged.Ragged:
    return ragged.Ragged(
        ragged.starts_of(np.array([len(row) for row in rows])),
        np.array([item for row in rows for item in row], np.int64),
    )


def to_lists(rows: ragged.Ragged) -> list[list[int]]:
    return [part.tolist() for part in np.split(rows.items, rows.starts[1:-1])]


@hypothesis.given(ROWS)
def test_rows_are_equal_if_their_numbers_are(rows: list[list[int]]) -> None:
    numbered = ragged.number_rows(from_lists(rows))
    assert numbered.size == len({tuple(row) for row in rows})
    for number, row in zip(numbered.number.tolist(), rows, strict=True):
        assert rows[numbered.example[number]] == row


@hypothesis.given(ROWS, st.data())
def test_rows_are_taken_sorted_and_made_distinct(rows: list[list[int]], data: st.DataObject) -> None:
    array = from_lists(rows)
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=8))
    assert to_lists(array.take(np.array(chosen))) == [rows[n] for n in chosen]
    assert to_lists(ragged.sort_rows(array)) == [sorted(row) for row in rows]
    assert to_lists(ragged.distinct_in_rows(array, 7)) == [sorted(set(row)) for row in rows]
    assert to_lists(ragged.concatenate([array, array])) == rows + rows


@hypothesis.given(ROWS, st.integers(1, 9))
def test_chunks_cover_all_rows_in_order(rows: list[list[int]], size: int) -> None:
    lengths = from_lists(rows).lengths
    parts = ragged.chunks(lengths, size)
    assert [n for part in parts for n in range(part.start, part.stop)] == list(range(len(rows)))
    assert all(lengths[part].sum() <= size or part.stop == part.start + 1 for part in parts)


def test_rows_that_share_a_hash_are_told_apart() -> None:
    """The hash only finds candidates, which are then compared."""
    rows = from_lists([[1, 2], [3, 4], [1, 2]])
    others = np.array([1, 1, 1])
    assert not ragged._are_equal(rows, others)
    assert ragged._are_equal(rows, np.array([0, 1, 0]))
