"""A few trials of every part of `make test-fuzz`, each of which must also find what it looks for."""

import pathlib
import random

import pytest

from gdlx.propnet.common import bounded_files
from gdlx.tests.fuzz import __main__ as fuzz
from gdlx.tests.fuzz import bits, damage, readers, sheets
from gdlx.tests.helpers import trials

_TRIALS = {"sheets, checked": 100, "sheets, compiled": 2, "files of a report": 1, "command lines": 20}


@pytest.mark.parametrize("part", fuzz.PARTS, ids=lambda part: part.name)
def test_parts(part: trials.Part, tmp_path: pathlib.Path) -> None:
    trial = part.make(tmp_path)
    for seed in range(_TRIALS.get(part.name, 4)):
        assert trials.attempt(trial, seed, part.seconds).failure is None, seed


def test_flipped_bits_that_change_numbers_are_found(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = bits.Kept(
        lambda folder: (folder / "numbers").write_bytes(bytes(100)), lambda folder: (folder / "numbers").read_bytes()
    )
    monkeypatch.setattr(bits, "KEPT", {"bare numbers": kept})
    failure = trials.attempt(bits.make_trial("bare numbers", tmp_path), 0).failure
    assert failure is not None
    assert "of numbers changes what is read" in failure


def test_readers_that_raise_are_found(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    careless = readers.Reader(
        lambda folder: (folder / "x.json").write_text('{"a": [1]}'),
        lambda folder: bounded_files.read_json(folder / "x.json")["a"][0] + 1,
    )
    monkeypatch.setattr(readers, "READERS", {"careless": careless})
    trial = readers.make_trial("careless", tmp_path)
    failures = [trials.attempt(trial, seed).failure for seed in range(30)]
    assert any(failure is not None and "Error" in failure for failure in failures)


def test_mutants_are_the_same_for_the_same_seed() -> None:
    assert sheets.mutated(7) == sheets.mutated(7) != sheets.mutated(8)


def test_damage_changes_one_file(tmp_path: pathlib.Path) -> None:
    for name in ("a.json", "b.csv"):
        (tmp_path / name).write_text('{"x": 1}')
    what = damage.damage(tmp_path, random.Random(3))
    changed = [name for name in ("a.json", "b.csv") if (tmp_path / name).read_text() != '{"x": 1}']
    assert [what.partition(":")[0]] == changed
