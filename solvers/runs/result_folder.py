"""Result folders: config.json, metrics.csv, policy.npz, convergence.png, and checkpoint.npz to resume from; model.npz
with an opponent model.

Every file is written atomically: a run that is killed loses only the iterations since its last checkpoint.
"""

import contextlib
import csv
import dataclasses
import io
import itertools
import json
import math
import pathlib
import platform
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple, TypeVar

import jax
import numpy as np

import gdlx
from gdlx.envs import game_spec, payoffs
from gdlx.envs.trees import game_tree, unroll
from gdlx.propnet.common import atomic_files, bounded_files, errors
from gdlx.propnet.common.text import printable
from gdlx.propnet.io import array_files
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


_MAX_LISTED, _SHOWN = 100, 5  # result folders that are looked for, and named in a message
_RESTORE = "restore it from a copy, or write the result again"


@contextlib.contextmanager
def explain_damage(
    path: pathlib.Path, error_type: type[ResultError] = ResultError, hint: str = _RESTORE
) -> Iterator[None]:
    """Turns what a damaged file raises into an error of the given type that names the file and the fix.

    Errors of the system, such as a missing file, pass through.
    """
    try:
        yield
    except bounded_files.FileError as error:
        raise error_type(f"{error.file or path} cannot be read: {error.problem}; {error.hint}") from None
    except errors.UserError:
        raise
    except (AttributeError, IndexError, LookupError, OverflowError, RecursionError, TypeError, ValueError) as error:
        what = printable.printable(str(error) or type(error).__name__)[:200]
        raise error_type(f"{path} cannot be read: {what}; {hint}") from None


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
    together: int = 1  # runs that were computed together: the seconds of each are an equal share of theirs
    symmetries: bool = False  # whether symmetric information sets were left out of the tree

    @property
    def has_table(self) -> bool:
        """Whether `policy.npz` is a hash table. The digest is then that of the rules."""
        return self.algorithm.needs == "rules"

    def to_json(self) -> dict[str, Any]:
        """Returns the content of config.json."""
        return {
            "format": _FORMAT,
            "game": self.game._asdict(),
            "digest": self.digest,
            "algorithm": self.algorithm.name,
            "alternating": self.algorithm.alternating,
            "states": self.algorithm.on_states,
            # JSON has no infinities.
            "settings": {
                name: str(value) if isinstance(value, float) and math.isinf(value) else value
                for name, value in self.algorithm.settings._asdict().items()
            },
            "sampling": dataclasses.asdict(self.algorithm.sampling_config) if self.algorithm.is_sampled else None,
            "x64": self.x64,
            "modelled": None if self.opponent_model is None else self.opponent_model._asdict(),
            "together": self.together,
            "symmetries": self.symmetries,
            "versions": versions(),
        }


