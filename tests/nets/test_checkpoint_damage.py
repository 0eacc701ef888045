"""Training states: a damaged file is refused, or the numbers are the same."""

import os
import pathlib
import random

import jax.numpy as jnp
import numpy as np
import pytest

from gdlx.nets import checkpoints


def test_flipped_bits_of_a_state_are_refused_or_change_nothing(tmp_path: pathlib.Path) -> None:
    numbers = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
    state = {"weights": jnp.asarray(numbers), "count": jnp.int32(3)}
    checkpoints.write_state(tmp_path, 5, 1.5, state)
    chance, refused = random.Random(0), 0
    paths = [path for path in checkpoints.last_files(tmp_path) if path.stat().st_size]
    contents = {path: path.read_bytes() for path in paths}
    largest = max(paths, key=lambda path: len(contents[path]))
    for number in range(30):
        path = largest if number % 2 else chance.choice(paths)
        changed = bytearray(contents[path])
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        try:
            restored, iteration, seconds = checkpoints.read_state(tmp_path, state)
        except checkpoints.CheckpointError:
            refused += 1
        else:
            assert (iteration, seconds, int(restored["count"])) == (5, 1.5, 3)
            assert np.asarray(restored["weights"]).tobytes() == numbers.tobytes()
        path.write_bytes(contents[path])
    assert refused
    restored, _, _ = checkpoints.read_state(tmp_path, state)
    assert np.asarray(restored["weights"]).tobytes() == numbers.tobytes()


def test_a_damaged_state_is_refused_before_it_is_read(
    tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """orbax prints tracebacks about damaged files, and waits for pipes."""
    state = {"weights": jnp.arange(512.0)}
    checkpoints.write_state(tmp_path, 5, 1.5, state)
    largest = max(checkpoints.last_files(tmp_path), key=lambda path: path.stat().st_size)
    content = largest.read_bytes()
    for kind in ("cut off", "huge", "a pipe"):
        match kind:
            case "cut off":
                largest.write_bytes(content[:-9])
            case "huge":
                os.truncate(largest, 2**37)
            case _:
                largest.unlink()
                os.mkfifo(largest)
        with pytest.raises(checkpoints.CheckpointError, match="is damaged and cannot be read"):
            checkpoints.read_state(tmp_path, state)
        assert capfd.readouterr().err == ""
    largest.unlink()
    largest.write_bytes(content)
    restored, _, _ = checkpoints.read_state(tmp_path, state)
    assert np.array_equal(restored["weights"], state["weights"])


def test_digests_of_older_iterations_are_removed(tmp_path: pathlib.Path) -> None:
    for iteration in range(4):
        checkpoints.write_state(tmp_path, iteration, 1.5, {"weights": jnp.arange(3.0)})
    assert sorted(path.name for path in (tmp_path / checkpoints.STATES).iterdir()) == ["2", "2.json", "3", "3.json"]
