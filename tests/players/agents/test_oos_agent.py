"""Online outcome sampling as an agent."""

import pytest

from gdlx.players.agents import agent, agent_registry
from gdlx.players.matches import arenas, contest

QUICK = "start_iterations=20,iterations=3,batch=64,table=8"


@pytest.mark.slow
@pytest.mark.parametrize("aim", ["set", "public"])
def test_matches_are_reproducible(aim: str) -> None:
    """Also what is sampled before the first of them: agents and arenas are new."""
    text = f"oos:{QUICK},aim={aim}"
    first, second = (
        contest.compete(arenas.make_arena("kuhn_poker"), [text, "random"], games=40, seed=3, play_seconds=60)
        for _ in range(2)
    )
    assert first == second
    assert first.incidents == ()
    other = contest.compete(arenas.make_arena("kuhn_poker"), [text, "random"], games=40, seed=4, play_seconds=60)
    assert other.scores != first.scores


@pytest.mark.slow
def test_it_plays_better_than_uniformly() -> None:
    arena = arenas.make_arena("kuhn_poker")
    player = agent_registry.make_agent("oos:start_iterations=600,iterations=2,batch=128,table=8")
    actual = contest.compete(arena, [player, "random"], games=300, play_seconds=60)
    # An equilibrium gets 0.2 from a uniform player in the mean of both roles, a uniform one 0; the mean of 300 games
    # has a standard error of about 0.08.
    assert actual.scores[0].overall.payoff.mean > 0.08


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("aimed=1", "above 0 and below 1"),
        ("aimed=0.6,batch=64", "multiple of 0.5; the nearest is aimed=0.5"),
        ("aimed=0.01", "the nearest is aimed=0.0625"),
        ("batch=100", "multiple of 32"),
        ("table=40", "4 to 26"),
        ("exploration=0", "more than 0"),
        ("seconds=-1", "more than 0 seconds"),
        ("seed=9223372036854775808", "a 64-bit integer"),
        ("start=0", "more than 0 seconds"),
        ("aim=everything", "set or public"),
    ],
)
def test_wrong_options(options: str, message: str) -> None:
    with pytest.raises(agent.AgentError, match=message):
        agent_registry.make_agent(f"oos:{options}")


def test_nothing_is_public_where_all_is_blind() -> None:
    with pytest.raises(agent.AgentError, match="use aim=set"):
        contest.compete("blind_tictactoe", ["oos:aim=public", "random"], games=1)
