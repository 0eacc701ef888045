"""Plausible moves over random play of every library game, and unit propagation against all assignments."""

import itertools
import random

import numpy as np
import pytest

from gdlx.propnet import games, library
from gdlx.propnet.circuits import aig, propnet
from gdlx.propnet.observations import plausible_moves, unit_propagation
from gdlx.tests.helpers import observations

MATCHES = 3
STEPS = 40


def infer(net: propnet.PropNet, match: observations.Match, player: int) -> plausible_moves.PlausibleMoves:
    plausible = plausible_moves.PlausibleMoves(net, player, match.first[player])
    plausible.extend_all(match.events[player])
    return plausible


@pytest.mark.parametrize("name", library.names())
def test_no_move_of_the_true_history_is_excluded(name: str) -> None:
    net = games.compile_game(name)
    forced = 0
    for seed in range(MATCHES):
        match = observations.play(net, STEPS, seed)
        for player in range(len(net.players)):
            moves = infer(net, match, player).moves
            for step, joint in enumerate(match.joints):
                assert moves[step, range(len(joint)), joint].all(), (name, seed, player, step)
            forced += (moves.sum(axis=2) == 1).sum()
    assert forced  # at least the player's own moves are known


# Leduc's board card and Meier's announcements are known late; blind tic-tac-toe and gops hide whole moves.
@pytest.mark.parametrize(
    ("name", "steps"),
    [("leduc_poker", 6), ("phantom_tictactoe", 6), ("blind_tictactoe", 3), ("gops:rounds=2,extra=1", 9), ("meier", 5)],
)
def test_no_move_of_any_history_that_agrees_is_excluded(name: str, steps: int) -> None:
    net = games.compile_game(name)
    for seed in range(MATCHES):
        match = observations.play(net, steps, seed)
        for player in range(len(net.players)):
            histories = list(observations.list_histories(net, player, match.events[player]))
            assert match.joints in histories
            moves = infer(net, match, player).moves
            every = np.array(histories).reshape(len(histories), len(match.joints), len(net.roles))
            for step, role in np.ndindex(every.shape[1:]):
                assert moves[step, role, every[:, step, role]].all(), (name, seed, player, step, role)


def test_what_is_seen_late_excludes_early_moves() -> None:
    net = games.compile_game("leduc_poker")
    match = next(match for match in (observations.play(net, 20, seed) for seed in range(50)) if len(match.joints) > 5)
    plausible = plausible_moves.PlausibleMoves(net, 0, match.first[0])
    deal_to_other = []  # how many cards the other player may have been dealt
    for event in match.events[0]:
        plausible.extend(event)
        if len(plausible.moves) > 1:
            deal_to_other.append(int(plausible.moves[1, 2].sum()))
    assert deal_to_other[-1] < deal_to_other[0]


def test_observations_that_no_play_gives_are_a_contradiction() -> None:
    net = games.compile_game("kuhn_poker")
    match = observations.play(net, 3, 0)
    first = match.events[0][0]
    king, queen = (net.players[0].percepts.index(f"(dealt {card})") for card in ("king", "queen"))
    plausible = plausible_moves.PlausibleMoves(net, 0, match.first[0])
    with pytest.raises(unit_propagation.ContradictionError):
        plausible.extend(first._replace(percepts=(king, queen)))
    with pytest.raises(unit_propagation.ContradictionError):
        plausible_moves.PlausibleMoves(net, 0, (0,))


def random_circuit(rng: random.Random, inputs: int, gates: int) -> list[aig.Gate]:
    nodes: list[aig.Gate] = [() for _ in range(inputs)]
    for _ in range(gates):
        chosen = rng.sample(range(1, len(nodes) + 1), k=min(rng.randint(2, 4), len(nodes)))
        nodes.append(tuple(2 * node + rng.randint(0, 1) for node in chosen))
    return nodes


def evaluate(nodes: list[aig.Gate], bits: tuple[int, ...]) -> list[int]:
    values, given = [0], iter(bits)
    for gate in nodes:
        values.append(all(values[lit >> 1] ^ (lit & 1) for lit in gate) if gate else next(given))
    return values


@pytest.mark.parametrize("seed", range(60))
def test_what_is_propagated_holds_for_all_assignments(seed: int) -> None:
    """Constraints come in between the gates, as they do in a match."""
    rng, inputs = random.Random(seed), 8
    nodes = random_circuit(rng, inputs, 25)
    group = [2 * node for node in rng.sample(range(1, inputs + 1), k=3)]
    required = [2 * rng.randint(inputs + 1, len(nodes)) + rng.randint(0, 1) for _ in range(3)]
    models = []
    for bits in itertools.product((0, 1), repeat=inputs):
        values = evaluate(nodes, bits)
        true = [values[literal >> 1] ^ (literal & 1) for literal in (*group, *required)]
        if sum(true[:3]) == 1 and all(true[3:]):
            models.append(values)
    propagation = unit_propagation.UnitPropagation()
    try:
        last = max(literal >> 1 for literal in required[:1])
        propagation.add_gates(nodes[:last])
        propagation.require(required[:1])
        propagation.add_group(group)
        propagation.add_gates(nodes[last:])
        propagation.require(required[1:])
    except unit_propagation.ContradictionError:
        assert not models
        return
    for model in models:
        assert all(value in (-1, held) for value, held in zip(propagation.values, model, strict=True))
    # With all inputs known, so is everything: propagation is complete there, and agrees about the constraints.
    bits = tuple(rng.randint(0, 1) for _ in range(inputs))
    values = evaluate(nodes, bits)
    agrees = any(values == model for model in models)
    try:
        propagation.require([2 * node + (1 - bit) for node, bit in enumerate(bits, 1)])
    except unit_propagation.ContradictionError:
        assert not agrees
    else:
        assert agrees
        assert propagation.values == values
