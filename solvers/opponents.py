"""Policies of one player from whatever holds them: a result folder, its policy.npz, or a policy table."""

import csv
import io
import json
import pathlib

from gdlx.propnet import errors, untrusted
from gdlx.solvers import exports, problems, profiles, results, table_policy
from gdlx.solvers import solve as solving

_WANTED = "name the result folder of a run, its policy.npz, or a .csv or .json table of `gdlx evaluate RESULT -o FILE`"


class WrongOpponent(errors.UserError, ValueError):
    """What is no policy of the player in question."""


def read(path: pathlib.Path, task: problems.Problem, player: int) -> profiles.Policy:
    """[S] the policy of a player. Information sets that a table says nothing about have uniform policies."""
    name = task.players[player]
    if not path.exists():
        raise WrongOpponent(f"{path} is not there: {_WANTED}")
    try:
        if path.is_dir():
            return _of_result(path, task)[player]
        match path.suffix.lower():
            case ".npz":
                return results.read_policies(path, task.tree)[player]
            case ".csv" | ".json":
                return _of_table(path, task, name)[player]
    except OSError as error:
        raise WrongOpponent(f"the policy {path} cannot be read: {error.strerror}") from None
    except (profiles.WrongPolicy, results.ResultError) as error:
        raise WrongOpponent(f"{path} is no policy of {name} in {task.game.spec}: {error}") from None
    raise WrongOpponent(f"{path} is no policy: {_WANTED}")


def _of_result(folder: pathlib.Path, task: problems.Problem) -> profiles.Policies:
    config = results.read_config(folder)
    is_table = solving.uses_table(config.algorithm)
    played = problems.table_problem(task.game) if is_table else None
    if config.digest != (task.digest if played is None else played.digest):
        raise results.ResultError(f"it was solved with other rules, those of {config.game.spec} then")
    if played is None:
        return results.read_policy(folder, task.tree)
    kept = results.read_table_policy(folder, played.env.num_actions)
    return table_policy.at_sets(kept, played.env, task.tree)[0]


def _of_table(path: pathlib.Path, task: problems.Problem, name: str) -> profiles.Policies:
    try:
        text = untrusted.read_bounded(path, untrusted.MAX_BYTES).decode("utf-8")
        if path.suffix.lower() == ".csv":
            policies = exports.from_csv(task.tree, text, partial=True)
            named = {row["player"] for row in csv.DictReader(io.StringIO(text))}
        else:
            table = json.loads(text)
            policies = exports.from_json(task.tree, table, partial=True)
            named = {player for player, sets in table["policy"].items() if sets}
    except (csv.Error, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise profiles.WrongPolicy(f"it cannot be read ({error})") from None
    if name not in named:
        raise profiles.WrongPolicy(f"it says nothing about {name}, but about {', '.join(sorted(named)) or 'nobody'}")
    return policies
