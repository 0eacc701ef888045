"""Policy files: the one module that reads all their formats.

| file | holds |
|---|---|
| result folder of `gdlx solve` | `config.json`, which identifies the rules, and `policy.npz` |
| `.npz` of an unrolled game | an array for each player: the probability of every sequence |
| `.npz` of a hash table | keys [2, N] of information sets and probabilities [N, A] of their actions |
| `.csv`, `.json` | tables of `policy_tables`, which may be partial |

`load_policies` returns policies at the information sets of an unrolled game, `load_table_policy` a hash table to play
without unrolling. Information sets that a table lacks have uniform policies.
"""

import contextlib
import csv
import functools
import io
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs import env, game_facts, game_spec
from gdlx.envs.states import state_information, state_labels
from gdlx.envs.trees import game_tree, unroll
from gdlx.envs.trees.factored import symmetry_group
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import bounded_files, errors
from gdlx.solvers import state_policies, symmetric_policies, tabular_policies, tasks
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.runs import policy_tables, result_folder

TABLE_SUFFIXES = (".csv", ".json")
SUFFIXES = (".npz", *TABLE_SUFFIXES)
ACCEPTED_FORMATS = (
    "name the result folder of a run, its policy.npz, or a .csv or .json table of `gdlx evaluate RESULT -o FILE`"
)


class PolicyFileError(result_folder.ResultError):
    """A file or folder that does not hold a policy of the game."""


def load_policies(
    path: pathlib.Path, game: game_spec.GameSpec, tree: game_tree.GameTree, *, player: int | None = None
) -> tabular_policies.Policies:
    """Loads the policies of all players at the information sets of an unrolled game.

    Args:
      path: a file or folder of any of the formats above.
      game: the game that `tree` was unrolled from.
      tree: the game, unrolled to its terminals.
      player: index of a player that a partial table must contain.

    Returns:
      The probability of every sequence [S], for each player.

    Raises:
      PolicyFileError: there is no file of these formats, or it belongs to another game.
      ResultError: a result folder cannot be read.

    >>> import tempfile
    >>> game = game_spec.GameSpec("biased_rps")
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     file.writelines(["player,information_set,action,probability\\n", "player1,start,rock,1\\n"])
    ...     file.flush()
    ...     load_policies(pathlib.Path(file.name), game, game_spec.unroll_game(game))[0].tolist()
    [1.0, 0.0, 1.0, 0.0]
    """
    name = None if player is None else tree.players[player].name
    path = _folder_of_state_policy(path)
    with _explained(path, game, name):
        match _format(path):
            case "folder":
                return _load_folder(path, game, tree)
            case ".npz":
                arrays = result_folder.read_arrays(path)
                return _load_rows(path, game, tree) if _are_rows(arrays) else read_tree_policies(path, tree)
            case suffix:
                table = _read_table_text(path, suffix)
                solved = _state_task_of(table, game)
                policies = table.to_policies(tree if solved is None else solved.tree)
                if name is not None:
                    table.require(name)
                return policies if solved is None else _at_infosets(policies, solved, tree)


def load_table_policy(path: pathlib.Path, game: game_spec.GameSpec, env: env.Env) -> table_policy.TablePolicy:
    """Loads the policies of all players as a hash table with the keys of an environment.

    Unrolls the game if the file holds policies of an unrolled game, and the steps that a .csv or .json table covers.

    Args:
      path: a file or folder of any of the formats above.
      game: the game to play.
      env: its environment.

    Returns:
      The hash table.

    Raises:
      PolicyFileError: there is no file of these formats, or it belongs to another game.
      ResultError: a result folder cannot be read.

    >>> import tempfile
    >>> import gdlx
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     file.writelines(["player,information_set,action,probability\\n", "player1,start,rock,1\\n"])
    ...     file.flush()
    ...     policy = load_table_policy(
    ...         pathlib.Path(file.name), game_spec.GameSpec("biased_rps"), gdlx.make("biased_rps")
    ...     )
    """
    path = _folder_of_state_policy(path)
    with _explained(path, game, None):
        match _format(path):
            case "folder":
                return _load_folder_as_table(path, game, env)
            case ".npz":
                if _are_rows(result_folder.read_arrays(path)):
                    return read_table_policy(path, env.num_actions)
                tree = _unrolled(env)
                return table_policy.from_tabular(read_tree_policies(path, tree), env, tree)
            case suffix:
                table = _read_table_text(path, suffix)
                solved = _state_task_of(table, game, env.propnet)
                if solved is not None:
                    return table_policy.from_states(table.to_policies(solved.tree), solved.graph, env)
                tree = _unrolled(env, table.depth)
                return table_policy.from_tabular(table.to_policies(tree), env, tree)


