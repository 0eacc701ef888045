"""Racko: the rulesheet against a direct simulation."""

from collections.abc import Mapping

import pytest

from gdlx.propnet import library
from gdlx.tests.helpers import simulations

PLAYERS = ("first", "second")


def racko(slots: int, cards: int, turns: int) -> simulations.Simulation:
    deck = set(range(1, cards + 1))
    rack = {player: [0] * slots for player in PLAYERS}
    seen: dict[str, set[str]] = {}

    def deals() -> dict[str, list[str]]:
        return {"random": [f"(deal {card})" for card in deck]}

    def deal(joint: Mapping[str, str]) -> int:
        card = int(joint["random"].split()[1].rstrip(")"))
        deck.remove(card)
        return card

    for number in range(2 * slots):
        player, slot = PLAYERS[number % 2], number // 2
        rack[player][slot] = deal((yield seen, deals()))
        seen = {player: {f"(dealt {slot + 1} {rack[player][slot]})"}}
    top = deal((yield seen, deals()))
    seen = {player: {f"(top {top})"} for player in PLAYERS}
    for turn in range(turns):
        if any(sorted(own) == own for own in rack.values()):
            break
        player, other = PLAYERS[turn % 2], PLAYERS[1 - turn % 2]
        moves = [*(f"(take {slot + 1})" for slot in range(slots)), *(["draw"] if deck else [])]
        move = (yield seen, {player: moves})[player]
        seen = {player: set(), other: set()}
        card = top
        if move == "draw":
            seen[other] = {"draws"}
            card = deal((yield seen, deals()))
            seen = {player: {f"(drawn {card})"}, other: set()}
            moves = ["discard", *(f"(swap {slot + 1})" for slot in range(slots))]
            move = (yield seen, {player: moves})[player]
            seen = {player: set(), other: set()}
        if move == "discard":
            top = card
        else:
            verb, slot_text = move.strip("()").split()
            slot = int(slot_text) - 1
            rack[player][slot], top = card, rack[player][slot]
            seen[other].add(f"({'took' if verb == 'take' else 'swapped'} {slot + 1})")
        for seat in PLAYERS:
            seen[seat].add(f"(top {top})")
    ordered = [sorted(rack[player]) == rack[player] for player in PLAYERS]
    return seen, simulations.duel_goals(*PLAYERS, ordered[0] - ordered[1])


@pytest.mark.parametrize(
    ("slots", "cards", "turns", "matches"),
    [(2, 5, 6, 60), (2, 6, 3, 60), (3, 12, 50, 25), (4, 9, 5, 25), (6, 30, 20, 3)],
)
def test_the_rules_are_those_of_a_simulation(slots: int, cards: int, turns: int, matches: int) -> None:
    spec = f"racko:slots={slots},cards={cards},turns={turns}"
    goals = simulations.compare(spec, lambda: racko(slots, cards, turns), matches=matches)
    if slots < 4:
        assert goals >= {(100, 0), (0, 100)}
    if slots == 2:
        assert (50, 50) in goals


def test_too_few_cards_are_refused() -> None:
    with pytest.raises(
        library.LibraryError, match=r"20 cards do not fill two racks of 10 slots .* make cards at least 21"
    ):
        library.text("racko:slots=10,cards=20")
