"""Beliefs of agents in a game that reveals late what was dealt early."""

import numpy as np
import pytest

from gdlx.players.agents import agent, match_beliefs
from gdlx.players.matches import arenas
from gdlx.propnet.common import errors
from gdlx.solvers.search import beliefs

SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("game", "steps"), [("racko:slots=3,cards=12", 16), pytest.param("racko:slots=6,cards=30", 30, marks=SLOW)]
)
def test_a_belief_late_in_racko_has_not_collapsed(game: str, steps: int) -> None:
    arena = arenas.make_arena(game)
    seeds = (seed for seed in range(20))
    view = next(
        view
        for view in (match_beliefs.play_random_match(arena, np.random.default_rng(seed))[0] for seed in seeds)
        if view.step > steps
    )
    view = type(view)(view.game, view.player, view.first, view.events[:steps])
    belief = match_beliefs.MatchBeliefs(agent.PlayerContext(arena, 0, np.random.default_rng(0))).at(view)
    assert not belief.report.collapsed
    assert not belief.report.biased
    assert belief.report.histories is not None
    assert belief.report.distinct >= min(belief.report.histories, 1_000)
    assert belief.weights.sum() == pytest.approx(1)


def test_a_poor_belief_is_never_silent(recwarn: pytest.WarningsRecorder) -> None:
    view = match_beliefs.play_random_match(arenas.make_arena("kuhn_poker"), np.random.default_rng(0))[0]
    good = beliefs.Report("guided", 1_024, 1_024, 1_024, 0.1, distinct=900, effective_sample_size=900.0)
    match_beliefs.remark_if_poor(good, view)
    assert not recwarn.list
    with pytest.warns(errors.Remark, match="player1 in kuhn_poker has collapsed"):
        match_beliefs.remark_if_poor(good._replace(effective_sample_size=2.0), view)
    with pytest.warns(errors.Remark, match="is biased"):
        match_beliefs.remark_if_poor(good._replace(biased=True), view)