def require_policy(path: pathlib.Path) -> None:
    """Raises PolicyFileError if a path cannot hold a policy."""
    _format(path)


def find_missing(
    path: pathlib.Path, game: game_spec.GameSpec, tree: game_tree.GameTree
) -> tuple[npt.NDArray[np.int64], ...]:
    """Returns the information sets of each player that a file has no policy for, and that are played uniformly.

    Policies of an unrolled game have all of them.
    """
    suffix = path.suffix.lower()
    if suffix in TABLE_SUFFIXES:
        table = _read_table_text(path, suffix)
        solved = _state_task_of(table, game)
        is_listed = tuple(_mark_listed(table, player) for player in (tree if solved is None else solved.tree).players)
        if solved is not None:
            is_listed = _convert_to_infosets(is_listed, solved, tree)
        return tuple(
            np.flatnonzero(marks[player.first[:-1]] == 0) for player, marks in zip(tree.players, is_listed, strict=True)
        )
    stored = policy_path(path)
    if not _are_rows(result_folder.read_arrays(stored)):
        return tuple(np.zeros(0, np.int64) for _ in tree.players)
    environment = tasks.make_table_task(game).env
    return table_policy.find_missing(read_table_policy(stored, environment.num_actions), environment, tree)


def _mark_listed(table: "_Table", player: game_tree.Player) -> tabular_policies.Policy:
    """1 for the sequences of information sets that a table lists, and 0 for the others."""
    listed = table.information_sets
    marks = [float((player.name, label) in listed) for label in player.labels]
    return np.concatenate([[1.0], np.repeat(marks, np.diff(player.first))])


def policy_path(path: pathlib.Path) -> pathlib.Path:
    """Returns the file that holds the probabilities: `path`, or the one in a result folder."""
    return path if path.suffix.lower() in SUFFIXES else path / result_folder.POLICY


def require_same_rules(
    folder: pathlib.Path, solved: result_folder.Config, game: game_spec.GameSpec, digest: str
) -> None:
    """Raises PolicyFileError if a result was solved with other rules than now, whose digest is `digest`."""
    if solved.digest != digest:
        other = "" if solved.game.spec == game.spec else f", those of {solved.game.spec}"
        raise PolicyFileError(f"{folder} was solved with other rules than {game.spec} has now{other}; solve it again")


def _format(path: pathlib.Path) -> str:
    """Returns `folder`, or the suffix of a file."""
    if not path.exists():
        raise PolicyFileError(f"{path} does not exist: {ACCEPTED_FORMATS}")
    if path.is_dir():
        if result_folder.is_training(path):
            raise PolicyFileError(f"{path} holds networks, which have no policy in a file: {ACCEPTED_FORMATS}")
        return "folder"
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise PolicyFileError(f"{path} is not a policy: {ACCEPTED_FORMATS}")
    return suffix


def _folder_of_state_policy(path: pathlib.Path) -> pathlib.Path:
    """The result folder of a policy.npz by state, which alone does not tell that it is one; else `path` itself."""
    if path.name != result_folder.POLICY or not (path.parent / result_folder.CONFIG).is_file():
        return path
    try:
        return path.parent if result_folder.read_config(path.parent).algorithm.on_states else path
    except result_folder.ResultError:  # the policy is read on its own
        return path


@contextlib.contextmanager
def _explained(path: pathlib.Path, game: game_spec.GameSpec, player: str | None) -> Iterator[None]:
    """Adds the file and the game to errors."""
    whose = game.spec if player is None else f"{player} in {game.spec}"
    try:
        yield
    except OSError as error:
        raise PolicyFileError(f"{path} cannot be read: {error.strerror}") from None
    except tabular_policies.PolicyError as error:
        raise PolicyFileError(f"{path} is not a policy of {whose}: {error}") from None


# ---- result folders


def _load_folder(folder: pathlib.Path, game: game_spec.GameSpec, tree: game_tree.GameTree) -> tabular_policies.Policies:
    config = result_folder.read_config(folder)
    if config.has_table:
        return _load_rows(folder / result_folder.POLICY, game, tree, config)
    if config.algorithm.on_states:
        return _load_state_policies(folder, config, game, tree)
    if config.symmetries and tree.is_whole:
        written = (folder / result_folder.POLICY).stat().st_mtime_ns
        table, played = _symmetric_table(folder.resolve(), written, config, game)
        return table_policy.to_tabular(table, played, tree)[0]
    require_same_rules(folder, config, game, tasks.tree_digest(tree))
    return read_tree_policies(folder / result_folder.POLICY, tree)


