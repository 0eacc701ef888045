"""Policies for people and other programs: tables as CSV and JSON, OpenSpiel's TabularPolicy, and back.

All functions take and return policies as in `tabular_policies`: a probability for every sequence of every player.
"""

import csv
import io
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from gdlx.envs.trees import game_tree
from gdlx.propnet.syntax import diagnostics
from gdlx.solvers import tabular_policies

PolicyError = tabular_policies.PolicyError
_LONGEST_SHOWN = 300  # characters of a name or value in a message: tables may hold anything
_OLDER_NAMES = {"action": "option", "actions": "options"}


class Row(NamedTuple):
    """One action of one information set. The fields are the columns of the table."""

    player: str
    step: int  # joint actions before
    information_set: str  # what the player has done and seen, as in `Player.labels`
    action: str
    probability: float


def rows(tree: game_tree.GameTree, policies: Sequence[tabular_policies.Policy]) -> Iterator[Row]:
    """Yields the rows of the policy table, player by player in order of time.

    >>> import gdlx
    >>> solution = gdlx.solve("biased_rps", "lp")
    >>> for row in rows(solution.tree, solution.policies): print(*row)
    player1 0 start paper 0.625
    player1 0 start rock 0.0625
    player1 0 start scissors 0.3125
    player2 0 start paper 0.625
    player2 0 start rock 0.0625
    player2 0 start scissors 0.3125
    """
    for player, policy in zip(tree.players, policies, strict=True):
        chosen = tabular_policies.validate_shape(player, policy).tolist()
        for number, (label, step) in enumerate(zip(player.labels, player.step.tolist(), strict=True)):
            start = int(player.first[number])
            for place, action in enumerate(player.options(number), start):
                yield Row(player.name, step, label, action, chosen[place])


def to_csv(tree: game_tree.GameTree, policies: Sequence[tabular_policies.Policy]) -> str:
    """Returns the policy table as CSV."""
    file = io.StringIO(newline="")
    table = csv.writer(file, lineterminator="\n")
    table.writerow(Row._fields)
    table.writerows(rows(tree, policies))
    return file.getvalue()


def from_csv(tree: game_tree.GameTree, text: str, *, partial: bool = False) -> tabular_policies.Policies:
    """Reads policies from CSV with at least the columns player, information_set, action and probability.

    In older tables the column of actions is called option.

    A `partial` table may omit information sets, which get uniform policies, and actions of the others, which get
    probability 0.

    Raises:
      PolicyError: the table is not a policy of the game.
    """
    table = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        player, infoset, action, probability = _columns(table.fieldnames or ())
        rows_read = (
            (f"line {table.line_num}", row[player], row[infoset], row[action], row[probability]) for row in table
        )
        return _from_actions(tree, rows_read, partial)
    except csv.Error as error:
        raise PolicyError(f"line {table.line_num} of the policy table is not CSV: {error}") from None


def _columns(names: Sequence[str]) -> tuple[str, str, str, str]:
    """The columns that are read, by the names that they have in a table."""
    needed = ("player", "information_set", "action", "probability")
    present = tuple(_OLDER_NAMES[name] if name not in names and name in _OLDER_NAMES else name for name in needed)
    missing = [name for name, older in zip(needed, present, strict=True) if older not in names]
    if missing:
        raise PolicyError(f"the policy table lacks the column {missing[0]}; it needs {', '.join(needed)}")
    player, information_set, action, probability = present
    return player, information_set, action, probability


def to_json(tree: game_tree.GameTree, policies: Sequence[tabular_policies.Policy]) -> dict[str, Any]:
    """Returns an object for `json.dumps`: for every player its information sets in order of time."""
    table: dict[str, list[dict[str, Any]]] = {player.name: [] for player in tree.players}
    for (name, step, label), actions in itertools.groupby(rows(tree, policies), lambda row: row[:3]):
        chosen = {row.action: row.probability for row in actions}
        table[name].append({"step": step, "information_set": label, "actions": chosen})
    return {"game": tree.name, "policy": table}


def from_json(tree: game_tree.GameTree, table: Any, *, partial: bool = False) -> tabular_policies.Policies:
    """Reads policies from an object as `to_json` returns it, or did in older versions, except the name of the game."""
    return _from_actions(tree, _json_actions(table), partial)


def from_json_sparse(tree: game_tree.GameTree, table: Any) -> tuple[tabular_policies.Policy, ...]:
    """Reads policies as `from_json` does a partial table; information sets that it omits have NaN."""
    return _from_actions(tree, _json_actions(table), "sparse")


