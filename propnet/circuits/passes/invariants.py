"""Finds groups of registers of which at most one is ever true, and registers that never change.

Random play suggests candidates. A SAT solver then searches for a legal step from any state that satisfies all
candidates to a state that violates some. Such states are added to the samples and the candidates are computed again,
until there is no such step (induction over the steps of play, as in Houdini). If a limit is reached, no invariant is
returned. The limits count work, not time, so that a sheet compiles to the same propnet on every machine.
"""

import dataclasses
from collections.abc import Iterator

import clingo
import numpy as np

from gdlx.propnet.circuits import aig, propnet, sat
from gdlx.propnet.circuits.passes import constants
from gdlx.propnet.common import deadlines
from gdlx.propnet.simulate import random_play

_COPIES, _STEPS = 64, 48
_MODELS = 32  # counterexamples taken from one search
_MAX_CONFLICTS = 5_000  # of one search
_MAX_WORK = 50_000  # searches times the cost of one in gates and pairs of registers
_PAIRS_OF_A_GATE = 4_000  # pairs of registers that cost as much as a gate


@dataclasses.dataclass(frozen=True)
class Invariants:
    """Registers are numbered from 0. `constant` maps some to their value; groups hold at most one true register."""

    constant: dict[int, bool]
    groups: tuple[tuple[int, ...], ...]
    covers: tuple[bool, ...]  # for each group, whether one of its registers is always true