def _load_folder_as_table(folder: pathlib.Path, game: game_spec.GameSpec, env: env.Env) -> table_policy.TablePolicy:
    config = result_folder.read_config(folder)
    if config.has_table:
        require_same_rules(folder, config, game, game_facts.probe(env.propnet).digest)
        return read_table_policy(folder / result_folder.POLICY, env.num_actions)
    if config.algorithm.on_states:
        solved = tasks.make_state_task(config.game, propnet=env.propnet)
        require_same_rules(folder, config, game, solved.digest)
        policies = read_tree_policies(folder / result_folder.POLICY, solved.tree)
        return table_policy.from_states(policies, solved.graph, env)
    if config.symmetries:
        return _load_symmetric(folder, config, game, env)
    # Unrolled with the payoffs of the run, which are part of its digest.
    tree = game_spec.unroll_game(config.game, propnet=env.propnet)
    require_same_rules(folder, config, game, tasks.tree_digest(tree))
    return table_policy.from_tabular(read_tree_policies(folder / result_folder.POLICY, tree), env, tree)


def _load_state_policies(
    folder: pathlib.Path, config: result_folder.Config, game: game_spec.GameSpec, tree: game_tree.GameTree
) -> tabular_policies.Policies:
    """Policies by state, at the information sets of a tree or of the states themselves."""
    solved = tasks.make_state_task(config.game)
    require_same_rules(folder, config, game, solved.digest)
    return _at_infosets(read_tree_policies(folder / result_folder.POLICY, solved.tree), solved, tree)


def _at_infosets(
    policies: tabular_policies.Policies, solved: tasks.StateTask, tree: game_tree.GameTree
) -> tabular_policies.Policies:
    """Policies by state at the information sets of a tree, which may be the states themselves."""
    return tuple(
        tabular_policies.validate(player, policy)
        for player, policy in zip(tree.players, _convert_to_infosets(policies, solved, tree), strict=True)
    )


def _convert_to_infosets(
    policies: tabular_policies.Policies, solved: tasks.StateTask, tree: game_tree.GameTree
) -> tabular_policies.Policies:
    """Numbers of the sequences of states as those of the information sets of a tree."""
    if any(isinstance(player.views, state_labels.StateLabels) for player in tree.players):
        return policies
    return state_policies.to_tree(policies, solved.graph, solved.propnet, tree)


@functools.lru_cache(maxsize=1)  # asked again for every image of a tree
def _symmetric_table(
    folder: pathlib.Path, written: int, config: result_folder.Config, game: game_spec.GameSpec
) -> tuple[table_policy.TablePolicy, env.Env]:
    """`_load_symmetric` of a policy file that was written at this time, with the environment of the game."""
    played = tasks.make_table_task(game).env
    return _load_symmetric(folder, config, game, played), played


def _load_symmetric(
    folder: pathlib.Path, config: result_folder.Config, game: game_spec.GameSpec, env: env.Env
) -> table_policy.TablePolicy:
    """The policies of a tree without symmetric information sets, at all information sets of the game."""
    group = symmetry_group.build(env.propnet)
    if group is None:
        raise PolicyFileError(
            f"{folder / result_folder.CONFIG} says that symmetric information sets were left out, but "
            f"{config.game.spec} has none: was that file changed?"
        )
    tree = game_spec.unroll_game(config.game, propnet=env.propnet, symmetries=True)
    require_same_rules(folder, config, game, tasks.tree_digest(tree))
    policies = read_tree_policies(folder / result_folder.POLICY, tree)
    return symmetric_policies.to_table(tree, policies, group, env)


# ---- arrays


class TableRows(NamedTuple):
    """Rows of a hash table. Axes: N information sets, A actions."""

    keys: npt.NDArray[np.uint32]  # [2, N]
    probability: npt.NDArray[np.float32]  # [N, A]


def read_tree_policies(path: pathlib.Path, tree: game_tree.GameTree) -> tabular_policies.Policies:
    """Reads the policies of an unrolled game from its .npz file."""
    arrays = result_folder.read_arrays(path)
    if len(arrays) != len(tree.players):
        raise PolicyFileError(
            f"{path} has policies of {len(arrays)} players, but the game has {len(tree.players)} players"
        )
    return tuple(tabular_policies.validate(player, policy) for player, policy in zip(tree.players, arrays, strict=True))


def read_table_rows(path: pathlib.Path, num_actions: int) -> TableRows:
    """Reads the rows of a hash table from an .npz file, without rebuilding the table, which takes seconds."""
    arrays = result_folder.read_arrays(path)
    try:
        keys, probability = arrays
        if keys.shape != (2, len(probability)) or probability.shape[1:] != (num_actions,):
            raise ValueError(f"shapes {keys.shape} and {probability.shape}")
        if keys.dtype != np.uint32 or probability.dtype.kind != "f":
            raise ValueError(f"keys of type {keys.dtype} and probabilities of type {probability.dtype}")
        if not (np.isfinite(probability) & (probability >= 0)).all():
            raise ValueError("a probability is negative or not finite")
        return TableRows(keys, probability.astype(np.float32))
    except (TypeError, ValueError) as error:
        raise PolicyFileError(f"{path} does not hold policies of this game: {error}") from None


