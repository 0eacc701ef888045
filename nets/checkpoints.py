"""Training folders: config.json, metrics.csv, and the last two states of the learner, by orbax, under state/.

Every file is written atomically. Beside the folder of a state is a file with the digests of its files.
"""

import contextlib
import csv
import functools
import hashlib
import io
import json
import math
import os
import pathlib
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs import game_facts, game_spec
from gdlx.nets import former_checkpoints
from gdlx.nets.learners import learner_registry, protocol
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import atomic_files, bounded_files, errors
from gdlx.solvers import tasks
from gdlx.solvers.runs import result_folder

STATES = "state"
_DIGEST = "digest"
ANY_NODES = sys.maxsize  # joint actions in a step: a game that was unrolled for training can be unrolled again
_FORMAT = 1
_MOST_FORMER = 8  # times the elements of a state: more is no state that an earlier version wrote
_MAX_STATES = 2  # that are kept


class CheckpointError(result_folder.ResultError):
    """A folder without a training, with a damaged one, or with one of another game."""


def write_config(folder: pathlib.Path, config: learner_registry.TrainConfig, digest: str, seed: int) -> None:
    """Writes config.json. `digest` is that of the rules."""
    fields = {"format": _FORMAT, "kind": result_folder.TRAINING, **config.to_json(), "digest": digest, "seed": seed}
    text = json.dumps(fields | {"versions": result_folder.versions()}, indent=2, allow_nan=False)
    atomic_files.write_atomically(folder / result_folder.CONFIG, text.encode())


def read_train_config(folder: pathlib.Path) -> tuple[learner_registry.TrainConfig, str, int]:
    """Returns the config, the digest of the rules, and the seed."""
    config = _config(folder)
    with result_folder.explain_damage(folder / result_folder.CONFIG, CheckpointError):
        if config.get("kind") != result_folder.TRAINING:
            raise CheckpointError(f"{folder} holds no networks; train some with `gdlx train`")
        if config["format"] != _FORMAT:
            raise CheckpointError(f"{folder} has the format of another version of gdlx; train again")
        try:
            settings = learner_registry.config_from_json(config)
        except errors.UserError as error:
            raise CheckpointError(f"{folder / result_folder.CONFIG} cannot be read: {error}") from None
        return settings, str(config["digest"]), int(config["seed"])


def _config(folder: pathlib.Path) -> dict[str, Any]:
    try:
        with result_folder.explain_damage(folder / result_folder.CONFIG, CheckpointError):
            return result_folder.read_config_json(folder)
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(f"{folder} holds no networks: it has no {result_folder.CONFIG}") from None


class RestoredTraining(NamedTuple):
    learner: protocol.Learner
    state: Any
    iteration: int
    seconds: float  # of training


def restore_training(
    folder: pathlib.Path, propnet: propnet.PropNet, task: tasks.TreeTask | None = None, *, payoff: str | None = None
) -> RestoredTraining:
    """Restores a learner and its last state.

    Args:
      folder: of the training.
      propnet: the compiled game.
      task: the unrolled game, if the caller has it. It is unrolled here if the learner needs it.
      payoff: the payoff that the training must have used; None: any.

    Returns:
      The learner, its state, and the iterations and seconds of training.

    Raises:
      CheckpointError: there is no training, it is damaged, or it was for other rules or another payoff.
    """
    config, digest, seed = read_train_config(folder)
    if payoff is not None and payoff != config.game.payoff:
        raise CheckpointError(f"{folder} was trained with `payoff={config.game.payoff!r}`; use it here too")
    if digest != game_facts.probe(propnet).digest:
        raise CheckpointError(
            f"{folder} was trained for {config.game.spec}, with other rules than {propnet.name} has now"
        )
    if task is None and learner_registry.ENTRIES[config.learner].needs_tree:
        tree = game_spec.unroll_game(config.game, propnet=propnet, max_nodes=ANY_NODES, keep_edges=True)
        task = tasks.make_tree_task(config.game, tree)
    learner = learner_registry.make_learner(config, propnet, task)
    return RestoredTraining(learner, *read_learner_state(folder, learner, seed))


def read_learner_state(folder: pathlib.Path, learner: protocol.Learner, seed: int) -> tuple[Any, int, float]:
    """Reads the last state of a learner, as `read_state`; one that an earlier version wrote, too."""
    init = functools.partial(learner.init, jax.random.key(seed))
    return read_state(folder, jax.eval_shape(init), init)