def find_invariants(propnet: propnet.PropNet) -> Invariants:
    """Returns proved invariants; none if a limit is reached."""
    none_proved = Invariants({}, (), ())
    propnet = _without_percepts(propnet)
    searches = min(200, _MAX_WORK // (propnet.gates + len(propnet.initial) ** 2 // _PAIRS_OF_A_GATE + 1))
    if searches < 25 or not len(propnet.initial):
        return none_proved
    samples = _Samples(propnet)
    samples.add(_visited(propnet))
    base = _step_program(propnet)
    for _ in range(searches):
        deadlines.check()
        candidates = samples.candidates()
        if not candidates.constant and not candidates.groups:
            return none_proved
        violations = _violations(propnet, base, candidates)
        if violations is None:
            return none_proved
        if not violations.shape[1]:
            return candidates
        samples.add(violations)
    return none_proved


def to_asp(known: Invariants) -> Iterator[str]:
    """Yields rules for clingo that only states with these invariants satisfy, for circuits as in `sat`."""
    for register, value in known.constant.items():
        yield f":- {sat.literal_to_asp(2 * (register + 1) + value)}."
    for group, is_cover in zip(known.groups, known.covers, strict=True):
        yield f":- 2 {{ {'; '.join(f'n({register + 1})' for register in group)} }}."
        if is_cover:
            yield f":- {', '.join(f'not n({register + 1})' for register in group)}."


def _without_percepts(propnet: propnet.PropNet) -> propnet.PropNet:
    """Returns the game without percepts, which no state depends on: with many roles they outnumber everything else."""
    none = np.zeros(0, np.int32)
    blind = dataclasses.replace(
        propnet, roles=tuple(dataclasses.replace(r, percepts=(), sees=none) for r in propnet.roles)
    )
    return blind.with_circuit(aig.prune(blind.as_circuit()))


def _visited(
    propnet: propnet.PropNet, start: random_play.Bools | None = None, steps: int = _STEPS
) -> random_play.Bools:
    """Returns states reached by random play, one per column."""
    states = []
    for number, step in enumerate(random_play.random_steps(propnet, _COPIES, seed=0, start=start)):
        deadlines.check()
        states.append(step.state)
        if number == steps:
            return np.unique(np.concatenate(states, axis=1), axis=1)
    raise AssertionError("random play is endless")


class _Samples:
    """Records which registers change in the sampled states, and which are true at the same time."""

    def __init__(self, propnet: propnet.PropNet) -> None:
        self._propnet = propnet
        count = len(propnet.initial)
        self._together = np.zeros((count, count), bool)
        self._changes = np.zeros(count, bool)
        self._uncovered: list[random_play.Bools] = []
        self._order = _by_shape(propnet)

    def add(self, states: random_play.Bools) -> None:
        """Adds states, one per column."""
        ones = states.astype(np.float32)
        self._together |= ones @ ones.T > 0
        self._changes |= (states != self._propnet.initial[:, None]).any(axis=1)
        self._uncovered.append(states)

    def candidates(self) -> Invariants:
        constant = {int(n): bool(self._propnet.initial[n]) for n in np.flatnonzero(~self._changes)}
        groups: list[list[int]] = []
        by_key: dict[str, list[list[int]]] = {}
        for number, key in self._order:
            if number in constant:
                continue
            same_name = by_key.setdefault(key, [])
            fitting = next((group for group in same_name if not self._together[number, group].any()), None)
            if fitting is None:
                fitting = []
                same_name.append(fitting)
                groups.append(fitting)
            fitting.append(number)
        nontrivial = tuple(tuple(group) for group in groups if len(group) > 1)
        states = np.concatenate(self._uncovered, axis=1)
        return Invariants(
            constant, nontrivial, tuple(bool(states[list(group)].any(axis=0).all()) for group in nontrivial)
        )


def _by_shape(propnet: propnet.PropNet) -> list[tuple[int, str]]:
    """Returns registers with the name of their fluent, so that groups are formed among fluents of one name."""
    name: dict[int, str] = {}
    for text, literal in zip(propnet.fluents, propnet.fluent_literals.tolist(), strict=True):
        if literal > 1 and not literal & 1:
            name.setdefault(literal // 2 - 1, text.split()[0])
    return [(number, name.get(number, "")) for number in range(len(propnet.initial))]


def _step_program(propnet: propnet.PropNet) -> str:
    """A program for one legal step from any nonterminal state: n(..) are nodes before, v(..) registers after it."""
    gates = propnet.as_circuit()
    registers = len(propnet.initial)
    lines = [f"{{n(1..{registers})}}."] if registers else []
    lines += [f"{{n({gates.inputs - len(propnet.feedback) + 1}..{gates.inputs})}}."] if len(propnet.feedback) else []
    for number, role in enumerate(propnet.roles):
        start = propnet.first_move_node(number)
        lines.append(f"1 {{n({start}..{start + len(role.moves) - 1})}} 1.")
        lines += [f":- n({start + m}), {sat.literal_to_asp(lit ^ 1)}." for m, lit in enumerate(role.legal.tolist())]
    lines += sat.gates_to_asp(gates)
    lines += [f"v({register}) :- {sat.literal_to_asp(lit)}." for register, lit in enumerate(propnet.next.tolist())]
    lines.append(f":- {sat.literal_to_asp(propnet.terminal)}.")
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


def _violations(propnet: propnet.PropNet, base: str, candidates: Invariants) -> random_play.Bools | None:
    """Returns states that violate a candidate one step after all candidates hold; None if the work limit is reached."""
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
    states: list[random_play.Bools] = []

    def add_state(model: clingo.Model) -> None:
        state = np.zeros(len(propnet.initial), np.bool_)
        state[[symbol.arguments[0].number for symbol in model.symbols(shown=True)]] = True
        states.append(state)

    result = control.solve(on_model=add_state)
    if not states and not result.unsatisfiable:
        return None
    return np.stack(states, axis=1) if states else np.zeros((len(propnet.initial), 0), np.bool_)


def apply_invariants(propnet: propnet.PropNet) -> tuple[propnet.PropNet, list[frozenset[int]], set[int]]:
    """Removes registers that are proved constant; returns also groups of register nodes and which groups cover."""
    proved = find_invariants(propnet)
    if not proved.constant and not proved.groups:
        return propnet, [], set()
    gates = propnet.as_circuit()
    literals = [int(proved.constant[n - 1]) if n - 1 in proved.constant else 2 * n for n in range(1, gates.inputs + 1)]
    kept = [literal > 1 for literal in literals]
    node_of = np.cumsum([0, *kept])  # of a remaining input, by its old node
    groups = [frozenset(int(node_of[register + 1]) for register in group) for group in proved.groups]
    smaller = propnet.with_circuit(aig.rebuild(gates, literals))
    smaller = constants.drop_inputs(smaller, kept, literals[: len(propnet.initial)])
    return smaller, groups, {number for number, covers in enumerate(proved.covers) if covers}
