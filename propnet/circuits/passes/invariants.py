"""Groups of registers of which at most one is ever true, and registers that play never changes.

Random play suggests candidates. A SAT solver then looks for a legal step from any state that satisfies all candidates
to one that violates some; what it finds is added to the samples, and the candidates are drawn up anew, until there is
no such step (induction over play, in the manner of Houdini). Without an answer within the limits nothing is concluded;
they count work, not time, so that a sheet gives the same network on every machine.
"""

import dataclasses
from collections.abc import Iterator

import clingo
import numpy as np

from gdlx.propnet.circuits import aig, propnet, sat
from gdlx.propnet.circuits.passes import constants
from gdlx.propnet.simulate import random_play

_COPIES, _STEPS = 64, 48
_MODELS = 32  # counterexamples taken from one search
_MAX_CONFLICTS = 5_000  # of one search
_MAX_WORK = 50_000  # searches times what one takes: gates, and pairs of registers
_PAIRS_OF_A_GATE = 4_000  # pairs of registers that take as long as a gate


@dataclasses.dataclass(frozen=True)
class Invariants:
    """Registers are numbered from 0. `constant` maps some to their value; groups hold at most one true register."""

    constant: dict[int, bool]
    groups: tuple[tuple[int, ...], ...]
    covers: tuple[bool, ...]  # for each group, whether one of it is always true


