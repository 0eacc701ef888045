"""Constraints on the inputs of a propnet that hold in every step of play."""

from collections.abc import Iterable

from gdlx.propnet.circuits import aig, propnet
from gdlx.propnet.circuits.passes import absorb
from gdlx.propnet.common import deadlines


def derive_input_constraints(
    propnet: propnet.PropNet, groups: Iterable[frozenset[int]] = (), covers: Iterable[int] = ()
) -> absorb.InputConstraints:
    """Every role makes exactly one move, and it is legal; `groups` and `covers` of registers as in InputConstraints."""
    gates = propnet.as_circuit()
    registers = list(groups)
    moves = []
    implied = {}
    for number, role in enumerate(propnet.roles):
        start = propnet.first_move_node(number)
        moves.append(frozenset(range(start, start + len(role.moves))))
        for node, legal in enumerate(deadlines.watched(role.legal.tolist()), start):
            implied[node] = _conjuncts(gates, legal)
    move_covers = range(len(registers), len(registers) + len(moves))
    return absorb.InputConstraints([*registers, *moves], frozenset([*covers, *move_covers]), implied)


def _conjuncts(gates: aig.Circuit, literal: aig.Literal) -> list[aig.Literal]:
    """Returns the input literals that a literal implies because it is a conjunction of them."""
    seen, work = {literal: None}, [literal]  # an ordered set
    while work:
        conjunct = work.pop()
        number = (conjunct >> 1) - gates.inputs - 1
        if number >= 0 and not conjunct & 1:
            fresh = [inner for inner in gates.gates[number] if inner not in seen]
            seen.update(dict.fromkeys(fresh))
            work += fresh
    return [conjunct for conjunct in seen if conjunct >> 1 <= gates.inputs]
