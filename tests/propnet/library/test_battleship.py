"""Battleship: the rulesheet against a direct simulation."""

import pytest

from gdlx.propnet import library
from gdlx.tests.helpers import simulations

PLAYERS = ("first", "second")
LENGTHS = {"destroyer": 2, "cruiser": 3, "submarine": 3, "battleship": 4, "carrier": 5}
Cells = frozenset[tuple[int, int]]


def placements(side: int, length: int) -> dict[str, Cells]:
    found = {}
    for x in range(1, side + 1):
        for y in range(1, side + 1):
            if x + length - 1 <= side:
                found[f"(place {x} {y} across)"] = frozenset((x + k, y) for k in range(length))
            if y + length - 1 <= side:
                found[f"(place {x} {y} down)"] = frozenset((x, y + k) for k in range(length))
    return found


def fleet(ships: int) -> list[str]:
    return sorted(list(LENGTHS)[:ships], key=lambda ship: -LENGTHS[ship])


def battleship(side: int, ships: int) -> simulations.Simulation:
    board: dict[str, dict[str, set[tuple[int, int]]]] = {player: {} for player in PLAYERS}
    seen: dict[str, set[str]] = {}
    for ship in fleet(ships):
        for player in PLAYERS:
            taken = set().union(*board[player].values())
            free = {move: cells for move, cells in placements(side, LENGTHS[ship]).items() if not cells & taken}
            board[player][ship] = set(free[(yield seen, {player: free})[player]])
    unshot = {player: {(x, y) for x in range(1, side + 1) for y in range(1, side + 1)} for player in PLAYERS}
    turn = 0
    while all(any(board[player].values()) for player in PLAYERS):
        shooter, target = PLAYERS[turn % 2], PLAYERS[1 - turn % 2]
        moves = {f"(shoot {x} {y})": (x, y) for x, y in unshot[shooter]}
        cell = moves[(yield seen, {shooter: moves})[shooter]]
        unshot[shooter].remove(cell)
        outcome = "miss"
        for ship, parts in board[target].items():
            if cell in parts:
                parts.remove(cell)
                outcome = f"(hit {ship})" if parts else f"(sunk {ship})"
        seen = {shooter: {outcome}, target: {outcome, f"(shot_at {cell[0]} {cell[1]})"}}
        turn += 1
    afloat = [any(board[player].values()) for player in PLAYERS]
    return seen, simulations.duel_goals(*PLAYERS, afloat[0] - afloat[1])


@pytest.mark.parametrize(("side", "ships", "matches"), [(2, 1, 20), (3, 3, 10), (4, 4, 4), (6, 5, 1)])
def test_the_rules_are_those_of_a_simulation(side: int, ships: int, matches: int) -> None:
    spec = f"battleship:side={side},ships={ships}"
    goals = simulations.compare(spec, lambda: battleship(side, ships), matches=matches)
    assert goals == {(100, 0), (0, 100)} or matches < 10


@pytest.mark.parametrize(("side", "ships"), [(2, 1), (3, 2), (3, 3), (4, 4), (5, 5)])
def test_the_smallest_boards_on_which_ships_always_fit(side: int, ships: int) -> None:
    """Whatever was placed before, each ship fits; on a smaller board some ship may not, and it is refused."""
    assert always_fit(side, ships)
    assert library.text(f"battleship:side={side},ships={ships}")
    if side > 2:
        smaller = f"battleship:side={side - 1},ships={ships}"
        if always_fit(side - 1, ships):
            assert library.text(smaller)
        else:
            with pytest.raises(library.LibraryError, match=rf"make side at least {side}\."):
                library.text(smaller)


def always_fit(side: int, ships: int) -> bool:
    boards: set[Cells] = {frozenset()}
    for ship in fleet(ships):
        ways = placements(side, LENGTHS[ship]).values()
        following = [{board | cells for cells in ways if not cells & board} for board in boards]
        if not all(following):
            return False
        boards = set().union(*following)
    return True
