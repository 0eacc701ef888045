"""Trees in blocks against trees of single terminals: random sheets of hidden counters, and the library."""

from collections.abc import Iterator

import hypothesis
import hypothesis.strategies as st
import jax
import pytest

from gdlx.envs import game_facts
from gdlx.envs.trees import unroll
from gdlx.envs.trees.factored import unroll_blocks
from gdlx.propnet import games, library
from gdlx.tests.helpers import compare_trees, sheets


@pytest.fixture(autouse=True, scope="module")
def _x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def _sheet(players: int, *, turns: bool, wind: bool, counts: str, shows: str, opens: str) -> str:
    """Players with hidden counters that decide what they may do, and what they do to the world.

    Args:
      players: their number.
      turns: whether they move in turn, or all at once.
      wind: whether chance moves with them.
      counts: when a player's hidden counter goes up.
      shows: what a player perceives.
      opens: when a player opens its door, which everybody's goals depend on.
    """
    names = [f"p{n}" for n in range(players)]
    moves = [f"(<= (legal {name} (try ?x)) (box ?x) (true (turn {n})))" for n, name in enumerate(names)]
    moves += [f"(<= (legal {name} noop) (true (turn ?n)) (distinct ?n {n}))" for n, name in enumerate(names)]
    if not turns:
        moves = ["(<= (legal ?p (try ?x)) (player ?p) (box ?x))"]
    chance = ["(role random) (legal random (wind 1)) (legal random (wind 2))"] if wind else []
    steps = players * 2 if turns else 3
    return "\n".join(
        [
            *(f"(role {name}) (player {name}) (init (counter {name} 0))" for name in names),
            *chance,
            "(box 1) (box 2) (up 0 1) (up 1 2) (up 2 2) (init (step 0)) (init (turn 0))",
            *(f"(after {n} {n + 1}) (next_turn {n} {(n + 1) % players})" for n in range(steps)),
            "(<= (next (step ?t)) (true (step ?s)) (after ?s ?t))",
            "(<= (next (turn ?m)) (true (turn ?n)) (next_turn ?n ?m))",
            *moves,
            "(<= (legal ?p (try 3)) (true (counter ?p 2)))" if not turns else "",
            f"(<= (rises ?p) (player ?p) {counts})",
            "(<= (next (counter ?p ?d)) (rises ?p) (true (counter ?p ?c)) (up ?c ?d))",
            "(<= (next (counter ?p ?c)) (true (counter ?p ?c)) (not (rises ?p)))",
            f"(<= (sees ?p something) (player ?p) {shows})",
            f"(<= (next (open ?p)) (player ?p) {opens})",
            "(<= (next (open ?p)) (true (open ?p)))",
            f"(<= terminal (true (step {steps})))",
            "(<= (several) (true (open ?p)) (true (open ?q)) (distinct ?p ?q))",
            "(<= (goal ?p 100) (true (open ?p)) (not (several)))",
            "(<= (goal ?p 60) (true (open ?p)) (several))",
            "(<= (goal ?p 20) (player ?p) (not (true (open ?p))))",
        ]
    )


_COUNTS = (
    "(does ?p (try 1))",
    "(does ?p (try 2)) (not (true (open ?p)))",
    "(does ?p (try ?x)) (does random (wind ?x))",
)
_SHOWS = (
    "(does ?q (try 1)) (distinct ?p ?q)",
    "(true (counter ?p 1)) (does ?p (try 2))",
    "(true (open ?q)) (distinct ?p ?q)",
    "(true (counter ?q 1)) (distinct ?p ?q)",  # not hidden, after all
)
_OPENS = ("(does ?p (try 2)) (true (counter ?p 1))", "(rises ?p) (true (counter ?p 1))", "(does ?p (try 1))")


@hypothesis.settings(max_examples=3)
@hypothesis.example(players=3, turns=True, wind=False, counts=_COUNTS[0], shows=_SHOWS[0], opens=_OPENS[1], seed=0)
@hypothesis.example(players=2, turns=False, wind=True, counts=_COUNTS[2], shows=_SHOWS[3], opens=_OPENS[0], seed=0)
@hypothesis.given(
    players=st.sampled_from([2, 3]),
    turns=st.booleans(),
    wind=st.booleans(),
    counts=st.sampled_from(_COUNTS),
    shows=st.sampled_from(_SHOWS),
    opens=st.sampled_from(_OPENS),
    seed=st.integers(0, 9),
)
def test_random_rules_of_hidden_counters(
    players: int, turns: bool, wind: bool, counts: str, shows: str, opens: str, seed: int
) -> None:
    """Two or three players, in turn or at once, with or without chance: every metric, of CFR at every iteration."""
    wind = wind or "wind" in counts
    propnet = sheets.compile_text(_sheet(players, turns=turns, wind=wind, counts=counts, shows=shows, opens=opens))
    compare_trees.assert_same_solving(unroll_blocks.unroll(propnet), unroll.unroll(propnet), iterations=2, seed=seed)


_LARGEST = 300_000  # histories of a step, of games that are compared as a whole


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(library.names()))
def test_every_game_of_the_library_that_unrolls(name: str) -> None:
    propnet = games.compile_game(name)
    if max(game_facts.probe(propnet).histories(_LARGEST).histories) > _LARGEST:
        pytest.skip("it is too large to unroll node by node in a test")
    blocks, plain = unroll_blocks.unroll(propnet), unroll.unroll(propnet)
    compare_trees.assert_same_solving(blocks, plain, iterations=5)
