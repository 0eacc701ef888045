"""Folders of training: config.json, metrics.csv, and under state/ the last states of the learner, by orbax.

Each is written whole or not at all; of the states the last two are kept.
"""

import csv
import io
import json
import pathlib
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs import game_facts, game_spec
from gdlx.nets.learners import learner_registry, protocol
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import errors
from gdlx.propnet.io import checked_fields
from gdlx.solvers import tasks
from gdlx.solvers.runs import result_folder

STATES = "state"
ANY_NODES = sys.maxsize  # joint moves in a step: what was unrolled to be trained can be unrolled again
_FORMAT, _KEPT = 1, 2


class CheckpointError(result_folder.ResultError):
    """A folder that holds no training, or one of something else."""


def write_config(folder: pathlib.Path, recipe: learner_registry.TrainConfig, digest: str, seed: int) -> None:
    """`digest` is of the rules."""
    whole = {"format": _FORMAT, "kind": result_folder.TRAINING, **recipe.to_json(), "digest": digest, "seed": seed}
    text = json.dumps(whole | {"versions": result_folder.versions()}, indent=2, allow_nan=False)
    checked_fields.write_atomically(folder / result_folder.CONFIG, text.encode())


def read_train_config(folder: pathlib.Path) -> tuple[learner_registry.TrainConfig, str, int]:
    """With the digest of the rules, and the seed."""
    found = _config(folder)
    try:
        if found.get("kind") != result_folder.TRAINING:
            raise CheckpointError(f"{folder} holds no networks; train some with `gdlx train`")
        if found["format"] != _FORMAT:
            raise CheckpointError(f"{folder} has the format of another version of gdlx; train anew")
        return learner_registry.config_from_json(found), str(found["digest"]), int(found["seed"])
    except CheckpointError:
        raise
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder / result_folder.CONFIG} cannot be read: {error}") from None


def _config(folder: pathlib.Path) -> dict[str, Any]:
    path = folder / result_folder.CONFIG
    try:
        found = json.loads(checked_fields.read_bounded(path, checked_fields.MAX_BYTES))
        if not isinstance(found, dict):
            raise ValueError("it is no object")
        return found
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(f"{folder} holds no networks: it has no {result_folder.CONFIG}") from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from None


class RestoredTraining(NamedTuple):
    learner: protocol.Learner
    state: Any
    iteration: int
    seconds: float  # of training


def restore_training(
    folder: pathlib.Path, net: propnet.PropNet, task: tasks.TreeTask | None = None, *, payoff: str | None = None
) -> RestoredTraining:
    """What was trained, as it was left. `task` is the game unrolled, if that is at hand; `payoff` is what payoffs must
    have been made of, if that matters."""
    recipe, digest, seed = read_train_config(folder)
    if payoff is not None and payoff != recipe.game.payoff:
        raise CheckpointError(f"{folder} was trained with `payoff={recipe.game.payoff!r}`; take that here too")
    if digest != game_facts.probe(net).digest:
        raise CheckpointError(
            f"{folder} was trained for {recipe.game.spec}, and not with the rules that {net.name} has here and now"
        )
    if task is None and learner_registry.ENTRIES[recipe.learner].needs_tree:
        tree = game_spec.unroll_game(recipe.game, net=net, max_nodes=ANY_NODES, keep_edges=True)
        task = tasks.make_tree_task(recipe.game, tree)
    learner = learner_registry.make_learner(recipe, net, task)
    return RestoredTraining(learner, *read_state(folder, jax.eval_shape(learner.init, jax.random.key(seed))))


