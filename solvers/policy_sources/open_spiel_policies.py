"""Policies of OpenSpiel at the information sets of our trees."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gdlx.envs import game_spec
from gdlx.envs.bridges import open_spiel_twins
from gdlx.envs.trees import game_tree
from gdlx.propnet import games
from gdlx.solvers import tabular_policies
from gdlx.solvers.runs import policy_tables

_SAME = 1e-9  # difference up to which probabilities count as equal
TwinError = open_spiel_twins.TwinError


def is_policy(value: Any) -> bool:
    """Whether a value is a policy of OpenSpiel, of Python or of C++: it has probabilities for a state."""
    return not isinstance(value, type) and callable(getattr(value, "action_probabilities", None))


def read(named: game_spec.ResolvedGame, tree: game_tree.GameTree, policy: Any) -> list[tabular_policies.Policy]:
    """Reads a policy of OpenSpiel at all information sets of an unrolled game.

    Args:
      named: a game of OpenSpiel, a game of the library that is one (`open_spiel_twins`), or any game for a policy
        of what `open_spiel_game` made of it.
      tree: the game, unrolled.
      policy: a policy of Python or of C++.

    Returns:
      The probability of every sequence, for each player; NaN at information sets that the policy does not contain.

    Raises:
      PolicyError: the policy is of another game, or its numbers are not probabilities.
    """
    probabilities = [np.full(player.sequences, np.nan) for player in tree.players]
    texts = [
        {text: number for number, text in enumerate(policy_tables.information_state_strings(player))}
        for player in tree.players
    ]
    for decision in _decisions(named, policy):
        number = texts[decision.player].get(decision.text)
        if number is None:
            raise tabular_policies.PolicyError(
                f"{tree.name} has no information set '{game_tree.one_line(decision.text)}' of this game of OpenSpiel"
            )
        chosen = _probabilities(policy, decision)
        if chosen:
            _write(tree.players[decision.player], number, probabilities[decision.player], chosen, decision)
    return probabilities


def _decisions(named: game_spec.ResolvedGame, policy: Any) -> Iterator[open_spiel_twins.Decision]:
    game = getattr(policy, "game", None)  # those of C++ do not know theirs
    spec = named.game.spec
    if named.game.is_open_spiel:
        named_game = open_spiel_twins.load(spec.removeprefix(games.OPEN_SPIEL))
        if game is not None:
            open_spiel_twins.require_game(game, named_game, spec)
        return open_spiel_twins.walk(open_spiel_twins.of_open_spiel(named_game), named_game if game is None else game)
    propnet = named.compile()
    bridged = None if game is None else open_spiel_twins.find_bridged(game, propnet)
    if bridged is not None:
        return open_spiel_twins.walk(open_spiel_twins.of_open_spiel(bridged), game)
    twin = open_spiel_twins.find_twin(spec)
    if twin is None:
        raise tabular_policies.PolicyError(
            f"it is a policy of OpenSpiel's {'games' if game is None else game}, and {spec} is not known to be one of "
            f"them: known are {', '.join(open_spiel_twins.names())}. Name OpenSpiel's game instead, as "
            f"spiel:{'NAME' if game is None else game}, or make the policy for "
            f"gdlx.envs.bridges.open_spiel_game.load_game({spec!r})"
        )
    named_game = open_spiel_twins.load(twin.name)
    if game is not None:
        open_spiel_twins.require_game(game, named_game, spec)
    return open_spiel_twins.walk(open_spiel_twins.of_rules(propnet, twin), named_game if game is None else game)


def _probabilities(policy: Any, decision: open_spiel_twins.Decision) -> Mapping[int, float]:
    """Returns the probabilities of OpenSpiel's actions; none at information states that the policy lacks."""
    import pyspiel

    state, player = decision.state, decision.player
    if isinstance(policy, pyspiel.Policy):
        # Explicitly of the base: a C++ table hides the method for states.
        asked = state.information_state_string(player) if state.is_simultaneous_node() else state
        return dict(pyspiel.Policy.action_probabilities(policy, asked))
    try:
        return dict(policy.action_probabilities(state, player))
    except KeyError:  # a TabularPolicy of Python
        return {}


def _write(
    player: game_tree.Player,
    number: int,
    probabilities: tabular_policies.Policy,
    chosen: Mapping[int, float],
    decision: open_spiel_twins.Decision,
) -> None:
    where = f"{player.name}, '{game_tree.one_line(decision.text)}'"
    # OpenSpiel's own tables list all actions of the game, the illegal ones with probability 0.
    wrong = [action for action, probability in chosen.items() if probability and action not in decision.actions]
    if wrong:
        raise tabular_policies.PolicyError(
            f"{where}: action {wrong[0]} of OpenSpiel has probability {chosen[wrong[0]]:g}, but is not legal"
        )
    begin, end = player.first[number], player.first[number + 1]
    theirs = {ours: action for action, ours in decision.actions.items()}
    row = [float(chosen.get(theirs[action], 0.0)) for action in player.action[begin:end].tolist()]
    before = probabilities[begin:end]
    if not np.isnan(before).all() and not np.allclose(before, row, rtol=0, atol=_SAME):
        raise tabular_policies.PolicyError(
            f"{where}: the policy differs between information states that OpenSpiel tells apart, and "
            f"this player cannot: '{game_tree.one_line(decision.state.information_state_string(decision.player))}'"
        )
    probabilities[begin:end] = row
