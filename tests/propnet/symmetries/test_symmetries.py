"""Symmetries of games: their number, and that the rules themselves, interpreted, do not change under them."""

import dataclasses
import itertools
import random

import numpy as np
import pytest

from gdlx.propnet import games
from gdlx.propnet.circuits import propnet
from gdlx.propnet.datalog import interpreter
from gdlx.propnet.symmetries import symmetries
from gdlx.propnet.syntax import ground_terms

# Order of the group, and of the part that leaves every player its role.
ORDERS = {
    "phantom_ttt": (8, 8),  # those of a square
    "phantom_ttt:tries=abrupt": (8, 8),
    "phantom_ttt:width=2,height=3": (72, 72),  # only columns are lines: exchange them, and the cells of each
    "dark_hex": (2, 2),  # half a turn; the rules search for chains from one side only
    "tictactoe": (8, 8),
    "blind_tictactoe": (16, 8),
    "connect_four": (2, 2),
    "leduc_poker": (8, 8),  # the suits of each rank
    "kuhn_poker": (1, 1),
    "rps": (6, 3),
    "monty_hall": (6, 6),
    "krieg_tictactoe": (64, 32),
}


@pytest.mark.parametrize("game", ORDERS)
def test_orders(game: str) -> None:
    group = symmetries.find_symmetries(games.compile_game(game))
    elements = group.elements()
    assert elements is not None
    assert group.complete
    assert not group.unproved
    assert (group.order, group.order_fixing_players) == ORDERS[game]
    assert len(elements) == group.order
    assert sum(not each.exchanges_players for each in elements) == group.order_fixing_players


class _Renamed:
    """A symmetry by the terms of the rules."""

    def __init__(self, compiled: propnet.PropNet, symmetry: symmetries.Symmetry) -> None:
        self.of = symmetries.renamings(compiled, symmetry)

    def joint(self, joint: dict[str, str]) -> dict[str, str]:
        return {self.of[role].role: self.of[role].moves.get(move, move) for role, move in joint.items()}


@pytest.mark.parametrize(
    "game", [*ORDERS, "simultaneous_breakthrough", "latent_tictactoe", "smallest:players=2,numbers=3"]
)
def test_the_interpreted_rules_are_the_same_after_renaming(game: str) -> None:
    compiled = games.compile_game(game)
    rules = interpreter.Interpreter(games.load_rulesheet(game))
    rng = random.Random(0)
    for symmetry in symmetries.find_symmetries(compiled).generators:
        renamed = _Renamed(compiled, symmetry)
        for _ in range(3):
            state = image = rules.initial
            for _ in range(12):
                legal, after = _legal(rules, state), _legal(rules, image)
                for role in rules.roles:
                    of = renamed.of[role]
                    assert {of.moves.get(move, move) for move in legal[role]} == set(after[of.role])
                goals, other = rules.goals(state), rules.goals(image)
                is_end = rules.is_terminal(state)
                assert is_end == rules.is_terminal(image)
                if is_end:
                    assert {renamed.of[role].role: values for role, values in goals.items()} == other
                    break
                joint = {role: rng.choice(sorted(moves)) for role, moves in legal.items()}
                terms = _terms(rules, state, joint), _terms(rules, image, renamed.joint(joint))
                seen, mirrored = rules.percepts(state, terms[0]), rules.percepts(image, terms[1])
                for role, percepts in seen.items():
                    of = renamed.of[role]
                    names = map(ground_terms.to_text, percepts)
                    assert {of.percepts.get(name, name) for name in names} == set(
                        map(ground_terms.to_text, mirrored[of.role])
                    )
                state, image = rules.next(state, terms[0]), rules.next(image, terms[1])


def _legal(rules: interpreter.Interpreter, state: interpreter.State) -> dict[str, list[str]]:
    return {role: list(map(ground_terms.to_text, moves)) for role, moves in rules.legal(state).items()}


def _terms(rules: interpreter.Interpreter, state: interpreter.State, joint: dict[str, str]) -> interpreter.JointAction:
    legal = rules.legal(state)
    return {
        role: next(move for move in legal[role] if ground_terms.to_text(move) == name) for role, name in joint.items()
    }


PENNIES = """
(role a) (role b) (side heads) (side tails)
(<= (legal ?p ?s) (role ?p) (side ?s))
(<= (next (shows ?p ?s)) (does ?p ?s))
(<= terminal (true (shows ?p ?s)))
(<= same (true (shows a ?s)) (true (shows b ?s)))
(<= differ (true (shows a ?s)) (true (shows b ?t)) (distinct ?s ?t))
(<= (goal a 100) same) (<= (goal b 0) same)
(<= (goal a 0) differ) (<= (goal b 100) differ)
"""


def test_no_other_permutation_of_a_small_game_keeps_it() -> None:
    # Either exchange the sides of both coins, or the players and the sides of one coin.
    compiled = games.compile_game(rules=PENNIES)
    kept = 0
    for roles in ((0, 1), (1, 0)):
        for moves in itertools.product(map(np.array, itertools.permutations(range(2))), repeat=2):
            percepts = tuple(
                np.array([role.percepts.index(_renamed_action(compiled, name, roles, moves)) for name in role.percepts])
                for role in compiled.roles
            )
            for registers in itertools.permutations(range(len(compiled.initial))):
                candidate = symmetries.Symmetry(roles, moves, percepts, 2 * np.array(registers))
                kept += symmetries.is_proved(compiled, candidate)
    assert kept == symmetries.find_symmetries(compiled).order == 4


def _renamed_action(
    compiled: propnet.PropNet, percept: str, roles: tuple[int, ...], moves: tuple[symmetries.Longs, ...]
) -> str:
    _, role, move = percept.strip("()").split()
    number = [each.name for each in compiled.roles].index(role)
    image = compiled.roles[roles[number]]
    return f"(does {image.name} {image.moves[moves[number][compiled.roles[number].moves.index(move)]]})"


@pytest.mark.parametrize("game", ["phantom_ttt", "dark_hex", "blind_tictactoe"])
def test_wrong_permutations_are_not_proved(game: str) -> None:
    compiled = games.compile_game(game)
    symmetry = symmetries.find_symmetries(compiled).generators[-1]
    assert symmetries.is_proved(compiled, symmetry)
    rng = np.random.default_rng(0)
    for _ in range(5):
        swapped = list(map(np.copy, symmetry.moves))
        a, b = rng.choice(len(swapped[0]) - 1, 2, replace=False)
        swapped[0][[a, b]] = swapped[0][[b, a]]
        assert not symmetries.is_proved(compiled, dataclasses.replace(symmetry, moves=tuple(swapped)))
    registers = symmetry.registers.copy()
    registers[0], registers[1] = registers[1], registers[0]
    assert not symmetries.is_proved(compiled, dataclasses.replace(symmetry, registers=registers))


def test_products_of_symmetries_are_symmetries() -> None:
    compiled = games.compile_game("blind_tictactoe")
    elements = symmetries.find_symmetries(compiled).elements()
    assert elements is not None
    for a, b in itertools.product(elements[:6], elements[-6:]):
        assert symmetries.is_proved(compiled, a.then(b))
    assert {a.then(b).key for a in elements for b in elements} == {a.key for a in elements}