def write_metrics(folder: pathlib.Path, rows: Sequence[Mapping[str, float]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    checked_fields.write_atomically(folder / result_folder.METRICS, text.getvalue().encode())


def read_metrics(folder: pathlib.Path) -> list[dict[str, float]]:
    path = folder / result_folder.METRICS
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = [{_column(name): float(text) for name, text in row.items() if text} for row in csv.DictReader(file)]
        if not all("iteration" in row for row in rows):
            raise ValueError("a row has no iteration")
        return rows
    except FileNotFoundError:
        return []
    except (AttributeError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from None


def _column(name: str) -> str:
    """Older files say gain.

    >>> _column("gain_white"), _column("loss")
    ('improvement_white', 'loss')
    """
    return f"improvement_{name.removeprefix('gain_')}" if name.startswith("gain_") else name


def write_state(folder: pathlib.Path, iteration: int, seconds: float, state: Any) -> None:
    whole = {"seconds": np.float64(seconds), "leaves": _leaves(state)}
    with _checkpointer() as orbax:
        orbax.save((folder / STATES / str(iteration)).resolve(), whole, force=True)
        orbax.wait_until_finished()
    for old in _iterations(folder)[:-_KEPT]:
        shutil.rmtree(folder / STATES / str(old), ignore_errors=True)


def read_state(folder: pathlib.Path, like: Any) -> tuple[Any, int, float]:
    """A state of the shapes of `like`, which may be abstract, with its iteration and the seconds until then."""
    written = _iterations(folder)
    if not written:
        raise CheckpointError(f"{folder} has no networks yet: training was stopped before its first checkpoint")
    iteration, shapes = written[-1], _leaves(like)
    path = (folder / STATES / str(iteration)).resolve()
    # However many devices it was written from, it is read to one.
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    leaves = {
        name: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=here)  # type: ignore[no-untyped-call]
        for name, x in shapes.items()
    }
    wanted = {"seconds": np.float64(0), "leaves": leaves}
    with _checkpointer() as orbax:
        try:
            told = orbax.metadata(path).item_metadata
            if _kinds(told["leaves"]) == _kinds(shapes):
                found = orbax.restore(path, wanted)
            else:
                raise CheckpointError(
                    f"{path} has networks of other shapes than {result_folder.CONFIG} says: was that file changed?"
                )
        except errors.UserError:
            raise
        except Exception as error:  # whatever orbax finds wrong in damaged files
            advice = "remove it to go on from the one before" if len(written) > 1 else "there is no other; train anew"
            raise CheckpointError(f"{path} is damaged and cannot be read; {advice}") from error
    state = [_restore_leaf(old, found["leaves"].get(str(number))) for number, old in enumerate(jax.tree.leaves(like))]
    return jax.tree.unflatten(jax.tree.structure(like), state), int(iteration), float(found["seconds"])


def _restore_leaf(like: Any, found: Any) -> Any:
    if found is None:
        return jnp.zeros(like.shape, like.dtype)
    numbers = jnp.asarray(np.asarray(found))  # by way of the host, so that programs of many devices may take it
    return jax.random.wrap_key_data(numbers) if _is_key(like) else numbers


def _kinds(leaves: Mapping[str, Any]) -> dict[str, Any]:
    return {name: (tuple(leaf.shape), np.dtype(leaf.dtype)) for name, leaf in leaves.items()}


def has_state(folder: pathlib.Path) -> bool:
    return bool(_iterations(folder))


def last_files(folder: pathlib.Path) -> list[pathlib.Path]:
    """Of the last state, in one order."""
    found = [folder / STATES / str(iteration) for iteration in _iterations(folder)[-1:]]
    return sorted(path for last in found for path in last.rglob("*") if path.is_file())


def _is_key(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _leaves(state: Any) -> dict[str, Any]:
    """By number: what trees of parameters are called may change, their order does not. Nothing can be written of arrays
    without numbers, such as moves of chance in a game that has none; they are left out."""
    leaves = [
        jax.eval_shape(jax.random.key_data, x)
        if _is_key(x) and isinstance(x, jax.ShapeDtypeStruct)
        else (jax.random.key_data(x) if _is_key(x) else x)
        for x in jax.tree.leaves(state)
    ]
    return {str(number): leaf for number, leaf in enumerate(leaves) if leaf.size}


def _iterations(folder: pathlib.Path) -> list[int]:
    """Of the states that are there; those that were not written whole have other names."""
    try:
        return sorted(int(path.name) for path in (folder / STATES).iterdir() if path.name.isdecimal())
    except FileNotFoundError:
        return []


@contextmanager
def _checkpointer() -> Iterator[Any]:
    """orbax takes a second to import, and says much that is nobody's business here."""
    import logging

    logging.getLogger("absl").setLevel(logging.CRITICAL)
    import orbax.checkpoint

    with orbax.checkpoint.StandardCheckpointer() as found:
        yield found
