"""Information sets of positions: ways agree with recursion, and impossible observations are named."""

import numpy as np
import pytest

from gdlx.propnet import games
from gdlx.propnet.common import errors
from gdlx.propnet.observations import information_set, plausible_moves, positions
from gdlx.propnet.simulate import machine
from gdlx.tests.helpers import observations


def expected(name: str, position: positions.Position) -> set[tuple[observations.Joint, ...]]:
    return set(observations.list_histories(games.compile_game(name), position.player, position.events))


@pytest.mark.parametrize("way", ["auto", "enumerate", "guided", "sat"])
@pytest.mark.parametrize("name", ["leduc_poker", "phantom_tictactoe", "racko:slots=2,cards=6"])
def test_examples_agree(name: str, way: information_set.Way) -> None:
    net = games.compile_game(name)
    position = positions.random_position(net, 0, 5, seed=1)
    assert position.moves in expected(name, position)
    found = information_set.find_information_set(net, position, way, examples=4)
    every = expected(name, position)
    assert {tuple(map(tuple, history)) for history in found.examples.tolist()} <= every
    if found.complete:
        assert found.histories == found.distinct == len(every)
    else:
        assert found.distinct <= len(every)


def test_a_random_position_is_what_the_player_sees() -> None:
    net = games.compile_game("leduc_poker")
    position = positions.random_position(net, 1, 4, seed=3)
    game, state = machine.for_propnet(net), machine.for_propnet(net).initial(1)
    sizes = [len(role.percepts) for role in net.roles]
    for joint, event in zip(position.moves, position.events, strict=True):
        does = np.concatenate([np.arange(len(role.moves)) == n for role, n in zip(net.roles, joint, strict=True)])
        state, sees = game.step(state, does[:, None])
        assert tuple(np.flatnonzero(machine.split_rows(sees, sizes)[1])) == event.percepts
        assert joint[1] == event.move
    assert not position.is_over


def test_impossible_percepts_are_named() -> None:
    net = games.compile_game("phantom_tictactoe")
    position = positions.random_position(net, 1, 6, seed=1)
    for step in (2, 5):
        event = position.events[step]
        percepts = tuple(n for n in range(len(net.players[1].percepts)) if n not in event.percepts)
        events = [*position.events]
        events[step] = event._replace(percepts=percepts)
        with pytest.raises(information_set.ImpossibleObservationsError, match=f"observed in joint action {step + 1}: "):
            information_set.find_information_set(net, position._replace(events=tuple(events)))
    with pytest.raises(information_set.ImpossibleObservationsError, match="in the initial state"):
        information_set.find_information_set(net, position._replace(first=(0,)))


THREE_BITS = """
(role random) (role p) (init (step 1)) (succ 1 2) (succ 2 3) (succ 3 4) (succ 4 5) (succ 5 6) (succ 6 7) (succ 7 8)
(number 1) (number 2) (number 3) (value 0) (value 1) (compared 4 1 2) (compared 5 2 3) (compared 6 1 3)
(<= (next (step ?next)) (true (step ?now)) (succ ?now ?next))
(<= picks (true (step ?number)) (number ?number))
(<= (legal random (pick ?value)) picks (value ?value))
(<= (legal random noop) (not picks))
(legal p look)
(<= (next (bit ?number ?value)) (true (step ?number)) (does random (pick ?value)))
(<= (next (bit ?number ?value)) (true (bit ?number ?value)))
(<= (sees p differ) (true (step ?now)) (compared ?now ?a ?b) (true (bit ?a ?x)) (true (bit ?b ?y)) (distinct ?x ?y))
(<= terminal (true (step 8))) (goal p 100)
"""  # each two of three hidden bits are compared


@pytest.mark.parametrize("way", ["auto", "enumerate", "sat"])
def test_what_only_search_proves_impossible_is_named_too(way: information_set.Way) -> None:
    """Any two of three bits may differ, which is all that propagation sees, but never all three pairs."""
    net = games.compile_game(rules=THREE_BITS)
    position = positions.random_position(net, 0, 6, seed=1)
    differ = net.players[0].percepts.index("differ")
    events = (*position.events[:3], *(event._replace(percepts=(differ,)) for event in position.events[3:]))
    possible = position._replace(events=events[:5], moves=position.moves[:5])
    assert information_set.find_information_set(net, possible, way).histories == 2
    plausible = plausible_moves.PlausibleMoves(net, 0, position.first)
    plausible.extend_all(events)
    assert plausible.moves[:3, 0].sum() == 6  # both values of every bit
    with pytest.raises(information_set.ImpossibleObservationsError, match="observed in joint action 6: "):
        information_set.find_information_set(net, position._replace(events=events), way)


def test_too_little_time_to_count_is_enough_to_sample() -> None:
    """Some 10^13 histories: they can neither be listed nor counted in this time."""
    net = games.compile_game("krieg_tictactoe")
    position = positions.random_position(net, 0, 12, 0)
    found = information_set.find_information_set(net, position, seconds=0.02)
    assert (found.way, found.histories) == ("guided", None)
    assert found.distinct > 1_000
    with pytest.raises(errors.UserError, match="not all listed within"):
        information_set.find_information_set(net, position, seconds=0.1, listed=True)
    with pytest.raises(errors.UserError, match="not all counted within"):
        information_set.find_information_set(net, position, "enumerate", seconds=0.02)
