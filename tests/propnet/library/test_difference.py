"""Difference: the rulesheet against a direct simulation."""

import pytest

from gdlx.tests.helpers import simulations

PLAYERS = ("player1", "player2")


def difference(cards: int, second_wins_ties: bool) -> simulations.Simulation:
    deck = set(range(1, cards + 1))
    hand: dict[str, set[int]] = {player: set() for player in PLAYERS}
    seen: dict[str, set[str]] = {}

    def deals() -> dict[str, list[str]]:
        return {"random": [f"(deal {card})" for card in deck]}

    def card_of(move: str) -> int:
        return int(move.split()[1].rstrip(")"))

    centre = card_of((yield seen, deals())["random"])
    deck.remove(centre)
    seen = {player: {f"(centre {centre})"} for player in PLAYERS}
    for player in PLAYERS:
        card = card_of((yield seen, deals())["random"])
        deck.remove(card)
        hand[player].add(card)
        seen = {player: {f"(dealt {card})"}}
    score = dict.fromkeys(PLAYERS, 0)
    turn = 0
    while deck:
        player, other = PLAYERS[turn % 2], PLAYERS[1 - turn % 2]
        card = card_of((yield seen, deals())["random"])
        deck.remove(card)
        hand[player].add(card)
        seen = {player: {f"(dealt {card})"}}
        card = card_of((yield seen, {player: [f"(play {card})" for card in hand[player]]})[player])
        hand[player].remove(card)
        seen = {other: {f"(opponent_played {card})"}}
        score[player] += abs(card - centre)
        centre = card
        turn += 1
    lead = score["player1"] - score["player2"]
    return seen, simulations.duel_goals(*PLAYERS, -1 if second_wins_ties and lead == 0 else lead)


@pytest.mark.parametrize(("cards", "matches"), [(5, 80), (9, 30), (17, 10), (40, 2)])
@pytest.mark.parametrize("ties", ["draw", "second"])
def test_the_rules_are_those_of_a_simulation(cards: int, matches: int, ties: str) -> None:
    spec = f"difference:cards={cards},ties={ties}"
    goals = simulations.compare(spec, lambda: difference(cards, ties == "second"), matches=matches)
    if cards == 5:
        assert goals == {(100, 0), (0, 100)} | ({(50, 50)} if ties == "draw" else set())
