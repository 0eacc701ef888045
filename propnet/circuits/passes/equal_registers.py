"""Merges registers that always hold the same value, or always opposite values.

Candidates are registers that agree in a random simulation from the initial state. Then, with each class replaced by
its first register, the next values of a class must fold to the same literal; otherwise the class is split. The classes
at the fixpoint are equal, by induction over the steps of play.
"""

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import aig, propnet
from gdlx.propnet.circuits.passes import constants
from gdlx.propnet.common import deadlines
from gdlx.propnet.simulate import by_level

_WORDS = 4
_BITS = np.uint64(1) << np.arange(64, dtype=np.uint64)
# Limits on work in edges, not on time, so that a sheet compiles to the same propnet on every machine.
_SIMULATED_EDGES, _REBUILT_EDGES = 30_000_000, 3_000_000


def merge_equal_registers(propnet: propnet.PropNet) -> propnet.PropNet:
    rounds = min(64, _REBUILT_EDGES // (len(propnet.gate_inputs) + 1))
    if rounds < 3 or len(propnet.initial) < 2:
        return propnet
    classes = _split_by_simulation(propnet)
    gates = propnet.as_circuit()
    for _ in deadlines.watched(range(rounds)):
        leader = _leaders(propnet, classes)
        folded = aig.rebuild(gates, leader)
        following = folded.outputs[: len(propnet.initial)]
        keys = [(c, lit ^ int(start)) for c, lit, start in zip(classes, following, propnet.initial, strict=True)]
        numbers: dict[tuple[int, int], int] = {}
        refined = [numbers.setdefault(key, len(numbers)) for key in keys]
        if len(numbers) == len(set(classes)):
            break
        classes = refined
    else:
        return propnet
    if len(set(classes)) == len(classes):
        return propnet
    registers = len(propnet.initial)
    kept = [leader[n] >> 1 == n + 1 for n in range(registers)] + [True] * (propnet.inputs - registers)
    return constants.drop_inputs(propnet.with_circuit(folded), kept, leader[:registers])


def _leaders(propnet: propnet.PropNet, classes: list[int]) -> list[aig.Literal]:
    """Returns for every input node its representative literal: the first register of its class, possibly inverted."""
    first: dict[int, int] = {}
    literals = []
    for number, group in enumerate(classes):
        leader = first.setdefault(group, number)
        literals.append(2 * (leader + 1) + int(propnet.initial[leader] != propnet.initial[number]))
    return literals + [2 * node for node in range(len(classes) + 1, propnet.inputs + 1)]


def _split_by_simulation(propnet: propnet.PropNet) -> list[int]:
    """Returns classes of registers with the same history, up to inversion, under random moves.

    The simulation is long enough for step counters to advance: registers that have not changed yet look equal, and each
    costs a round of proof.
    """
    rng = np.random.default_rng(0)
    circuit = propnet.as_circuit()
    step = by_level.LevelizedCircuit(by_level.extract_cone(circuit, propnet.next.tolist()))
    state = np.repeat(np.where(propnet.initial, ~np.uint64(0), np.uint64(0))[:, None], _WORDS, axis=1)
    trace = [state]
    for _ in range(min(256, max(24, _SIMULATED_EDGES // (len(propnet.gate_inputs) + 1)))):
        feedback = np.zeros((len(propnet.feedback), _WORDS), np.uint64)
        deadlines.check()
        state = step.run(
            np.concatenate([state, *(_random_moves(len(role.moves), rng) for role in propnet.roles), feedback])
        )
        trace.append(state)
    history = np.concatenate(trace, axis=1)
    history[propnet.initial] = ~history[propnet.initial]
    return [int(number) for number in np.unique(history, axis=0, return_inverse=True)[1].reshape(-1)]


def _random_moves(moves: int, rng: np.random.Generator) -> npt.NDArray[np.uint64]:
    """One move in half of the columns, as in play; a quarter of all moves in the others, to separate registers."""
    draws = rng.integers(0, 2**64, (2, moves, _WORDS), np.uint64)
    rows: npt.NDArray[np.uint64] = draws[0] & draws[1]
    if moves:
        rows[:, : _WORDS // 2] = 0
        for word in range(_WORDS // 2):
            np.bitwise_or.at(rows[:, word], rng.integers(0, moves, 64), _BITS)
    return rows
