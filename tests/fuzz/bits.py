"""Single flipped bits in what is cached or checkpointed: refused or rebuilt, or the numbers read are bitwise equal."""

import os
import pathlib
import random
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple
from unittest import mock

import jax
import numpy as np

from gdlx.envs import compilation_cache
from gdlx.experiments.studies import result_cache
from gdlx.nets import checkpoints
from gdlx.propnet import games
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import errors
from gdlx.propnet.io import cache, files
from gdlx.propnet.syntax import rulesheet
from gdlx.solvers import requests, solve_requests
from gdlx.solvers.runs import result_folder
from gdlx.tests.fuzz import readers
from gdlx.tests.helpers import trials

_KEY, _PROGRAM = "jit_step-1a2b", bytes(range(256)) * 40


class Kept(NamedTuple):
    """What is written to a folder; `read` returns its numbers, or None if it must be made again."""

    write: Callable[[pathlib.Path], object]
    read: Callable[[pathlib.Path], bytes | None]
    suffixes: tuple[str, ...] = ("",)  # of the files whose bits are flipped


def _bytes(arrays: Iterable[Any]) -> bytes:
    return b"".join(f"{np.asarray(x).dtype} {np.shape(x)} ".encode() + np.asarray(x).tobytes() for x in arrays)


def _write_result(folder: pathlib.Path) -> None:
    request = requests.SolveRequest(readers.GAME, "dcfr", 5, results=folder)
    solve_requests.execute(request)


def _read_arrays(name: str) -> Callable[[pathlib.Path], bytes]:
    def read(folder: pathlib.Path) -> bytes:
        [path] = folder.rglob(name)
        return _bytes(result_folder.read_arrays(path))

    return read


def _read_state(folder: pathlib.Path) -> bytes:
    state, iteration, seconds = checkpoints.read_state(folder, readers.training_state())
    return _bytes([*jax.tree.leaves(state), iteration, seconds])


def _sheet() -> rulesheet.Rulesheet:
    return games.check_game(readers.GAME).require_usable()


def _cached(folder: pathlib.Path) -> Any:
    return mock.patch.dict(os.environ, {"GDLX_CACHE": str(folder)})


def _write_propnet(folder: pathlib.Path) -> None:
    with _cached(folder):
        cache.load_or_compile(_sheet())


def _read_propnet(folder: pathlib.Path) -> bytes:
    """Compiling again writes the file again."""
    with _cached(folder):
        return _numbers(cache.load_or_compile(_sheet()))


def _numbers(propnet: propnet.PropNet) -> bytes:
    return files._to_npz(propnet)


def _write_program(folder: pathlib.Path) -> None:
    compilation_cache.CheckedPrograms(folder).put(_KEY, _PROGRAM)


def _read_program(folder: pathlib.Path) -> bytes | None:
    return compilation_cache.CheckedPrograms(folder).get(_KEY)


def _write_study(folder: pathlib.Path) -> None:
    result_cache.write_arrays(folder / "arrays.npz", {"a": np.linspace(0, 1, 200)})


def _read_study(folder: pathlib.Path) -> bytes | None:
    arrays = result_cache.load_arrays(folder / "arrays.npz", ["a"])
    return None if arrays is None else _bytes(arrays)


KEPT: Mapping[str, Kept] = {
    "a cached propnet": Kept(_write_propnet, _read_propnet),
    "a cached program": Kept(_write_program, _read_program),
    "a checkpoint": Kept(_write_result, _read_arrays(result_folder.CHECKPOINT), (result_folder.CHECKPOINT,)),
    "a policy": Kept(_write_result, _read_arrays(result_folder.POLICY), (result_folder.POLICY,)),
    "a state of a training": Kept(
        lambda folder: checkpoints.write_state(folder, 3, 1.5, readers.training_state()), _read_state
    ),
    "measurements of a study": Kept(_write_study, _read_study),
}


def make_trial(name: str, folder: pathlib.Path) -> trials.Trial:
    """A trial flips one bit, reads, and restores the file."""
    kept = KEPT[name]
    kept.write(folder)
    expected = kept.read(folder)
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name.endswith(kept.suffixes))
    contents = {path: path.read_bytes() for path in paths if path.stat().st_size}

    def trial(seed: int) -> Mapping[str, int]:
        chance = random.Random(f"{name} {seed}")
        path = chance.choice(list(contents))
        bit = chance.randrange(8 * len(contents[path]))
        changed = bytearray(contents[path])
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", errors.Remark)
                actual = kept.read(folder)
        except (errors.UserError, OSError):
            return {"refused": 1}
        finally:
            path.write_bytes(contents[path])
        if actual is None:
            return {"refused": 1}
        if actual != expected:
            raise trials.Failure(f"bit {bit} of {path.relative_to(folder)} changes what is read")
        return {"rebuilt or the same": 1}

    return trial
