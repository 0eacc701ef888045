"""The commands that are stopped: how each starts and resumes, and what it must have written at its end."""

import csv
import dataclasses
import hashlib
import json
import multiprocessing
import pathlib
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent import futures

import numpy as np

from gdlx.nets import checkpoints
from gdlx.propnet import games
from gdlx.propnet.common import errors
from gdlx.propnet.io import files

Outcome = Mapping[str, object]

_SWEEP = """games = ["kuhn_poker"]
iterations = 40
seeds = 2
[[algorithms]]
name = "dcfr"
alpha = [1.0, 1.5]
[[algorithms]]
name = "os-mccfr"
batch = 16
"""
_GAMES = 3_000  # of a match


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A command in a folder of its own.

    Attributes:
      start: arguments of the first call.
      resume: arguments that resume what an earlier call has left.
      is_resumable: whether a folder holds something to resume; otherwise the command starts again.
      outcome: what is compared with a run that was never stopped.
      prepare: writes the files that the command reads.
      codes: exit codes of runs that end by themselves.
      kept: what a stopped run has finished, such as games; whatever is stopped later must not lose it.
      fresh: start a new Python for every run.
      trials: how many one wants; more of what takes less than a second.
    """

    name: str
    start: tuple[str, ...]
    resume: tuple[str, ...]
    is_resumable: Callable[[pathlib.Path], bool]
    outcome: Callable[[pathlib.Path], Outcome]
    prepare: Callable[[pathlib.Path], object] = lambda folder: None
    codes: tuple[int, ...] = (0,)
    kept: Callable[[pathlib.Path], Collection[str]] = lambda folder: ()
    fresh: bool = False
    trials: int = 20


class Damaged(Exception):
    """A file that a stopped command has left and that cannot be read."""


def _has(path: str) -> Callable[[pathlib.Path], bool]:
    return lambda folder: (folder / path).exists()


def _digest(arrays: Iterable[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def _arrays(path: pathlib.Path, skip: int = 0) -> str:
    try:
        with np.load(path, allow_pickle=False) as file:
            return _digest(file[name] for name in file.files[skip:])
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise Damaged(f"{path.name}: {error}") from error


def rows_without_times(path: pathlib.Path) -> list[dict[str, str]]:
    """Rows of a .csv file without its column of seconds."""
    with open(path, newline="", encoding="utf-8") as file:
        return [{name: text for name, text in row.items() if name != "seconds"} for row in csv.DictReader(file)]


def _solved(folder: str, *, skip: int = 1) -> Callable[[pathlib.Path], Outcome]:
    def outcome(root: pathlib.Path) -> Outcome:
        return {
            "policy": _arrays(root / folder / "policy.npz"),
            "checkpoint": _arrays(root / folder / "checkpoint.npz", skip),  # the first array is the seconds
            "metrics": rows_without_times(root / folder / "metrics.csv"),
        }

    return outcome


def _solve(name: str, folder: str, every: int, iterations: int, *options: str, trials: int) -> Scenario:
    result = f"results/kuhn_poker/{folder}"
    stop = ("--checkpoint", "0", "--quiet", "--every", str(every), "--iterations", str(iterations))
    return Scenario(
        name,
        ("solve", "kuhn_poker", *options, *stop),
        ("solve", "--resume", result, *stop),
        _has(f"{result}/checkpoint.npz"),
        _solved(result),
        trials=trials,
    )


def _sweep_outcome(root: pathlib.Path) -> Outcome:
    folder = root / "results" / "grid"
    policies = {str(path.relative_to(folder)): _arrays(path) for path in sorted(folder.glob("cells/**/policy.npz"))}
    rows = sorted(json.dumps(row, sort_keys=True) for row in rows_without_times(folder / "sweep.csv"))
    return {"policies": policies, "rows": rows}


def _games(path: pathlib.Path) -> list[str]:
    """The games of a match, as text."""
    return [json.dumps(row) for row in rows_without_times(path)] if path.exists() else []


def _match_outcome(folder: str, games: int, *, is_timed: bool = False) -> Callable[[pathlib.Path], Outcome]:
    def outcome(root: pathlib.Path) -> Outcome:
        rows = rows_without_times(root / folder / "games.csv")
        numbers = [int(row["game"]) for row in rows]
        if numbers != list(range(games)):
            raise Damaged(f"games.csv has {len(numbers)} rows, {len(set(numbers))} different games of {games}")
        return {"games": numbers if is_timed else rows}

    return outcome


def _training_outcome(root: pathlib.Path) -> Outcome:
    folder = root / "results/kuhn_poker/network-deep-cfr"
    return {"metrics": rows_without_times(folder / "metrics.csv"), "state": _state_digest(folder)}


def _state_digest(folder: pathlib.Path) -> str:
    """The digest of the last state but for the seconds, read by a fork: this process must not start jax."""
    with futures.ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        try:
            return pool.submit(_read_state_digest, folder).result()
        except (errors.UserError, OSError, ValueError, futures.BrokenExecutor) as error:
            raise Damaged(f"state: {error}") from error


def _read_state_digest(folder: pathlib.Path) -> str:
    import jax

    saved = checkpoints.restore_training(folder, games.compile_game("kuhn_poker"))
    digest = hashlib.sha256(str(saved.iteration).encode())
    for leaf in jax.tree.leaves(saved.state):
        is_key = jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        digest.update(np.asarray(jax.random.key_data(leaf) if is_key else leaf).tobytes())
    return digest.hexdigest()


def _timed_outcome(folder: str) -> Callable[[pathlib.Path], Outcome]:
    """What a run that is stopped by the clock leaves can be read; its numbers depend on the clock."""

    def outcome(root: pathlib.Path) -> Outcome:
        solved = _solved(folder)(root)
        rows = rows_without_times(root / folder / "metrics.csv")
        iterations = [int(row["iterations"]) for row in rows]
        if iterations != sorted(set(iterations)):
            raise Damaged(f"metrics.csv has the iterations {iterations}")
        return {name: bool(value) for name, value in solved.items()}

    return outcome


def _compile_outcome(root: pathlib.Path) -> Outcome:
    return {"propnet": repr(files.load_propnet(root / "out.npz")), "arrays": _arrays(root / "out.npz")}


def _bench_outcome(root: pathlib.Path) -> Outcome:
    figures = json.loads((root / "figures.json").read_text())["figures"]
    return {"names": [figure["name"] for figure in figures]}


_TRAINING = ("--learner", "deep-cfr", "--checkpoint", "0", "--quiet")
_TIMED = "results/kuhn_poker/dcfr"


def _match(name: str, games: int, *agents: str, trials: int) -> Scenario:
    folder = f"results/kuhn_poker/match-{'-vs-'.join(agents).replace(':', '_')}"
    return Scenario(
        name,
        ("match", "kuhn_poker", *agents, "--games", str(games), "--quiet"),
        ("match", "--resume", folder, "--games", str(games), "--quiet"),
        _has(f"{folder}/games.csv"),
        _match_outcome(folder, games, is_timed=any("seconds" in agent for agent in agents)),
        kept=lambda root: _games(root / folder / "games.csv"),
        trials=trials,
    )


SCENARIOS = (
    _solve("solve", "dcfr", 5_000, 60_000, trials=80),
    _solve("sample", "os-mccfr", 100, 1_000, "--algorithm", "os-mccfr", "--batch", "512", trials=60),
    _solve("table", "os-mccfr", 100, 1_000, "--algorithm", "os-mccfr", "--table", "8", "--batch", "64", trials=20),
    Scenario(
        "sweep",
        ("sweep", "grid.toml", "--results", "results", "--quiet"),
        ("sweep", "grid.toml", "--results", "results", "--quiet"),
        lambda folder: True,
        _sweep_outcome,
        lambda folder: (folder / "grid.toml").write_text(_SWEEP),
        kept=lambda folder: [str(path) for path in folder.glob("results/grid/cells/*/[!.]*")],
        trials=60,
    ),
    Scenario(
        "train",
        ("train", "kuhn_poker", *_TRAINING, "--iterations", "3", "--set", "traversals=32", "--set", "steps=16"),
        (
            "train",
            "--resume",
            "results/kuhn_poker/network-deep-cfr",
            "--checkpoint",
            "0",
            "--quiet",
            "--iterations",
            "3",
        ),
        lambda folder: checkpoints.has_state(folder / "results/kuhn_poker/network-deep-cfr"),
        _training_outcome,
    ),
    _match("match", _GAMES, "random", "random", trials=80),
    _match("match with clocks", 40, "random", "uct:seconds=0.02", trials=20),
    Scenario(
        "solve for a time",
        ("solve", "kuhn_poker", "--checkpoint", "0", "--quiet", "--time", "0.5"),
        ("solve", "--resume", _TIMED, "--checkpoint", "0", "--quiet", "--time", "0.5"),
        _has(f"{_TIMED}/checkpoint.npz"),
        _timed_outcome(_TIMED),
        trials=40,
    ),
    Scenario(
        "compile",
        ("compile", "leduc_poker", "-o", "out.npz", "--quiet"),
        ("compile", "leduc_poker", "-o", "out.npz", "--quiet"),
        lambda folder: True,
        _compile_outcome,
        trials=80,
    ),
    Scenario(
        "bench",
        ("bench", "read", "-o", "figures.json", "--quiet"),
        ("bench", "read", "-o", "figures.json", "--quiet"),
        lambda folder: True,
        _bench_outcome,
        codes=(0, 1),  # 1: a figure misses its target, as on a busy machine
        fresh=True,  # as it is what it measures
        trials=10,
    ),
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