def _json_actions(table: Any) -> Iterator[tuple[str, Any, Any, Any, Any]]:
    for player, sets in _mapping(_mapping(table, "the policy table").get("policy"), "policy").items():
        if not isinstance(sets, list):
            raise PolicyError(f"policy.{player} is not a list of information sets")
        for number, item in enumerate(sets):
            where = f"policy.{player}[{number}]"
            entry = _mapping(item, where)
            actions = entry.get("actions", entry.get(_OLDER_NAMES["actions"]))
            for action, probability in _mapping(actions, f"{where}.actions").items():
                yield where, player, entry.get("information_set"), action, probability


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise PolicyError(f"{where} is not an object")
    return value


def _from_actions(
    tree: game_tree.GameTree,
    actions: Iterable[tuple[str, Any, Any, Any, Any]],
    partial: bool | Literal["sparse"],
) -> tabular_policies.Policies:
    """Builds policies from (place in the file, player, information set, action, probability) in any order."""
    players = {player.name: player for player in tree.players}
    decisions = {name: {label: n for n, label in enumerate(player.labels)} for name, player in players.items()}
    policies = {name: np.full(player.sequences, np.nan) for name, player in players.items()}
    for where, name, label, action, probability in actions:
        if name not in players:
            raise PolicyError(f"{where}: {tree.name} has no player {_shown(name)}; it has {', '.join(players)}")
        player, decision = players[name], decisions[name].get(label) if isinstance(label, str) else None
        if decision is None:
            raise PolicyError(f"{where}: {name} has no information set {_shown(label)} with a choice in {tree.name}")
        names = player.options(decision)
        if action not in names:
            raise PolicyError(
                f"{where}: {name} has no action {_shown(action)} at {_shown(label)}; it has {_listed(names)}"
            )
        sequence = int(player.first[decision]) + names.index(action)
        if not np.isnan(policies[name][sequence]):
            raise PolicyError(f"{where}: a second probability of {_shown(action)} at {_shown(label)} of {name}")
        try:
            policies[name][sequence] = float(probability)
        except (OverflowError, TypeError, ValueError):
            raise PolicyError(
                f"{where}: the probability of {_shown(action)} at {_shown(label)} is {_shown(probability)}"
            ) from None
        if not 0 <= policies[name][sequence] <= 1:
            what = f"the probability of {_shown(action)} at {_shown(label)}"
            raise PolicyError(f"{where}: {what} is {diagnostics.shorten(probability, _LONGEST_SHOWN)}, not in 0 .. 1")
    if partial == "sparse":
        return tuple(_fill_actions(player, policies[player.name]) for player in tree.players)
    if partial:
        return tuple(_fill_missing(player, policies[player.name]) for player in tree.players)
    return tuple(_require_complete(player, policies[player.name]) for player in tree.players)


def _shown(value: Any) -> str:
    """Formats a value of a file, which may be anything of any length."""
    return diagnostics.shorten(repr(value), _LONGEST_SHOWN)


def _listed(names: Sequence[str]) -> str:
    return diagnostics.shorten(", ".join(names), _LONGEST_SHOWN)


def _fill_missing(player: game_tree.Player, policy: tabular_policies.Policy) -> tabular_policies.Policy:
    """Complete a policy whose missing numbers are NaN: uniform at information sets where all are missing, else 0."""
    filled = _fill_actions(player, policy)
    return tabular_policies.validate(player, np.where(np.isnan(filled), tabular_policies.uniform(player), filled))


def _fill_actions(player: game_tree.Player, policy: tabular_policies.Policy) -> tabular_policies.Policy:
    """Set missing numbers, which are NaN, to 0 at information sets where not all are missing."""
    infoset = np.repeat(np.arange(player.sets), np.diff(player.first))
    is_listed = np.bincount(infoset[~np.isnan(policy[1:])], minlength=player.sets) > 0
    listed = np.concatenate([[False], is_listed[infoset]])
    filled: tabular_policies.Policy = np.where(listed, np.nan_to_num(policy), np.nan)
    return filled


def _require_complete(player: game_tree.Player, policy: tabular_policies.Policy) -> tabular_policies.Policy:
    policy[0] = 1
    missing = np.flatnonzero(np.isnan(policy))
    if len(missing):
        infoset = int(np.searchsorted(player.first, missing[0], side="right")) - 1
        action = player.action_names[player.action_name[missing[0]]]
        raise PolicyError(
            f"the policy has no probability of {action!r} at {player.labels[infoset]!r} of {player.name}"
            f"{f', nor of {len(missing) - 1:,} others' if len(missing) > 1 else ''}"
        )
    return tabular_policies.validate(player, policy)


# ---- OpenSpiel

ActionProbabilities = Sequence[tuple[int, float]] | Mapping[int, float]


