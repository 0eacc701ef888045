"""The circuit of observations against recursion over single games: it accepts what agrees, and nothing else."""

import itertools

import numpy as np
import pytest

from gdlx.propnet import games
from gdlx.propnet.circuits import build as building
from gdlx.propnet.circuits import compiler, propnet
from gdlx.propnet.observations import observation_circuit, unit_propagation
from gdlx.propnet.simulate import by_level
from gdlx.tests.helpers import observations, support

# Reachability is a recursion through the state: a walk hidden from the first player, who sees what is connected.
MAZE = """
(role walker) (role guard) (init (at a)) (init (step 0)) (after 0 1) (after 1 2) (after 2 3)
(edge a b) (edge b c) (edge c a) (edge c d)
(<= (legal walker (open ?x ?y)) (edge ?x ?y) (not (true (isopen ?x ?y)))) (legal walker wait) (legal guard look)
(<= (next (isopen ?x ?y)) (true (isopen ?x ?y))) (<= (next (isopen ?x ?y)) (does walker (open ?x ?y)))
(<= (next (step ?m)) (true (step ?n)) (after ?n ?m)) (<= (next (at ?x)) (true (at ?x)))
(<= (reach ?x) (true (at ?x))) (<= (reach ?y) (reach ?x) (true (isopen ?x ?y)))
(<= (sees guard (reached ?x)) (reach ?x)) (<= terminal (true (step 3))) (goal walker 50) (goal guard 50)
"""


def observe(net: propnet.PropNet, player: int, match: observations.Match) -> observation_circuit.ObservationCircuit:
    circuit = observation_circuit.ObservationCircuit(net, player, match.first[player])
    for event in match.events[player]:
        circuit.extend(event)
    return circuit


def accepted(circuit: observation_circuit.ObservationCircuit) -> set[tuple[observations.Joint, ...]]:
    """All histories whose moves satisfy the circuit, by evaluating it for every choice of moves."""
    inputs = circuit.inputs()
    groups = [[literal >> 1 for literal in group] for group in circuit.groups]
    assert sorted(node for group in groups for node in group) == inputs
    column = {node: number for number, node in enumerate(inputs)}
    chosen = list(itertools.product(*groups))
    rows = np.zeros((len(inputs), len(chosen)), np.bool_)
    for number, nodes in enumerate(chosen):
        rows[[column[node] for node in nodes], number] = True
    outputs = by_level.LevelizedCircuit(circuit.circuit()).run(rows)
    agree = outputs[: len(circuit.required)].all(axis=0)
    histories = set()
    for number in np.flatnonzero(agree).tolist():
        true = {*(2 * node for node in chosen[number]), 1}
        histories.add(
            tuple(
                tuple(next(n for n, literal in enumerate(row) if literal in true) for row in roles)
                for roles in circuit.moves
            )
        )
    assert len(histories) == agree.sum()
    return histories


@pytest.mark.parametrize(
    ("name", "steps"),
    [("kuhn_poker", 3), ("leduc_poker", 4), ("phantom_tictactoe", 4), ("monty_hall", 3), ("meier", 4), ("rps", 1)],
)
def test_it_accepts_the_histories_that_agree(name: str, steps: int) -> None:
    net = games.compile_game(name)
    for seed, player in itertools.product(range(3), range(len(net.players))):
        match = observations.play(net, steps, seed)
        expected = observations.list_histories(net, player, match.events[player])
        assert accepted(observe(net, player, match)) == set(expected)


def test_recursion_through_the_state_is_unrolled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_UNROLLED_GATES", 0)
    net = compiler.compile_rulesheet(support.read(MAZE))
    assert len(net.feedback)
    for seed in range(4):
        match = observations.play(net, 3, seed)
        expected = observations.list_histories(net, 1, match.events[1])
        assert accepted(observe(net, 1, match)) == set(expected)


def test_percepts_that_no_play_gives_have_no_history() -> None:
    net = games.compile_game("phantom_tictactoe")
    match = observations.play(net, 4, 0)
    last = match.events[0][-1]
    wrong = last._replace(percepts=tuple(n for n in range(len(net.players[0].percepts)) if n not in last.percepts))
    circuit = observe(net, 0, match._replace(events=((*match.events[0][:-1], wrong), match.events[1])))
    assert not accepted(circuit)


def test_values_that_are_known_make_it_smaller() -> None:
    net = games.compile_game("leduc_poker")
    match = observations.play(net, 20, 3)
    plain = observe(net, 0, match)
    propagation = unit_propagation.UnitPropagation()
    folded = observation_circuit.ObservationCircuit(net, 0, match.first[0], propagation.values)
    done = 0
    for event in match.events[0]:
        folded.extend(event)
        propagation.add_gates(folded.gates[len(propagation.values) - 1 :])
        propagation.require(folded.required[done:])
        done = len(folded.required)
    assert len(folded.gates) < len(plain.gates)


def test_an_immense_circuit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observation_circuit, "MAX_GATES", 100)
    net = games.compile_game("phantom_tictactoe")
    with pytest.raises(observation_circuit.ObservationTooLargeError, match="more than 100 gates"):
        observe(net, 0, observations.play(net, 4, 0))