def find_invariants(net: propnet.PropNet) -> Invariants:
    """Proved invariants; empty ones if the limits did not suffice."""
    nothing = Invariants({}, (), ())
    searches = min(200, _MAX_WORK // (net.gates + len(net.initial) ** 2 // _PAIRS_OF_A_GATE + 1))
    if searches < 25 or not len(net.initial):
        return nothing
    samples = _Samples(net)
    samples.add(_visited(net))
    base = _step_program(net)
    for _ in range(searches):
        candidates = samples.candidates()
        if not candidates.constant and not candidates.groups:
            return nothing
        found = _violations(net, base, candidates)
        if found is None:
            return nothing
        if not found.shape[1]:
            return candidates
        samples.add(found)
    return nothing


def _visited(net: propnet.PropNet, start: random_play.Bools | None = None, steps: int = _STEPS) -> random_play.Bools:
    """States reached by random play, one column each."""
    states = []
    for number, step in enumerate(random_play.random_steps(net, _COPIES, seed=0, start=start)):
        states.append(step.state)
        if number == steps:
            return np.unique(np.concatenate(states, axis=1), axis=1)
    raise AssertionError("random play is endless")


class _Samples:
    """Which registers were seen to change, and which to be true together."""

    def __init__(self, net: propnet.PropNet) -> None:
        self._net = net
        count = len(net.initial)
        self._together = np.zeros((count, count), bool)
        self._changes = np.zeros(count, bool)
        self._uncovered: list[random_play.Bools] = []
        self._order = _by_shape(net)

    def add(self, states: random_play.Bools) -> None:
        """States are columns."""
        ones = states.astype(np.float32)
        self._together |= ones @ ones.T > 0
        self._changes |= (states != self._net.initial[:, None]).any(axis=1)
        self._uncovered.append(states)

    def candidates(self) -> Invariants:
        constant = {int(n): bool(self._net.initial[n]) for n in np.flatnonzero(~self._changes)}
        groups: list[list[int]] = []
        by_key: dict[str, list[list[int]]] = {}
        for number, key in self._order:
            if number in constant:
                continue
            near = by_key.setdefault(key, [])
            home = next((group for group in near if not self._together[number, group].any()), None)
            if home is None:
                home = []
                near.append(home)
                groups.append(home)
            home.append(number)
        kept = tuple(tuple(group) for group in groups if len(group) > 1)
        states = np.concatenate(self._uncovered, axis=1)
        return Invariants(constant, kept, tuple(bool(states[list(group)].any(axis=0).all()) for group in kept))


def _by_shape(net: propnet.PropNet) -> list[tuple[int, str]]:
    """Registers with the name of their fluent, so that groups are looked for among fluents of one name."""
    name: dict[int, str] = {}
    for text, literal in zip(net.fluents, net.fluent_literals.tolist(), strict=True):
        if literal > 1 and not literal & 1:
            name.setdefault(literal // 2 - 1, text.split()[0])
    return [(number, name.get(number, "")) for number in range(len(net.initial))]


def _step_program(net: propnet.PropNet) -> str:
    """One legal step from any state that is not terminal: n(..) are nodes before it, v(..) registers after it."""
    gates = net.as_circuit()
    registers = len(net.initial)
    lines = [f"{{n(1..{registers})}}."] if registers else []
    lines += [f"{{n({gates.inputs - len(net.feedback) + 1}..{gates.inputs})}}."] if len(net.feedback) else []
    for number, role in enumerate(net.roles):
        start = net.first_move_node(number)
        lines.append(f"1 {{n({start}..{start + len(role.moves) - 1})}} 1.")
        lines += [f":- n({start + m}), {sat.literal_to_asp(lit ^ 1)}." for m, lit in enumerate(role.legal.tolist())]
    lines += sat.gates_to_asp(gates)
    lines += [f"v({register}) :- {sat.literal_to_asp(lit)}." for register, lit in enumerate(net.next.tolist())]
    lines.append(f":- {sat.literal_to_asp(net.terminal)}.")
    return "\n".join(lines)


def _candidate_program(candidates: Invariants) -> Iterator[str]:
    for register, value in candidates.constant.items():
        yield f":- {'not ' * value}n({register + 1})."
        yield f"bad :- {'not ' * value}v({register})."
    for group, covers in zip(candidates.groups, candidates.covers, strict=True):
        yield f":- 2 {{{'; '.join(f'n({r + 1})' for r in group)}}}."
        yield f"bad :- 2 {{{'; '.join(f'v({r})' for r in group)}}}."
        if covers:
            yield f":- {', '.join(f'not n({r + 1})' for r in group)}."
            yield f"bad :- {', '.join(f'not v({r})' for r in group)}."
    yield ":- not bad."
    yield "#show v/1."


def _violations(net: propnet.PropNet, base: str, candidates: Invariants) -> random_play.Bools | None:
    """States one step after a state that satisfies the candidates, that violate some; None at the limit of work."""
    options = [
        str(_MODELS),
        "--warn=none",
        "--rand-freq=0.2",
        "--sign-def=rnd",
        f"--solve-limit={_MAX_CONFLICTS}",
    ]
    control = clingo.Control(options, logger=lambda code, message: None)
    control.add("base", [], "\n".join([base, *_candidate_program(candidates)]))
    control.ground([("base", [])])
    found: list[random_play.Bools] = []

    def note(model: clingo.Model) -> None:
        state = np.zeros(len(net.initial), np.bool_)
        state[[symbol.arguments[0].number for symbol in model.symbols(shown=True)]] = True
        found.append(state)

    result = control.solve(on_model=note)
    if not found and not result.unsatisfiable:
        return None
    return np.stack(found, axis=1) if found else np.zeros((len(net.initial), 0), np.bool_)


def apply_invariants(net: propnet.PropNet) -> tuple[propnet.PropNet, list[frozenset[int]], set[int]]:
    """The network without registers proved constant; groups of its register nodes; and which groups cover."""
    found = find_invariants(net)
    if not found.constant and not found.groups:
        return net, [], set()
    gates = net.as_circuit()
    literals = [int(found.constant[n - 1]) if n - 1 in found.constant else 2 * n for n in range(1, gates.inputs + 1)]
    kept = [literal > 1 for literal in literals]
    node_of = np.cumsum([0, *kept])  # of a kept input, by its old node
    groups = [frozenset(int(node_of[register + 1]) for register in group) for group in found.groups]
    smaller = net.with_circuit(aig.rebuild(gates, literals))
    smaller = constants.drop_inputs(smaller, kept, literals[: len(net.initial)])
    return smaller, groups, {number for number, covers in enumerate(found.covers) if covers}