def write_metrics(folder: pathlib.Path, rows: Sequence[Mapping[str, float]]) -> None:
    """Writes metrics.csv; rows may lack columns of others."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    atomic_files.write_atomically(folder / result_folder.METRICS, text.getvalue().encode())


def read_metrics(folder: pathlib.Path) -> list[dict[str, float]]:
    path = folder / result_folder.METRICS
    try:
        with result_folder.explain_damage(path, CheckpointError):
            head, *lines = bounded_files.read_csv(path) or [[]]
            if any(len(line) != len(head) for line in lines):
                raise ValueError("a row is incomplete")
            rows = [
                {_column(name): _number(text) for name, text in zip(head, line, strict=True) if text} for line in lines
            ]
            if not all("iteration" in row for row in rows):
                raise ValueError("a row has no iteration")
            return rows
    except FileNotFoundError:
        return []


def _number(text: str) -> float:
    """Integers stay integers, so that a table which is read and written again is the same.

    >>> _number("12"), _number("12.0")
    (12, 12.0)
    """
    return int(text) if text.isdecimal() else float(text)


def _column(name: str) -> str:
    """The present name of a column: older files say gain for improvement.

    >>> _column("gain_white"), _column("loss")
    ('improvement_white', 'loss')
    """
    return f"improvement_{name.removeprefix('gain_')}" if name.startswith("gain_") else name


def write_state(folder: pathlib.Path, iteration: int, seconds: float, state: Any) -> None:
    """Writes the state of an iteration, and removes all but the last two."""
    leaves = _leaves(state)
    items = {"seconds": np.float64(seconds), "leaves": leaves, _DIGEST: _digest(iteration, seconds, leaves)}
    path = (folder / STATES / str(iteration)).resolve()
    _digests_path(path).unlink(missing_ok=True)  # of an earlier state of this iteration
    with _checkpointer() as orbax:
        orbax.save(path, items, force=True)
        orbax.wait_until_finished()
    atomic_files.write_atomically(_digests_path(path), json.dumps(_file_digests(path), indent=1).encode())
    for old in _iterations(folder)[:-_MAX_STATES]:
        _digests_path(folder / STATES / str(old)).unlink(missing_ok=True)
        shutil.rmtree(folder / STATES / str(old), ignore_errors=True)


def read_state(folder: pathlib.Path, like: Any, init: Callable[[], Any] | None = None) -> tuple[Any, int, float]:
    """Reads the last state. It has the shapes of `like`, which may be abstract.

    Args:
      folder: of the training.
      like: a state of the learner.
      init: makes the state before the first iteration. Needed if an earlier version wrote the state: its games in
        progress then start again.

    Returns:
      The state, its iteration, and the seconds of training until then.
    """
    iterations = _iterations(folder)
    if not iterations:
        raise CheckpointError(f"{folder} has no networks yet: training was stopped before its first checkpoint")
    iteration, expected = iterations[-1], _kinds(_leaves(like))
    path = (folder / STATES / str(iteration)).resolve()
    # Restored to one device, whatever the number of devices that wrote it.
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    with _checkpointer() as orbax:
        try:
            _require_intact(path)
            metadata = orbax.metadata(path).item_metadata
            stored = _kinds(metadata["leaves"])
            matched: Mapping[str, str] | None = {name: name for name in stored}
            if stored != expected:
                is_former = init is not None and _elements(stored) <= _MOST_FORMER * _elements(expected)
                matched = former_checkpoints.match_leaves(stored, expected, like) if is_former else None
            if matched is None:
                raise CheckpointError(
                    f"{path} has networks of other shapes than {result_folder.CONFIG} says: was that file changed?"
                )
            leaves = {
                name: jax.ShapeDtypeStruct(shape, dtype, sharding=here)  # type: ignore[no-untyped-call]
                for name, (shape, dtype) in stored.items()
            }
            target: dict[str, Any] = {"seconds": np.float64(0), "leaves": leaves}
            if _DIGEST in metadata:  # older states have none
                target[_DIGEST] = np.zeros(hashlib.sha256().digest_size, np.uint8)
            restored = orbax.restore(path, target)
            _require_digest(restored, iteration)
        except CheckpointError:
            raise
        except Exception as error:  # whatever orbax finds wrong in damaged files
            has_other = len(iterations) > 1
            advice = "remove it to resume from the previous one" if has_other else "there is no other; train again"
            raise CheckpointError(f"{path} is damaged and cannot be read; {advice}") from error
    start = like if init is None or stored == expected else init()
    state = [
        _restore_leaf(leaf, restored["leaves"][matched[str(number)]]) if str(number) in matched else _start_leaf(leaf)
        for number, leaf in enumerate(jax.tree.leaves(start))
    ]
    return jax.tree.unflatten(jax.tree.structure(like), state), int(iteration), float(restored["seconds"])


def _digests_path(state: pathlib.Path) -> pathlib.Path:
    return state.with_name(f"{state.name}.json")


def _file_sizes(state: pathlib.Path) -> dict[str, int]:
    """The size of each file of a state; only regular files are allowed."""
    sizes = {}
    for path in sorted(state.rglob("*")):
        if not path.is_dir():
            with bounded_files.open_regular(path) as file:
                sizes[path.relative_to(state).as_posix()] = os.fstat(file.fileno()).st_size
    return sizes


def _file_digests(state: pathlib.Path) -> dict[str, list[Any]]:
    """The size and the digest of each file of a state."""
    digests: dict[str, list[Any]] = {}
    for name, size in _file_sizes(state).items():
        with bounded_files.open_regular(state / name) as file:
            digests[name] = [size, hashlib.file_digest(file, "sha256").hexdigest()]
    return digests


def _require_intact(state: pathlib.Path) -> None:
    """Compares files before orbax reads them: about damaged ones it prints tracebacks, and it waits for pipes."""
    sizes = _file_sizes(state)
    try:
        listed = bounded_files.read_json(_digests_path(state))
    except FileNotFoundError:  # an older state, or one whose writer was killed before it wrote the digests
        return
    # The sizes first: a file may have become too large to read all of it.
    if sizes != {name: entry[0] for name, entry in listed.items()} or _file_digests(state) != listed:
        raise ValueError("its files have changed")


def _require_digest(restored: Mapping[str, Any], iteration: int) -> None:
    if _DIGEST in restored:
        digest = _digest(iteration, float(restored["seconds"]), restored["leaves"])
        if not np.array_equal(np.asarray(restored[_DIGEST]), digest):
            raise ValueError("its digest differs")


def _digest(iteration: int, seconds: float, leaves: Mapping[str, Any]) -> npt.NDArray[np.uint8]:
    """The digest of a state: orbax notices only some of the changes in its files."""
    digest = hashlib.sha256(b"%d %s" % (iteration, float(seconds).hex().encode()))
    for name in sorted(leaves):
        array = np.asarray(jax.device_get(leaves[name]))
        digest.update(f"\0{name} {array.dtype} {array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(digest.digest(), np.uint8)


def _start_leaf(leaf: Any) -> Any:
    """An array that was not kept: empty, or of games that start again."""
    return jnp.zeros(leaf.shape, leaf.dtype) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf


def _restore_leaf(like: Any, leaf: Any) -> Any:
    numbers = jnp.asarray(np.asarray(leaf))  # through the host, so that programs on many devices can take it
    return jax.random.wrap_key_data(numbers) if _is_key(like) else numbers


def _kinds(leaves: Mapping[str, Any]) -> dict[str, Any]:
    return {name: (tuple(leaf.shape), np.dtype(leaf.dtype)) for name, leaf in leaves.items()}


def _elements(kinds: Mapping[str, Any]) -> int:
    return sum(math.prod(shape) for shape, _ in kinds.values())


def has_state(folder: pathlib.Path) -> bool:
    return bool(_iterations(folder))


def last_files(folder: pathlib.Path) -> list[pathlib.Path]:
    """The files of the last state, sorted."""
    folders = [folder / STATES / str(iteration) for iteration in _iterations(folder)[-1:]]
    return sorted(path for last in folders for path in last.rglob("*") if path.is_file())


def _is_key(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _leaves(state: Any) -> dict[str, Any]:
    """Leaves by index, as names of parameters may change while their order does not.

    Empty arrays, such as the chance actions of a game without chance, cannot be written and are left out.
    """
    leaves = [
        jax.eval_shape(jax.random.key_data, x)
        if _is_key(x) and isinstance(x, jax.ShapeDtypeStruct)
        else (jax.random.key_data(x) if _is_key(x) else x)
        for x in jax.tree.leaves(state)
    ]
    return {str(number): leaf for number, leaf in enumerate(leaves) if leaf.size}


def _iterations(folder: pathlib.Path) -> list[int]:
    """Iterations whose states were written; those of interrupted writes have other names."""
    try:
        return sorted(int(path.name) for path in (folder / STATES).iterdir() if path.name.isdecimal())
    except FileNotFoundError:
        return []


@contextlib.contextmanager
def _checkpointer() -> Iterator[Any]:
    """An orbax checkpointer. orbax is imported late, as that takes a second, and its log messages are silenced."""
    import logging

    logging.getLogger("absl").setLevel(logging.CRITICAL)
    import orbax.checkpoint

    with orbax.checkpoint.StandardCheckpointer() as checkpointer:
        yield checkpointer
