"""Result folders: config.json, metrics.csv, policy.npz, convergence.png, and checkpoint.npz to go on from; model.npz
where an opponent is modelled.

Every file is written whole or not at all: a run that is killed loses at most what came after its last checkpoint.
"""

import contextlib
import csv
import dataclasses
import io
import json
import math
import pathlib
import platform
import re
import zipfile
from collections.abc import Sequence
from typing import IO, Any, NamedTuple, TypeVar

import jax
import numpy as np

import gdlx
from gdlx.envs import game_spec
from gdlx.envs.trees import game_tree
from gdlx.propnet.common import errors
from gdlx.propnet.io import checked_fields
from gdlx.solvers import algorithms, tabular_policies
from gdlx.solvers.exact import regret_matching
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.runs import driver

CONFIG, METRICS, POLICY, CHECKPOINT, PLOT, LOCK, MODEL = (
    "config.json",
    "metrics.csv",
    "policy.npz",
    "checkpoint.npz",
    "convergence.png",
    ".lock",
    "model.npz",
)
_FORMAT = 4
# Columns of metrics.csv before those of players.
_COMMON_COLUMNS, _NASH_CONV = ("iterations", "seconds", "exploitability", "samples", "load"), "nash_conv"
TRAINING = "training"  # what config.json of networks says it is of
_State = TypeVar("_State")


class ResultError(errors.UserError, ValueError):
    """A folder that holds no result, or another one than is needed."""


class OpponentModelConfig(NamedTuple):
    """The player that is bound to the policy in `model.npz` with probability p."""

    player: str
    p: float
    model: str  # digest


@dataclasses.dataclass(frozen=True)
class Config:
    """What produced a result: enough to produce it again, and to go on with it."""

    game: game_spec.GameSpec
    digest: str  # of the unrolled game, or of its rules
    algorithm: algorithms.Algorithm
    x64: bool
    opponent_model: OpponentModelConfig | None = None

    @property
    def has_table(self) -> bool:
        """Whether `policy.npz` is a hash table, and the digest that of the rules."""
        return self.algorithm.needs == "rules"

    def to_json(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "game": self.game._asdict(),
            "digest": self.digest,
            "algorithm": self.algorithm.name,
            "alternating": self.algorithm.alternating,
            # JSON has no infinities.
            "settings": {
                name: str(value) if isinstance(value, float) and math.isinf(value) else value
                for name, value in self.algorithm.settings._asdict().items()
            },
            "sampling": dataclasses.asdict(self.algorithm.sampling_config) if self.algorithm.is_sampled else None,
            "x64": self.x64,
            "modelled": None if self.opponent_model is None else self.opponent_model._asdict(),
            "versions": versions(),
        }


