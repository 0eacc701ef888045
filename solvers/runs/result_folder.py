"""Result folders: config.json, metrics.csv, policy.npz, convergence.png, and checkpoint.npz to resume from; model.npz
with an opponent model.

Every file is written atomically: a run that is killed loses only the iterations since its last checkpoint.
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
from gdlx.propnet.common import atomic_files, errors
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
# Columns of metrics.csv before those of the players.
_COMMON_COLUMNS, _NASH_CONV = ("iterations", "seconds", "exploitability", "samples", "load"), "nash_conv"
TRAINING = "training"  # the `kind` in config.json of trained networks
_State = TypeVar("_State")


class ResultError(errors.UserError, ValueError):
    """A folder that does not hold a result, or not the one that is needed."""


class OpponentModelConfig(NamedTuple):
    """The player that follows the policy in `model.npz` with probability p."""

    player: str
    p: float
    model: str  # digest


@dataclasses.dataclass(frozen=True)
class Config:
    """What produced a result: enough to reproduce it and to resume the run."""

    game: game_spec.GameSpec
    digest: str  # of the unrolled game, or of its rules
    algorithm: algorithms.Algorithm
    x64: bool
    opponent_model: OpponentModelConfig | None = None

    @property
    def has_table(self) -> bool:
        """Whether `policy.npz` is a hash table. The digest is then that of the rules."""
        return self.algorithm.needs == "rules"

    def to_json(self) -> dict[str, Any]:
        """Return the content of config.json."""
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
    """Return the versions of the packages that a result may depend on."""
    return {
        "gdlx": gdlx.__version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def folder_name(game: str) -> str:
    """Return a folder name for a game.

    >>> folder_name("goofspiel:cards=4")
    'goofspiel_cards=4'
    >>> folder_name("smuggler.gdl")
    'smuggler'
    """
    name = pathlib.PurePath(game).stem if is_rulesheet_path(game) else game
    return re.sub(r"[^\w.+=,-]+", "_", name).strip("_") or "game"


def is_rulesheet_path(game: str) -> bool:
    """Whether a game is specified by the path of a rulesheet, not by a library name."""
    return "/" in game or game.endswith((".gdl", ".kif"))


def create_folder(root: pathlib.Path, game: str, algorithm: str) -> pathlib.Path:
    """Create a new folder: results/leduc_poker/dcfr, then dcfr-2, dcfr-3, .."""
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
    with contextlib.suppress(OSError):  # it holds other files
        folder.rmdir()


def lock(folder: pathlib.Path) -> IO[bytes] | None:
    """Lock a folder for writing, until the returned file is closed or the process ends.

    Returns:
      The open lock file; None where the system has no locks.

    Raises:
      ResultError: another process holds the lock.
    """
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
    """Whether a folder holds trained networks."""
    try:
        config = json.loads(checked_fields.read_bounded(folder / CONFIG, checked_fields.MAX_BYTES))
        return isinstance(config, dict) and config.get("kind") == TRAINING
    except (OSError, ValueError, RecursionError):
        return False


def write_config(folder: pathlib.Path, config: Config) -> None:
    atomic_files.write_atomically(folder / CONFIG, encode_config(config))


def encode_config(config: Config) -> bytes:
    return json.dumps(config.to_json(), indent=2, allow_nan=False).encode()


def read_config(folder: pathlib.Path) -> Config:
    """Read config.json of a result folder.

    Raises:
      ResultError: the folder does not hold a result, or the file is damaged.
    """
    try:
        with open(folder / CONFIG, encoding="utf-8") as file:
            saved = json.load(file)
        if "agents" in saved:
            raise ResultError(f"{folder} holds games between agents, not a solution")
        if saved["format"] != _FORMAT:
            raise ResultError(f"{folder} has the format of another version of gdlx; solve again")
        settings = {
            name: float(value) if isinstance(value, str) else value for name, value in saved["settings"].items()
        }
        sampling = saved["sampling"]
        algorithm = dataclasses.replace(
            algorithms.find(saved["algorithm"]),
            settings=regret_matching.Settings(**settings),
            alternating=bool(saved["alternating"]),
            sampling=None if sampling is None else algorithms.SamplingConfig(**sampling),
        )
        model = saved.get("modelled")
        opponent_model = (
            None if model is None else OpponentModelConfig(str(model["player"]), float(model["p"]), str(model["model"]))
        )
        return Config(
            game_spec.GameSpec(**saved["game"]), str(saved["digest"]), algorithm, bool(saved["x64"]), opponent_model
        )
    except FileNotFoundError:
        raise ResultError(f"{folder} holds no result: it has no {CONFIG}") from None
    except (AttributeError, KeyError, TypeError, ValueError, UnicodeDecodeError) as error:
        if isinstance(error, errors.UserError):
            raise
        raise ResultError(f"{folder / CONFIG} cannot be read: {error}") from None


def write_metrics(folder: pathlib.Path, names: Sequence[str], metrics: Sequence[driver.Metrics]) -> None:
    atomic_files.write_atomically(folder / METRICS, encode_metrics(names, metrics))


def encode_metrics(names: Sequence[str], metrics: Sequence[driver.Metrics]) -> bytes:
    """Return the content of metrics.csv, for players of these names."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [f"{metric}_{name}" for metric in ("value", "improvement", "value_error") for name in names]
    writer.writerow([*_COMMON_COLUMNS, _NASH_CONV, *columns])
    for row in metrics:
        common = [row.exploitability, row.samples, row.load, row.nash_conv]
        per_player = [
            number
            for numbers in (row.value, row.improvements, row.value_error)
            for number in (numbers or (None,) * len(names))  # unknown numbers are blank
        ]
        cells = ["" if number is None else repr(number) for number in (*common, *per_player)]
        writer.writerow([row.iterations, f"{row.seconds:.9g}", *cells])
    return text.getvalue().encode()


def read_metrics(folder: pathlib.Path, players: int) -> list[driver.Metrics]:
    """Read metrics.csv of a result folder; [] if there is none."""
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
    """Return the first column of players in metrics.csv, whose older versions have no column for NashConv.

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
    """Read a state of the same shapes and types as `like`, and the seconds spent so far."""
    seconds, *leaves = read_arrays(folder / CHECKPOINT)
    expected, tree = jax.tree.flatten(like)
    if [(x.shape, x.dtype) for x in leaves] != [(x.shape, x.dtype) for x in expected]:
        raise ResultError(f"{folder / CHECKPOINT} belongs to another game or precision than {CONFIG} says")
    return jax.tree.unflatten(tree, [jax.numpy.asarray(leaf) for leaf in leaves]), float(seconds)


def _write_arrays(path: pathlib.Path, arrays: Sequence[Any]) -> None:
    with atomic_files.open_atomically(path) as file:
        np.savez(file, *arrays)


def encode_arrays(arrays: Sequence[Any]) -> bytes:
    """Return the bytes of an .npz file, as `write_policy` writes it."""
    file = io.BytesIO()
    np.savez(file, *arrays)
    return file.getvalue()


def read_arrays(path: pathlib.Path) -> list[Any]:
    """Read the arrays of an .npz file of a result folder.

    Raises:
      ResultError: there is no such file, or it is damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return [arrays[f"arr_{n}"] for n in range(len(arrays.files))]
    except FileNotFoundError:
        raise ResultError(f"{path.parent} has no {path.name}: the run was stopped before it wrote one") from None
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ResultError(f"{path} cannot be read: {error}") from None
