"""The game of pure strategy: both rulesheets against direct simulations."""

import pytest

from gdlx.propnet import games
from gdlx.propnet.circuits import measure
from gdlx.tests.helpers import simulations

PLAYERS = ("player1", "player2")


def card_of(move: str) -> int:
    return int(move.split()[1].rstrip(")"))


def gops(rounds: int, extra: int) -> simulations.Simulation:
    deck = set(range(1, 3 * rounds + extra + 1))
    hand: dict[str, set[int]] = {player: set() for player in PLAYERS}
    seen: dict[str, set[str]] = {}
    for number in range(2 * rounds):
        card = card_of((yield seen, {"random": [f"(deal {card})" for card in deck]})["random"])
        deck.remove(card)
        hand[PLAYERS[number % 2]].add(card)
    lead = 0
    for _ in range(rounds):
        prize = card_of((yield seen, {"random": [f"(turn_up {card})" for card in deck]})["random"])
        deck.remove(prize)
        seen = {p: {f"(prize {prize})", *(f"(in_hand {card})" for card in hand[p])} for p in PLAYERS}
        joint = yield seen, {player: [f"(bid {card})" for card in hand[player]] for player in PLAYERS}
        bids = [card_of(joint[player]) for player in PLAYERS]
        for player, bid in zip(PLAYERS, bids, strict=True):
            hand[player].remove(bid)
        seen = {player: {f"(opponent_bid {bid})"} for player, bid in zip(PLAYERS, reversed(bids), strict=True)}
        lead += prize if bids[0] > bids[1] else -prize
    return seen, simulations.duel_goals(*PLAYERS, lead)


def gops_with_slots(rounds: int, extra: int) -> simulations.Simulation:
    deck = set(range(1, 3 * rounds + extra + 1))
    table: dict[int, int] = {}
    hand: dict[str, dict[int, int]] = {player: {} for player in PLAYERS}
    seen: dict[str, set[str]] = {}
    for number in range(3 * rounds):
        card = card_of((yield seen, {"random": [f"(deal {card})" for card in deck]})["random"])
        deck.remove(card)
        if number < rounds:
            table[number + 1] = card
            seen = {}
        else:
            player, slot = PLAYERS[(number - rounds) % 2], (number - rounds) // 2 + 1
            hand[player][slot] = card
            seen = {player: {f"(dealt {slot} {card})"}}
    lead = 0
    for number in range(1, rounds + 1):
        prize = table[number]
        for player in PLAYERS:
            seen.setdefault(player, set()).add(f"(prize {prize})")
        bids = []
        for player, other in (PLAYERS, PLAYERS[::-1]):
            slot = card_of((yield seen, {player: [f"(bid {slot})" for slot in hand[player]]})[player])
            bids.append(hand[player].pop(slot))
            seen = {other: {f"(bid_from {slot})"}}
        for player, bid in zip(PLAYERS, reversed(bids), strict=True):
            seen.setdefault(player, set()).add(f"(opponent_bid {bid})")
        lead += prize if bids[0] > bids[1] else -prize
    return seen, simulations.duel_goals(*PLAYERS, lead)


@pytest.mark.parametrize(("rounds", "extra", "matches"), [(2, 0, 60), (3, 2, 30), (6, 30, 4)])
def test_the_rules_are_those_of_a_simulation(rounds: int, extra: int, matches: int) -> None:
    goals = simulations.compare(f"gops:rounds={rounds},extra={extra}", lambda: gops(rounds, extra), matches=matches)
    assert goals >= {(100, 0), (0, 100)} or rounds > 3


@pytest.mark.parametrize(("rounds", "extra", "matches"), [(2, 0, 60), (3, 2, 30), (6, 30, 4)])
def test_the_rules_with_slots_are_those_of_a_simulation(rounds: int, extra: int, matches: int) -> None:
    spec = f"gops:rounds={rounds},extra={extra},slots=yes"
    goals = simulations.compare(spec, lambda: gops_with_slots(rounds, extra), matches=matches)
    assert goals >= {(100, 0), (0, 100)} or rounds > 3


def test_gops_of_48_cards_is_small() -> None:
    operations = measure.sizes(games.compile_game("gops:rounds=6,extra=30"))["operations"]
    assert isinstance(operations, int)
    assert operations <= 1_300  # 84 872 with a list of leads