def read_table_policy(path: pathlib.Path, num_actions: int) -> table_policy.TablePolicy:
    """Reads a hash table from an .npz file."""
    return table_policy.from_arrays(*read_table_rows(path, num_actions))


def _are_rows(arrays: list[Any]) -> bool:
    return len(arrays) == 2 and all(array.ndim == 2 for array in arrays)


def _load_rows(
    path: pathlib.Path, game: game_spec.GameSpec, tree: game_tree.GameTree, config: result_folder.Config | None = None
) -> tabular_policies.Policies:
    played = tasks.make_table_task(game)
    if config is not None:
        require_same_rules(path.parent, config, game, played.digest)
    return table_policy.to_tabular(read_table_policy(path, played.env.num_actions), played.env, tree)[0]


def _unrolled(env: env.Env, depth: int | None = None) -> game_tree.GameTree:
    return unroll.unroll(env.propnet, "goal", depth=depth, goal_conflict="max", unplayable="end")


# ---- CSV and JSON tables


class _Table(NamedTuple):
    """A CSV or JSON table before validation, which needs the tree."""

    text: str
    parsed: Any  # the JSON object; None for CSV

    @property
    def entries(self) -> Iterable[Any]:
        """The entries of the table, which may be malformed."""
        if self.parsed is None:
            return csv.DictReader(io.StringIO(self.text, newline=""))
        lists = _players(self.parsed).values()
        return [entry for sets in lists if isinstance(sets, list) for entry in sets] or [None]

    @property
    def information_sets(self) -> set[tuple[str, str]]:
        """The player and the label of every information set of the table."""
        if self.parsed is None:
            return {(str(row.get("player")), str(row.get("information_set"))) for row in self.entries}
        return {
            (player, str(entry.get("information_set")))
            for player, sets in _players(self.parsed).items()
            for entry in sets
        }

    @property
    def depth(self) -> int | None:
        """Joint actions that the table covers; None where a step is missing or not a number."""
        last = 0
        for entry in self.entries:
            try:
                last = max(last, int(entry["step"]))
            except (KeyError, OverflowError, TypeError, ValueError):
                return None
        return last + 1

    def to_policies(self, tree: game_tree.GameTree) -> tabular_policies.Policies:
        if self.parsed is None:
            return policy_tables.from_csv(tree, self.text, partial=True)
        return policy_tables.from_json(tree, self.parsed, partial=True)

    def require(self, name: str) -> None:
        """Raises if the table does not contain a player: it would silently play uniformly."""
        if self.parsed is None:
            named = {str(row.get("player")) for row in self.entries}
        else:
            named = {player for player, sets in _players(self.parsed).items() if sets}
        if name not in named:
            others = ", ".join(sorted(named)) or "nobody"
            raise tabular_policies.PolicyError(f"it has no policy of {name}, only of {others}")


def _state_task_of(
    table: _Table, game: game_spec.GameSpec, propnet: propnet.PropNet | None = None
) -> tasks.StateTask | None:
    """The states of a game, if the information sets of a table are states: lists of fluents of a game of states."""
    if propnet is None:
        try:
            propnet = game.compile(saved=True)
        except (errors.UserError, OSError):  # it has no rules that can be read: the tree was made from something else
            return None
    fluents = {*propnet.fluents, state_labels.EMPTY}
    is_empty = True
    for entry in table.entries:
        is_empty = False
        label = entry.get("information_set") if isinstance(entry, dict) else None
        if not isinstance(label, str) or not fluents.issuperset(label.split(state_labels.SEPARATOR)):
            return None
    if is_empty or not state_information.infer_state_information(propnet).known:
        return None
    return tasks.make_state_task(game, propnet=propnet)


def _players(parsed: Any) -> Mapping[str, Any]:
    players = parsed.get("policy") if isinstance(parsed, dict) else None
    return players if isinstance(players, dict) else {}


def _read_table_text(path: pathlib.Path, suffix: str) -> _Table:
    try:
        text = bounded_files.read_text(path)
        table = _Table(text, None if suffix == ".csv" else bounded_files.parse_json(text))
        for _ in table.entries:  # raises for lines that are not CSV
            pass
        return table
    except bounded_files.FileError as error:
        raise PolicyFileError(str(error)) from None
    except (csv.Error, ValueError) as error:
        raise tabular_policies.PolicyError(f"it cannot be read ({error})") from None