def versions() -> dict[str, str]:
    """Returns the versions of the packages that a result may depend on."""
    return {
        "gdlx": gdlx.__version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def folder_name(game: str) -> str:
    """Returns a folder name for a game.

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
    """Creates a new folder: results/leduc_poker/dcfr, then dcfr-2, dcfr-3, .."""
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


def create_for_solution(folder: pathlib.Path) -> None:
    """Creates a folder for a solution that is saved as a whole; it may exist with an earlier one.

    Raises:
      ResultError: it holds anything else.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise ResultError(f"{folder} is not a folder; name another one") from None
    others = sorted({path.name for path in folder.iterdir()} - {CONFIG, METRICS, POLICY})
    if others:
        listed = ", ".join(others[:3]) + (", .." if len(others) > 3 else "")
        raise ResultError(f"{folder} holds other files ({listed}); save the solution in a folder of its own")


def discard(folder: pathlib.Path) -> None:
    """Removes a new folder in which nothing was solved."""
    for name in (CONFIG, METRICS, MODEL, LOCK):
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
        config = bounded_files.read_json(folder / CONFIG)
        return isinstance(config, dict) and config.get("kind") == TRAINING
    except (OSError, bounded_files.FileError):
        return False


def write_config(folder: pathlib.Path, config: Config) -> None:
    atomic_files.write_atomically(folder / CONFIG, encode_config(config))


def encode_config(config: Config) -> bytes:
    return _encode_json(config.to_json())


def write_config_json(folder: pathlib.Path, content: Mapping[str, Any]) -> None:
    """Writes a config.json with this content, as `Config.to_json` returns it."""
    atomic_files.write_atomically(folder / CONFIG, _encode_json(content))


def _encode_json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(dict(content), indent=2, allow_nan=False).encode()


def read_config(folder: pathlib.Path) -> Config:
    """Reads config.json of a result folder.

    Raises:
      ResultError: the folder does not hold a result, or the file is damaged.
    """
    try:
        with explain_damage(folder / CONFIG):
            return _parse_config(folder, read_config_json(folder))
    except (FileNotFoundError, NotADirectoryError):
        raise ResultError(f"{folder} holds no result: {_say_why_not(folder)}") from None


def _say_why_not(folder: pathlib.Path) -> str:
    """Says why a path that has no config.json holds no result, and which path may have been meant."""
    if not folder.exists():
        return "it does not exist; `gdlx results` lists those in the folder results"
    if not folder.is_dir():
        if folder.suffix.lower() in (".csv", ".json", ".npz"):
            return f"it is a file; if it is a policy, name its game: gdlx evaluate GAME --policy {folder}"
        return "it is a file; name the folder that `gdlx solve` wrote"
    # Folders of matches have no policy.
    within = sorted(path.parent for path in itertools.islice(folder.glob(f"*/{POLICY}"), _MAX_LISTED))
    within = within or sorted(path.parent for path in itertools.islice(folder.glob(f"*/*/{POLICY}"), _MAX_LISTED))
    if not within:
        return f"it has no {CONFIG}"
    listed = ", ".join(map(str, within[:_SHOWN])) + (" .." if len(within) > _SHOWN else "")
    return f"name one of its subfolders: {listed}"


def read_config_json(folder: pathlib.Path) -> dict[str, Any]:
    """Reads config.json of a folder, unchecked but for being an object."""
    saved = bounded_files.read_json(folder / CONFIG)
    if not isinstance(saved, dict):
        raise bounded_files.FileError("it is not an object", _RESTORE, str(folder / CONFIG))
    return saved


def parse_game(saved: Any) -> game_spec.GameSpec:
    """Parses the game of a config.json; raises ValueError or TypeError if a field has another type than it needs."""
    game = game_spec.GameSpec(**saved)
    if not isinstance(game.spec, str) or not game.spec or "\0" in game.spec:
        raise ValueError("its game is not a name")
    if game.payoff not in (*typing.get_args(payoffs.PayoffMode), None):
        raise ValueError("it has an unknown payoff")
    if game.goal_conflict not in typing.get_args(unroll.GoalConflictMode) or game.gdl not in (None, 1, 2):
        raise ValueError("it has an unknown goal_conflict or gdl")
    if not isinstance(game.fold_case, bool):
        raise ValueError("its fold_case is neither true nor false")
    return game


def _parse_config(folder: pathlib.Path, saved: dict[str, Any]) -> Config:
    if "agents" in saved:
        raise ResultError(f"{folder} holds games between agents, not a solution")
    if saved.get("kind") == TRAINING:
        raise ResultError(
            f"{folder} holds networks of `gdlx train`, not a solution; measure them with `gdlx evaluate {folder}`, "
            f"resume their training with `gdlx train`, let them play as network:{folder}"
        )
    if saved["format"] != _FORMAT:
        raise ResultError(f"{folder} has the format of another version of gdlx; solve again")
    settings = {name: float(value) if isinstance(value, str) else value for name, value in saved["settings"].items()}
    sampling = saved["sampling"]
    algorithm = dataclasses.replace(
        algorithms.find(saved["algorithm"]),
        settings=regret_matching.Settings(**settings),
        alternating=bool(saved["alternating"]),
        sampling=None if sampling is None else algorithms.SamplingConfig(**sampling),
        on_states=bool(saved.get("states", False)),
    )
    model = saved.get("modelled")
    opponent_model = (
        None if model is None else OpponentModelConfig(str(model["player"]), float(model["p"]), str(model["model"]))
    )
    together = int(saved.get("together", 1))
    return Config(
        parse_game(saved["game"]),
        str(saved["digest"]),
        algorithm,
        bool(saved["x64"]),
        opponent_model,
        together,
        bool(saved.get("symmetries", False)),
    )


def write_metrics(folder: pathlib.Path, names: Sequence[str], metrics: Sequence[driver.Metrics]) -> None:
    atomic_files.write_atomically(folder / METRICS, encode_metrics(names, metrics))


def encode_metrics(names: Sequence[str], metrics: Sequence[driver.Metrics]) -> bytes:
    """Returns the content of metrics.csv, for players of these names."""
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
    """Reads metrics.csv of a result folder; [] if there is none."""
    try:
        with explain_damage(folder / METRICS):
            head, *rows = bounded_files.read_csv(folder / METRICS) or [[]]
            first = first_player_column(head)
            return [_read_row(row, first, players) for row in rows]
    except FileNotFoundError:
        return []


def first_player_column(head: Sequence[str]) -> int:
    """Returns the first column of players in metrics.csv, whose older versions have no column for NashConv.

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
    """Reads a state of the same shapes and types as `like`, and the seconds spent so far."""
    arrays = read_arrays(folder / CHECKPOINT)
    if not arrays or arrays[0].shape != ():
        raise ResultError(f"{folder / CHECKPOINT} is not a checkpoint; remove it and solve again")
    seconds, *leaves = arrays
    expected, tree = jax.tree.flatten(like)
    if [(x.shape, x.dtype) for x in leaves] != [(x.shape, x.dtype) for x in expected]:
        raise ResultError(f"{folder / CHECKPOINT} belongs to another game or precision than {CONFIG} says")
    return jax.tree.unflatten(tree, [jax.numpy.asarray(leaf) for leaf in leaves]), float(seconds)


def _write_arrays(path: pathlib.Path, arrays: Sequence[Any]) -> None:
    with atomic_files.open_atomically(path) as file:
        np.savez(file, *arrays)


def encode_arrays(arrays: Sequence[Any]) -> bytes:
    """Returns the bytes of an .npz file, as `write_policy` writes it."""
    file = io.BytesIO()
    np.savez(file, *arrays)
    return file.getvalue()


def read_arrays(path: pathlib.Path) -> list[Any]:
    """Reads the arrays of an .npz file of a result folder.

    Raises:
      ResultError: there is no such file, or it is damaged.
    """
    try:
        with explain_damage(path):
            arrays = array_files.read_arrays(path)
            return [arrays[f"arr_{n}"] for n in range(len(arrays))]
    except (FileNotFoundError, NotADirectoryError):
        can_resume = path.name != CHECKPOINT and (path.parent / CHECKPOINT).is_file()
        advice = f"; continue it from its checkpoint with `gdlx solve --resume {path.parent}`" if can_resume else ""
        raise ResultError(
            f"{path.parent} has no {path.name}: the run was stopped before it wrote one{advice}"
        ) from None
    except OSError as error:
        raise ResultError(f"{path} cannot be read: {error.strerror}") from None
