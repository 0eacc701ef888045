"""Games simulated directly in Python, compared with their rulesheets along random play.

A simulation is a generator, which plays one match. It yields what players saw of the last step and the legal moves, is
sent the joint action, and at the end returns what they saw last and their goals.
"""

import random
from collections.abc import Callable, Collection, Generator, Mapping

from gdlx.propnet import games
from gdlx.propnet.datalog import interpreter
from gdlx.propnet.syntax import ground_terms

Seen = Mapping[str, Collection[str]]  # percepts of a player; none where it is missing
Legal = Mapping[str, Collection[str]]  # legal moves of a role; only noop where it is missing
Simulation = Generator[tuple[Seen, Legal], Mapping[str, str], tuple[Seen, Mapping[str, int]]]


def compare(spec: str, start: Callable[[], Simulation], *, matches: int, seed: int = 0) -> set[tuple[int, ...]]:
    """Plays at random, and asserts that the rules give the same legal moves, percepts, ends and goals.

    Returns the goals that the matches ended with.
    """
    rules = interpreter.Interpreter(games.load_rulesheet(spec))
    rng = random.Random(seed)
    return {_compare_match(rules, start(), rng) for _ in range(matches)}


def _compare_match(rules: interpreter.Interpreter, simulation: Simulation, rng: random.Random) -> tuple[int, ...]:
    state = rules.initial
    _, legal = next(simulation)
    while True:
        options = {
            role: {ground_terms.to_text(move): move for move in rules.legal(state)[role]} for role in rules.roles
        }
        assert {role: set(moves) for role, moves in options.items()} == {
            role: set(legal.get(role, {"noop"})) for role in rules.roles
        }
        assert not rules.is_terminal(state)
        chosen = {role: rng.choice(sorted(moves)) for role, moves in options.items()}
        joint = {role: options[role][move] for role, move in chosen.items()}
        percepts = rules.percepts(state, joint)
        state = rules.next(state, joint)
        goals = None
        try:
            seen, legal = simulation.send(chosen)
        except StopIteration as end:
            seen, goals = end.value
        assert {
            player: {ground_terms.to_text(percept) for percept in percepts[player]} for player in rules.players
        } == {player: set(seen.get(player, ())) for player in rules.players}
        if goals is not None:
            assert rules.is_terminal(state)
            assert rules.goals(state) == {player: (goals[player],) for player in rules.players}
            return tuple(goals[player] for player in rules.players)


def duel_goals(first: str, second: str, lead: int) -> dict[str, int]:
    """The goals of two players, of whom the first is ahead (lead > 0), behind (lead < 0) or neither."""
    sign = (lead > 0) - (lead < 0)
    return {first: 50 + 50 * sign, second: 50 - 50 * sign}
