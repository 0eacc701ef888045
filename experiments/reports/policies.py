"""The policies of a run as tables of text, for the first information sets of each player."""

import pathlib
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs.trees import game_tree, infoset_keys
from gdlx.experiments.reports import facts, gather
from gdlx.solvers import tasks
from gdlx.solvers.mccfr import table_rows
from gdlx.solvers.runs import policy_files, result_folder

MAX_INFOSETS = 40  # shown per player
_MAX_JOINT_ACTIONS = 3_000_000  # of the largest game of states that is built for a report, in a second or two

Floats = npt.NDArray[np.floating]
Longs = npt.NDArray[np.uint64]


class InfosetPolicy(NamedTuple):
    history: str
    options: tuple[tuple[str, float], ...]  # the likeliest first


class PolicyTable(NamedTuple):
    """The policy at the first information sets of a player, in order of time."""

    player: str
    choices: tuple[InfosetPolicy, ...]
    sets: int  # information sets in total
    remark: str  # on information sets that are left out for other reasons


def load_policy_tables(run: gather.RunRecord, subject: facts.LoadedGame) -> list[PolicyTable]:
    """Loads a table for each player.

    Raises:
      ResultError: The policies cannot be shown; the message says why.
    """
    if run.config.has_table:
        return _load_hash_table_policy(run, subject)
    tree, digest = _load_states(subject) if run.config.algorithm.on_states else (subject.tree, subject.digest)
    if tree is None:
        raise result_folder.ResultError(
            f"{run.config.game.spec} is too large to be unrolled for a report; see gdlx evaluate {run.folder}"
        )
    policy_files.require_same_rules(run.folder, run.config, subject.game, digest)
    policies = policy_files.read_tree_policies(run.folder / result_folder.POLICY, tree)
    tables = []
    for player, policy in zip(tree.players, policies, strict=True):
        options = np.split(policy, player.first[:-1])[1:]
        tables.append(_table(player, range(player.sets), options.__getitem__))
    return tables


def _load_states(subject: facts.LoadedGame) -> tuple[game_tree.GameTree | None, str]:
    """The information sets of a game of states, None if it is too large; and the digest of its rules."""
    try:
        task = tasks.make_state_task(subject.game, propnet=subject.propnet, max_nodes=_MAX_JOINT_ACTIONS)
    except game_tree.TooLargeError:
        return None, subject.rules_digest
    return task.tree, task.digest


def _table(
    player: game_tree.Player, known: Iterable[int], policy_at: Callable[[int], Floats], remark: str = ""
) -> PolicyTable:
    decisions = list(known)
    choices = []
    for decision in decisions[:MAX_INFOSETS]:
        chosen = zip(player.options(decision), policy_at(decision).tolist(), strict=True)
        choices.append(InfosetPolicy(player.labels[decision], tuple(sorted(chosen, key=lambda option: -option[1]))))
    return PolicyTable(player.name, tuple(choices), len(decisions), remark)


def _load_hash_table_policy(run: gather.RunRecord, subject: facts.LoadedGame) -> list[PolicyTable]:
    """Tables of a policy in a hash table, for its rows in the steps of the game that are unrolled."""
    task = tasks.make_table_task(subject.game, propnet=subject.propnet)
    policy_files.require_same_rules(run.folder, run.config, subject.game, task.digest)
    keys, probability = _read_rows(run.folder / result_folder.POLICY, task.env.num_actions)
    tables = []
    for number, player in enumerate(task.tree.players):
        high, low = infoset_keys.compute_infoset_keys(task.tree, number, task.env.num_actions)
        keys_of_sets = _joined(high ^ table_rows.player_salt(number), low)
        row = np.searchsorted(keys, keys_of_sets) % max(1, len(keys))
        known = keys[row] == keys_of_sets if len(keys) else np.zeros(player.sets, bool)

        def policy_at(decision: int, player: game_tree.Player = player, row: npt.NDArray[np.intp] = row) -> Floats:
            moves = player.action[player.first[decision] : player.first[decision + 1]]
            weight = probability[row[decision]][moves].astype(np.float64)
            return weight / weight.sum() if weight.sum() > 0 else np.full(len(moves), 1 / len(moves))

        remark = _remark(int((~known).sum()), is_whole=task.tree_task is not None)
        tables.append(_table(player, np.flatnonzero(known).tolist(), policy_at, remark))
    return tables


def _read_rows(path: pathlib.Path, moves: int) -> tuple[Longs, Floats]:
    """Sorted keys and their probabilities."""
    keys, probability = policy_files.read_table_rows(path, moves)
    joined = _joined(*keys)
    order = np.argsort(joined)
    return joined[order], probability[order]


def _joined(high: npt.ArrayLike, low: npt.ArrayLike) -> Longs:
    return np.asarray(high).astype(np.uint64) << np.uint64(32) | np.asarray(low).astype(np.uint64)


def _remark(unknown: int, *, is_whole: bool) -> str:
    first = "" if is_whole else "Only the first steps of the game are unrolled. "
    if not unknown:
        return first.strip()
    return f"{first}Left out: {unknown:,} information sets that are not in the hash table, where play is uniform."