def versions() -> dict[str, str]:
    """Of what a result may depend on."""
    return {
        "gdlx": gdlx.__version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def folder_name(game: str) -> str:
    """
    >>> folder_name("goofspiel:cards=4")
    'goofspiel_cards=4'
    >>> folder_name("smuggler.gdl")
    'smuggler'
    """
    name = pathlib.PurePath(game).stem if is_rulesheet_path(game) else game
    return re.sub(r"[^\w.+=,-]+", "_", name).strip("_") or "game"


def is_rulesheet_path(game: str) -> bool:
    """Of a rulesheet, and no name of the library."""
    return "/" in game or game.endswith((".gdl", ".kif"))


def create_folder(root: pathlib.Path, game: str, algorithm: str) -> pathlib.Path:
    """A folder that is not there yet: results/leduc_poker/dcfr, then dcfr-2, dcfr-3, .."""
    parent = root / folder_name(game)
    number = 1
    while True:
        folder = parent / (algorithm if number == 1 else f"{algorithm}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return folder


def discard(folder: pathlib.Path) -> None:
    """Remove a new folder in which nothing was solved."""
    for name in (CONFIG, MODEL, LOCK):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # there is more in it
        folder.rmdir()


def lock(folder: pathlib.Path) -> IO[bytes] | None:
    """Held until it is closed or the process ends: nobody else may write here. None where the system has no locks."""
    try:
        import fcntl
    except ImportError:
        return None
    file = open(folder / LOCK, "wb")  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise ResultError(f"another run is writing to {folder}; wait for it, or stop it") from None
    return file


def is_training(folder: pathlib.Path) -> bool:
    """Whether networks are in a folder."""
    try:
        found = json.loads(checked_fields.read_bounded(folder / CONFIG, checked_fields.MAX_BYTES))
        return isinstance(found, dict) and found.get("kind") == TRAINING
    except (OSError, ValueError, RecursionError):
        return False


def write_config(folder: pathlib.Path, config: Config) -> None:
    checked_fields.write_atomically(folder / CONFIG, encode_config(config))


def encode_config(config: Config) -> bytes:
    return json.dumps(config.to_json(), indent=2, allow_nan=False).encode()


def read_config(folder: pathlib.Path) -> Config:
    try:
        with open(folder / CONFIG, encoding="utf-8") as file:
            found = json.load(file)
        if "agents" in found:
            raise ResultError(f"{folder} holds games between agents, not a solution")
        if found["format"] != _FORMAT:
            raise ResultError(f"{folder} has the format of another version of gdlx; solve anew")
        known = algorithms.find(found["algorithm"])
        settings = {
            name: float(value) if isinstance(value, str) else value for name, value in found["settings"].items()
        }
        drawn = found["sampling"]
        algorithm = dataclasses.replace(
            known,
            settings=regret_matching.Settings(**settings),
            alternating=bool(found["alternating"]),
            sampling=None if drawn is None else algorithms.SamplingConfig(**drawn),
        )
        bound = found.get("modelled")
        modelled = (
            None if bound is None else OpponentModelConfig(str(bound["player"]), float(bound["p"]), str(bound["model"]))
        )
        return Config(
            game_spec.GameSpec(**found["game"]), str(found["digest"]), algorithm, bool(found["x64"]), modelled
        )
    except FileNotFoundError:
        raise ResultError(f"{folder} holds no result: it has no {CONFIG}") from None
    except (AttributeError, KeyError, TypeError, ValueError, UnicodeDecodeError) as error:
        if isinstance(error, errors.UserError):
            raise
        raise ResultError(f"{folder / CONFIG} cannot be read: {error}") from None


def write_metrics(folder: pathlib.Path, names: Sequence[str], metrics: Sequence[driver.Metrics]) -> None:
    checked_fields.write_atomically(folder / METRICS, encode_metrics(names, metrics))


def encode_metrics(names: Sequence[str], metrics: Sequence[driver.Metrics]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [f"{what}_{name}" for what in ("value", "improvement", "value_error") for name in names]
    writer.writerow([*_COMMON_COLUMNS, _NASH_CONV, *columns])
    for row in metrics:
        told = [row.exploitability, row.samples, row.load, row.nash_conv]
        numbers = [
            part
            for numbers in (row.value, row.improvements, row.value_error)
            for part in (numbers or (None,) * len(names))  # what is not known is blank
        ]
        shown = ["" if number is None else repr(number) for number in (*told, *numbers)]
        writer.writerow([row.iterations, f"{row.seconds:.9g}", *shown])
    return text.getvalue().encode()


def read_metrics(folder: pathlib.Path, players: int) -> list[driver.Metrics]:
    try:
        with open(folder / METRICS, encoding="utf-8", newline="") as file:
            head, *rows = list(csv.reader(file)) or [[]]
        first = first_player_column(head)
        return [_read_row(row, first, players) for row in rows]
    except FileNotFoundError:
        return []
    except (IndexError, ValueError) as error:
        raise ResultError(f"{folder / METRICS} cannot be read: {error}") from None


def first_player_column(head: Sequence[str]) -> int:
    """The first column of players in metrics.csv; files without a column for NashConv are read too.

    >>> first_player_column(["iterations", "seconds", "exploitability", "samples", "load", "value_x", "gain_x"])
    5
    """
    return len(_COMMON_COLUMNS) + (list(head[len(_COMMON_COLUMNS) :][:1]) == [_NASH_CONV])


def _read_row(row: list[str], first: int, players: int) -> driver.Metrics:
    value, improvements, error = (
        tuple(float(text) for text in row[start : start + players] if text)
        for start in range(first, first + 3 * players, players)
    )
    load = float(row[4]) if row[4] else None
    return driver.Metrics(int(row[0]), float(row[1]), value, improvements, int(row[3]), load, error)


def write_policy(folder: pathlib.Path, policies: tabular_policies.Policies) -> None:
    _write_arrays(folder / POLICY, list(policies))


def write_model(folder: pathlib.Path, model: tabular_policies.Policy) -> None:
    _write_arrays(folder / MODEL, [model])


def read_model(folder: pathlib.Path, player: game_tree.Player) -> tabular_policies.Policy:
    arrays = read_arrays(folder / MODEL)
    if len(arrays) != 1:
        raise ResultError(f"{folder / MODEL} has {len(arrays)} arrays, not the policy of one player")
    return tabular_policies.validate_shape(player, arrays[0])


def write_table_policy(folder: pathlib.Path, policy: table_policy.TablePolicy) -> None:
    _write_arrays(folder / POLICY, table_policy.to_arrays(policy))


def write_checkpoint(folder: pathlib.Path, state: Any, seconds: float) -> None:
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.device_get(state))]
    _write_arrays(folder / CHECKPOINT, [np.float64(seconds), *leaves])


def read_checkpoint(folder: pathlib.Path, like: _State) -> tuple[_State, float]:
    """A state of the same shapes and types as `like`, and the seconds spent so far."""
    seconds, *leaves = read_arrays(folder / CHECKPOINT)
    wanted, tree = jax.tree.flatten(like)
    if [(x.shape, x.dtype) for x in leaves] != [(x.shape, x.dtype) for x in wanted]:
        raise ResultError(f"{folder / CHECKPOINT} is of another game or precision than {CONFIG} says")
    return jax.tree.unflatten(tree, [jax.numpy.asarray(leaf) for leaf in leaves]), float(seconds)


def _write_arrays(path: pathlib.Path, arrays: Sequence[Any]) -> None:
    with checked_fields.open_atomically(path) as file:
        np.savez(file, *arrays)


def encode_arrays(arrays: Sequence[Any]) -> bytes:
    """What `write_policy` writes."""
    file = io.BytesIO()
    np.savez(file, *arrays)
    return file.getvalue()


def read_arrays(path: pathlib.Path) -> list[Any]:
    """What `write_policy` and the other writers have put into an .npz file."""
    try:
        with np.load(path, allow_pickle=False) as found:
            return [found[f"arr_{n}"] for n in range(len(found.files))]
    except FileNotFoundError:
        raise ResultError(f"{path.parent} has no {path.name}: the run was stopped before it wrote one") from None
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ResultError(f"{path} cannot be read: {error}") from None
