"""Games with binary numbers have the trees of sheets that listed all values of them."""

import pytest

from gdlx.envs.trees import unroll
from gdlx.propnet import games

# Nodes of the merged tree, histories, terminals, information sets of either player, terminals that pay the first player
# and what they pay it in all: as the listing sheets had them.
SIZES = {
    "goofspiel:cards=4,info=perfect,order=descending": (1_313, 1_313, 576, 161, 232, 0),
    "goofspiel:cards=3,order=random": (490, 490, 216, 45, 78, 0),
    "goofspiel:cards=3,info=perfect,order=random": (490, 490, 216, 57, 78, 0),
    "gops:rounds=2,extra=1": (11_495, 54_020, 20_160, 105, 10_080, 0),
    "gops:rounds=2,extra=3": (100_126, 563_050, 241_920, 252, 120_960, 0),
    "oshi_zumo:coins=4,size=1,horizon=3,alesia=true": (1_268, 1_268, 1_073, 151, 57, 0),
    "oshi_zumo:coins=6,size=1,min_bid=2": (126, 126, 64, 11, 9, 0),
    "smallest:players=2,numbers=3,target=30,steps=4": (6_895, 6_895, 6_129, 766, 4_968, 79_380),
}


@pytest.mark.parametrize("spec", SIZES)
def test_sizes(spec: str) -> None:
    tree = unroll.unroll(games.compile_game(spec))
    nodes, histories, terminals, sets, won, paid = SIZES[spec]
    assert (sum(tree.counts.nodes), sum(tree.counts.histories)) == (nodes, histories)
    payoffs, counts = tree.terminals.payoff[:, 0], tree.terminals.histories
    assert [float(counts.sum()), float(counts[payoffs > 0].sum())] == [terminals, won]
    assert float((counts * payoffs).sum()) == paid
    assert [player.sets for player in tree.players] == [sets, sets]
