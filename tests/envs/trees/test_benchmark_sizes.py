"""Sizes of games that others publish: counted by rules of their own, and by unrolling where that is quick.

The published numbers are those of OpenSpiel's games: information sets in which a player moves, terminal histories.
"""

import functools
import heapq
import itertools
import math
from collections.abc import Sequence

import pytest

from gdlx.envs import game_spec

Sizes = tuple[int, int]  # information sets, terminals


def unrolled(spec: str) -> Sizes:
    """Information sets without those in which both only wait, and terminals."""
    tree = game_spec.unroll_game(spec)
    return sum(player.sets for player in tree.players), int(tree.terminals.histories.sum())


# ---- liar's dice


def liars_dice(dice: int, sides: int) -> Sizes:
    """Hands are multisets, for the players; of the 2 dice * sides bids any subset may have been made so far."""
    bids = 2 * dice * sides
    return math.comb(sides + dice - 1, dice) * 2**bids, sides ** (2 * dice) * (2**bids - 1)


def liars_dice_forced(dice: int, sides: int) -> int:
    """Information sets after the highest bid, in which one can only call it a lie."""
    return math.comb(sides + dice - 1, dice) << (2 * dice * sides - 1)


@pytest.mark.parametrize(("dice", "sides"), [(1, 2), (1, 3), (2, 2), (1, 5)])
def test_liars_dice(dice: int, sides: int) -> None:
    infosets, terminals = liars_dice(dice, sides)
    assert unrolled(f"liars_dice:dice={dice},sides={sides}") == (infosets - liars_dice_forced(dice, sides), terminals)


def test_published_liars_dice() -> None:
    assert liars_dice(1, 6) == (24_576, 147_420)
    assert liars_dice(2, 5) == (15_728_640, 655_359_375)


# ---- goofspiel, prizes in random order


def goofspiel(cards: int) -> Sizes:
    """Information sets up to the last choice: prizes in order, own cards, and results that some opponent allows."""
    infosets = 0
    for bids in range(cards - 1):
        seen = itertools.product(
            itertools.permutations(range(1, cards + 1), bids), itertools.product((-1, 0, 1), repeat=bids)
        )
        infosets += math.perm(cards, bids + 1) * sum(is_possible(own, results, cards) for own, results in seen)
    return 2 * infosets, math.factorial(cards) ** 3


def is_possible(own: Sequence[int], results: Sequence[int], cards: int) -> bool:
    """Whether the opponent has distinct cards below, equal to and above one's own: each the earliest deadline first."""
    lowest, highest = {-1: 1, 0: 0, 1: -cards}, {-1: cards, 0: 0, 1: -1}  # relative to one's own card
    waiting = sorted(
        (max(1, card + lowest[result]), min(cards, card + highest[result]))
        for card, result in zip(own, results, strict=True)
    )
    deadlines: list[int] = []
    for card in range(1, cards + 1):
        while waiting and waiting[0][0] <= card:
            heapq.heappush(deadlines, waiting.pop(0)[1])
        if deadlines and heapq.heappop(deadlines) < card:
            return False
    return not waiting and not deadlines


@pytest.mark.parametrize("cards", [2, 3, 4, pytest.param(5, marks=pytest.mark.slow)])
def test_goofspiel(cards: int) -> None:
    assert unrolled(f"goofspiel:cards={cards},order=random") == goofspiel(cards)


def test_published_goofspiel() -> None:
    assert goofspiel(6) == (23_050_572, 373_248_000)


# ---- oshi-zumo


def oshi_zumo(coins: int, size: int, min_bid: int) -> Sizes:
    """All histories are known to both: two information sets for every one that goes on."""

    @functools.cache
    def count(first: int, second: int, place: int) -> tuple[int, int]:
        if abs(place) > size or first == second == 0:
            return 0, 1
        bids = [range(min_bid, left + 1) if left >= min_bid else (left,) for left in (first, second)]
        below = [count(first - a, second - b, place + (a > b) - (a < b)) for a in bids[0] for b in bids[1]]
        return 1 + sum(inner for inner, _ in below), sum(ends for _, ends in below)

    inner, ends = count(coins, coins, 0)
    return 2 * inner, ends


def unrolled_with_forced(spec: str) -> Sizes:
    tree = game_spec.unroll_game(spec)
    return sum(map(sum, tree.counts.information_sets)), int(tree.terminals.histories.sum())


@pytest.mark.parametrize(("coins", "size", "min_bid"), [(4, 1, 1), (6, 2, 1), (8, 1, 3), (7, 3, 2)])
def test_oshi_zumo(coins: int, size: int, min_bid: int) -> None:
    spec = f"oshi_zumo:coins={coins},size={size},min_bid={min_bid}"
    assert unrolled_with_forced(spec) == oshi_zumo(coins, size, min_bid)


def test_published_oshi_zumo() -> None:
    """The parameters are not published, and these are the ones that give both numbers."""
    assert oshi_zumo(13, 3, 1) == (31_502_916, 15_905_730)
