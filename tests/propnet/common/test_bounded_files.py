"""Pipes, devices, bombs and deep nesting are refused at once, with a message that names the file."""

import io
import os
import pathlib
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gdlx.experiments.reports import gather
from gdlx.experiments.sweeps import config as sweep_config
from gdlx.nets import checkpoints
from gdlx.players.matches import records
from gdlx.propnet.common import bounded_files, errors
from gdlx.propnet.io import array_files, files
from gdlx.propnet.syntax import source
from gdlx.solvers.runs import result_folder

READERS: dict[str, tuple[str, Callable[[pathlib.Path], object]]] = {
    "a rulesheet": ("game.gdl", source.Source.from_path),
    "a propnet": ("game.npz", files.load_propnet),
    "a sweep": ("grid.toml", sweep_config.read),
    "the config of a result": ("config.json", lambda path: result_folder.read_config(path.parent)),
    "the config of a match": ("config.json", lambda path: records.read_config(path.parent)),
    "the config of a training": ("config.json", lambda path: checkpoints.read_train_config(path.parent)),
    "the metrics of a result": ("metrics.csv", lambda path: result_folder.read_metrics(path.parent, 2)),
    "the metrics of a training": ("metrics.csv", lambda path: checkpoints.read_metrics(path.parent)),
    "a policy": ("policy.npz", result_folder.read_arrays),
}


@pytest.mark.parametrize("what", READERS)
@pytest.mark.parametrize("kind", ["a pipe", "/dev/zero"])
def test_only_regular_files_are_read(what: str, kind: str, tmp_path: pathlib.Path) -> None:
    name, read = READERS[what]
    path = tmp_path / name
    if kind == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(kind)
    with pytest.raises(errors.UserError, match=rf"{name}.* pipe, a socket or a device; copy it to a regular file"):
        read(path)


def test_a_folder_is_no_file(tmp_path: pathlib.Path) -> None:
    with pytest.raises(IsADirectoryError):
        bounded_files.read_bytes(tmp_path)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 60 + "1" + "}" * 60, "[NaN]", "9" * 5_000, "{", "\ufeff{}"])
def test_json_that_is_refused(text: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "config.json").write_text(text)
    for read in (result_folder.read_config, records.read_config):
        with pytest.raises(errors.UserError, match=r"config\.json cannot be read: it is not JSON .*; restore it"):
            read(tmp_path)
    assert not result_folder.is_training(tmp_path)
    assert "cannot be read" in gather.gather_runs([tmp_path]).skipped[0].reason


def _zipped(member: bytes, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as archive:
        archive.writestr("arr_0.npy", member)
    return packed.getvalue()


def _npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000,), }"
OBJECTS = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
EMPTY = "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 999999999999999999, 999999999999999999), }"
DAMAGED: dict[str, tuple[Callable[[], bytes], str]] = {
    "a bomb": (lambda: _zipped(bytes(2**29)), "more than"),
    "a huge shape": (lambda: _zipped(_npy(HUGE)), "size that it declares"),
    "an impossible shape": (lambda: _zipped(_npy(EMPTY)), "impossible shape"),
    "objects": (lambda: _zipped(_npy(OBJECTS, b"\x80\x04N.")), "has elements"),
    "no array": (lambda: _zipped(b"text"), "not a plain array"),
    "no zip": (lambda: b"text", "not a complete"),
    "another compression": (lambda: _zipped(b"", zipfile.ZIP_LZMA), "compressed in another way"),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_arrays_that_are_refused(what: str, tmp_path: pathlib.Path) -> None:
    make, message = DAMAGED[what]
    path = tmp_path / "policy.npz"
    path.write_bytes(make())
    with pytest.raises(result_folder.ResultError, match=rf"policy\.npz cannot be read: .*{message}"):
        result_folder.read_arrays(path)
    assert not array_files.is_intact(path)


def test_members_that_overlap(tmp_path: pathlib.Path) -> None:
    """Many entries of the directory for one stored member unpack to more than the file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("arr_0.npy", bytes(10_000))
        [first] = archive.infolist()
        for number in range(1, 50):
            again = zipfile.ZipInfo(f"arr_{number}.npy")
            for field in ("header_offset", "file_size", "compress_size", "CRC"):
                setattr(again, field, getattr(first, field))
            archive.filelist.append(again)
        archive._didModify = True  # type: ignore[attr-defined]
    (tmp_path / "policy.npz").write_bytes(packed.getvalue())
    with pytest.raises(result_folder.ResultError, match="larger than the file"):
        result_folder.read_arrays(tmp_path / "policy.npz")


@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_are_those_of_numpy(compressed: bool, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "arrays.npz"
    fortran = np.asfortranarray(np.arange(6).reshape(2, 3))
    arrays: list[Any] = [np.float64(1.5), fortran, np.zeros((0, 3), np.uint32), np.ones(2, np.bool_)]
    (np.savez_compressed if compressed else np.savez)(path, *arrays)
    loaded = result_folder.read_arrays(path)
    assert [x.dtype for x in loaded] == [x.dtype for x in arrays]
    assert all(np.array_equal(a, b) and a.shape == b.shape for a, b in zip(arrays, loaded, strict=True))
    assert loaded[1].flags.writeable


def test_every_flipped_bit_of_arrays_is_refused_or_changes_nothing(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "checkpoint.npz"
    numbers, more = np.arange(8, dtype=np.float32), np.arange(2)
    np.savez(path, numbers, more)
    content = path.read_bytes()
    refused = 0
    for bit in range(8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            loaded = result_folder.read_arrays(path)
        except result_folder.ResultError:
            refused += 1
        else:
            assert [x.tobytes() for x in loaded] == [x.tobytes() for x in (numbers, more)]
    assert refused > 8 * numbers.nbytes