def information_state_strings(player: game_tree.Player) -> list[str]:
    """Returns OpenSpiel's information state strings [I], of its own games or of `bridges.open_spiel_game`."""
    if not isinstance(player.views, game_tree.InfosetTree):
        return [player.views[view] for view in player.view.tolist()]
    trail = player.views
    # An information set without a choice has a single legal action: the one that leads to the next information set.
    options = {
        parent: player.action_names[move]
        for parent, move in zip(trail.parent.tolist(), trail.move.tolist(), strict=True)
    }
    options |= {view: "; ".join(player.options(n)) for n, view in enumerate(player.view.tolist())}
    percepts = ["; ".join(trail.percept_names[n] for n in np.flatnonzero(row)) for row in trail.percepts]
    states: list[str] = []
    events = zip(trail.parent.tolist(), trail.move.tolist(), trail.percept.tolist(), strict=True)
    for view, (parent, move, percept) in enumerate(events):
        may = f"may {options.get(view, '')}"
        if parent < 0:
            states.append(f"{player.name}\n{may}")
        else:
            states.append(f"{states[parent]}\ndid {player.action_names[move]};; saw {percepts[percept]};; {may}")
    return [states[view] for view in player.view.tolist()]


def to_open_spiel_table(
    tree: game_tree.GameTree, policies: Sequence[tabular_policies.Policy]
) -> dict[str, list[tuple[int, float]]]:
    """Returns a dictionary from information states to action probabilities, as `pyspiel.TabularPolicy` takes it.

    Information states with a single legal action are omitted.

    Raises:
      PolicyError: two players have the same information state, but different policies there.
    """
    table: dict[str, list[tuple[int, float]]] = {}
    for player, policy in zip(tree.players, policies, strict=True):
        actions, chosen = player.action.tolist(), tabular_policies.validate_shape(player, policy).tolist()
        for state, begin, end in zip(information_state_strings(player), player.first, player.first[1:], strict=False):
            probabilities = list(zip(actions[begin:end], chosen[begin:end], strict=True))
            if table.setdefault(state, probabilities) != probabilities:
                raise PolicyError(
                    f"two players of {tree.name} have different policies at the information state "
                    f"'{game_tree.one_line(state)}', and a TabularPolicy of OpenSpiel cannot tell them apart"
                )
    return table


def to_open_spiel(tree: game_tree.GameTree, policies: Sequence[tabular_policies.Policy], game: Any) -> Any:
    """Returns an `open_spiel.python.policy.TabularPolicy` of an OpenSpiel game.

    `game` is the one that `envs.bridges.open_spiel_tree` unrolled, or that `envs.bridges.open_spiel_game` built from a
    GDL game.
    """
    from open_spiel.python import policy

    table = to_open_spiel_table(tree, policies)
    tabular = policy.TabularPolicy(game)
    for state, actions in table.items():
        place = tabular.state_lookup.get(state)
        if place is None:
            raise PolicyError(f"{game} has no information state '{game_tree.one_line(state)}'; is it {tree.name}?")
        tabular.action_probability_array[place] = 0
        for action, probability in actions:
            tabular.action_probability_array[place, action] = probability
    return tabular


def from_open_spiel(tree: game_tree.GameTree, policy: Any) -> tabular_policies.Policies:
    """Reads policies from OpenSpiel's TabularPolicy, of Python or C++, or from a table of `to_open_spiel_table`."""
    table: Mapping[str, ActionProbabilities]
    if isinstance(policy, Mapping):
        table = policy
    else:
        table = policy.policy_table() if hasattr(policy, "policy_table") else policy.to_dict()
    return tuple(_from_states(player, table) for player in tree.players)


def _from_states(player: game_tree.Player, table: Mapping[str, ActionProbabilities]) -> tabular_policies.Policy:
    policy = np.zeros(player.sequences)
    for number, state in enumerate(information_state_strings(player)):
        where = f"{player.name}, '{game_tree.one_line(state)}'"
        probabilities = table.get(state)
        if probabilities is None:
            raise PolicyError(f"{where}: the policy does not contain this information state")
        chosen = dict(probabilities)
        begin, end = player.first[number], player.first[number + 1]
        actions = player.action[begin:end].tolist()
        # OpenSpiel's own tables list all actions of the game, the illegal ones with probability 0.
        wrong = [action for action, probability in chosen.items() if probability and action not in actions]
        if wrong:
            raise PolicyError(f"{where}: action {wrong[0]} has probability {chosen[wrong[0]]:g}, but is not legal")
        policy[begin:end] = [chosen.get(action, 0.0) for action in actions]
    policy[0] = 1
    return tabular_policies.validate(player, policy)
