"""Registers that always hold the same value, or always opposite ones, become one.

Candidates are those that agree in a random simulation from the initial state; then, with each class replaced by its
first register, the next values of a class must come out as the same literal, or the class is split (an induction over
the steps of play). What remains is proved equal.
"""

import numpy as np

from gdlx.propnet import circuit, machine, network
from gdlx.propnet.passes import constants

_STEPS, _WORDS, _ROUNDS = 24, 4, 64


def merge_equal_registers(net: network.PropNet) -> network.PropNet:
    classes = _split_by_simulation(net)
    gates = net.as_circuit()
    for _ in range(_ROUNDS):
        leader = _leaders(net, classes)
        folded = circuit.rebuilt(gates, leader)
        following = folded.outputs[: len(net.initial)]
        keys = [(c, lit ^ int(start)) for c, lit, start in zip(classes, following, net.initial, strict=True)]
        numbers: dict[tuple[int, int], int] = {}
        refined = [numbers.setdefault(key, len(numbers)) for key in keys]
        if len(numbers) == len(set(classes)):
            break
        classes = refined
    else:
        return net
    if len(set(classes)) == len(classes):
        return net
    registers = len(net.initial)
    kept = [leader[n] >> 1 == n + 1 for n in range(registers)] + [True] * (net.inputs - registers)
    return constants.drop_inputs(net.with_circuit(folded), kept, leader[:registers])


def _leaders(net: network.PropNet, classes: list[int]) -> list[circuit.Literal]:
    """For every input node the literal that stands for it: the first register of its class, inverted if need be."""
    first: dict[int, int] = {}
    literals = []
    for number, group in enumerate(classes):
        leader = first.setdefault(group, number)
        literals.append(2 * (leader + 1) + int(net.initial[leader] != net.initial[number]))
    return literals + [2 * node for node in range(len(classes) + 1, net.inputs + 1)]


def _split_by_simulation(net: network.PropNet) -> list[int]:
    """Classes of registers with the same history, up to inversion, under random moves of all kinds."""
    rng = np.random.default_rng(0)
    game = machine.Machine(net)
    state = game.initial(_WORDS, np.uint64)
    moves = sum(len(role.moves) for role in net.roles)
    trace = [state]
    for _ in range(_STEPS):
        # Two words in three of few moves: all at once would make most games stop changing at once.
        does = rng.integers(0, 2**64, (moves, _WORDS), np.uint64) & rng.integers(0, 2**64, (moves, _WORDS), np.uint64)
        state, _ = game.move(state, does)
        trace.append(state)
    history = np.concatenate(trace, axis=1)
    history[net.initial] = ~history[net.initial]
    return np.unique(history, axis=0, return_inverse=True)[1].reshape(-1).tolist() if len(history) else []
