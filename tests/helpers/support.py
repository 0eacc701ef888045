"""Shared by several tests: sheets written in a test, random circuits, and simple evaluators of both."""

import itertools
import math
import random
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from gdlx.propnet.checks import checker
from gdlx.propnet.circuits import aig, propnet
from gdlx.propnet.datalog import interpreter
from gdlx.propnet.simulate import machine, random_play
from gdlx.propnet.syntax import ground_terms, rulesheet, source

Column = Sequence[bool]  # a value for every input
LegalMoves = dict[str, tuple[ground_terms.GroundTerm, ...]]  # legal moves of every role


def read(text: str, name: str = "test.gdl", gdl: int | None = None) -> rulesheet.Rulesheet:
    """Parses and checks a sheet, which must have no errors."""
    return checker.check(source.Source(name, text), gdl=gdl).require_usable()


@st.composite
def circuits(draw: st.DrawFn, max_inputs: int = 6, max_gates: int = 14) -> aig.Circuit:
    """Any circuit that the type allows: with constants, single literals, contradictions and equal gates."""
    inputs = draw(st.integers(0, max_inputs))
    gates: list[aig.Gate] = []
    for number in range(draw(st.integers(0, max_gates))):
        top = 2 * (inputs + number) + 1
        back = st.one_of(
            st.integers(0, top), st.integers(0, top // 3)
        )  # biased to recent nodes, or all circuits would be shallow
        gates.append(tuple(sorted(top - n for n in draw(st.sets(back, min_size=1, max_size=5)))))
    outputs = draw(st.lists(st.integers(0, 2 * (inputs + len(gates)) + 1), min_size=1, max_size=5))
    return aig.Circuit(inputs, tuple(gates), tuple(outputs))


@st.composite
def formulas(draw: st.DrawFn, max_inputs: int = 6) -> aig.Circuit:
    """Alternating ANDs and ORs over few inputs, mostly used once: the target of simplification."""
    inputs = draw(st.integers(2, max_inputs))
    literals = st.integers(2, 2 * inputs + 1)
    cubes = st.sets(literals, min_size=1, max_size=4)
    gates: list[aig.Gate] = []
    levels: list[list[aig.Literal]] = [[]]
    for size in draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)):
        levels.append([])
        for _ in range(size):
            below = levels[-2] or [2]
            chosen = draw(st.sets(st.sampled_from(below), max_size=4)) if levels[-2] else set()
            gate = draw(cubes) | {literal ^ 1 for literal in chosen}
            gates.append(tuple(sorted(gate)))
            levels[-1].append(2 * (inputs + len(gates)))
    outputs = draw(st.lists(st.sampled_from([*levels[-1], 2 * inputs]), min_size=1, max_size=3))
    return aig.Circuit(inputs, tuple(gates), tuple(literal ^ draw(st.integers(0, 1)) for literal in outputs))


def node_values(gates: aig.Circuit, column: Column) -> list[bool]:
    """The value of every node, computed gate by gate."""
    value = [False, *column]
    for gate in gates.gates:
        value.append(all(value[literal >> 1] != bool(literal & 1) for literal in gate))
    return value


def evaluate_circuit(gates: aig.Circuit, columns: Sequence[Column]) -> list[tuple[bool, ...]]:
    """The outputs of a circuit for each column of input values."""
    collected = []
    for column in columns:
        value = node_values(gates, column)
        collected.append(tuple(value[literal >> 1] != bool(literal & 1) for literal in gates.outputs))
    return collected


def all_columns(inputs: int) -> list[tuple[bool, ...]]:
    return list(itertools.product((False, True), repeat=inputs))


class RulesAndPropnet:
    """A game in the interpreter and as a propnet. Every comparison asserts that both agree."""

    def __init__(self, sheet: rulesheet.Rulesheet, propnet: propnet.PropNet) -> None:
        self.rules = interpreter.Interpreter(sheet)
        self.propnet = propnet
        self.machine = machine.StateMachine(propnet)
        self.moves = [{move: n for n, move in enumerate(role.moves)} for role in propnet.roles]
        assert tuple(role.name for role in propnet.roles) == self.rules.roles

    def start(self) -> tuple[list[interpreter.State], machine.Rows]:
        return [self.rules.initial], self.machine.initial(1)

    def compare_states(self, states: Sequence[interpreter.State], bits: machine.Rows) -> list[LegalMoves | None]:
        """Compares fluents, legal moves, goals and terminal; returns legal moves, None at terminals."""
        fluents = _literal_values(self.propnet.fluent_literals, bits)
        terminal, goals = self.machine.terminal_and_goals(bits)
        goal_rows = machine.split_rows(goals, [len(role.goal_values) for role in self.propnet.roles])
        legal_rows = machine.split_rows(self.machine.legal(bits), [len(role.moves) for role in self.propnet.roles])
        collected: list[LegalMoves | None] = []
        for column, state in enumerate(states):
            texts = {ground_terms.to_text(fluent) for fluent in state}
            assert {self.propnet.fluents[n] for n in np.flatnonzero(fluents[:, column])} == texts
            legal = self.rules.legal(state)
            held = self.rules.goals(state)
            for role, moves, goal in zip(self.propnet.roles, legal_rows, goal_rows, strict=True):
                shown = [ground_terms.to_text(move) for move in legal[role.name]]
                assert [role.moves[n] for n in np.flatnonzero(moves[:, column])] == shown, (role.name, sorted(texts))
                judged = tuple(role.goal_values[n] for n in np.flatnonzero(goal[:, column]))
                assert judged == held.get(role.name, ()), (role.name, sorted(texts))
            assert bool(terminal[column]) == self.rules.is_terminal(state), sorted(texts)
            collected.append(None if terminal[column] else legal)
        return collected

    def step(
        self, states: Sequence[interpreter.State], bits: machine.Rows, joints: Sequence[interpreter.JointAction]
    ) -> tuple[list[interpreter.State], machine.Rows]:
        """Applies a joint action to each state, and compares percepts."""
        does = np.zeros((sum(map(len, self.moves)), len(states)), np.bool_)
        for column, joint in enumerate(joints):
            first = 0
            for role, numbers in zip(self.propnet.roles, self.moves, strict=True):
                does[first + numbers[ground_terms.to_text(joint[role.name])], column] = True
                first += len(numbers)
        following, seen = self.machine.step(bits, does)
        rows = machine.split_rows(seen, [len(role.percepts) for role in self.propnet.roles])
        after = []
        for column, (state, joint) in enumerate(zip(states, joints, strict=True)):
            perceived = self.rules.percepts(state, joint)
            for role, own in zip(self.propnet.roles, rows, strict=True):
                texts = {ground_terms.to_text(percept) for percept in perceived.get(role.name, ())}
                assert {role.percepts[n] for n in np.flatnonzero(own[:, column])} == texts, (role.name, joint)
            after.append(self.rules.next(state, joint))
        return after, following

    def compare_all(self, max_states: int) -> int | None:
        """Compares every reachable state and joint action; returns the number of states, None if there are too many."""
        known = {self.rules.initial}
        states, bits = self.start()
        while states:
            columns: list[int] = []
            joints: list[interpreter.JointAction] = []
            options = self.compare_states(states, bits)
            if sum(math.prod(map(len, legal.values())) for legal in options if legal) > 30 * max_states:
                return None
            for column, legal in enumerate(options):
                for chosen in itertools.product(*legal.values()) if legal else ():
                    columns.append(column)
                    joints.append(dict(zip(self.rules.roles, chosen, strict=True)))
            after, following = self.step([states[c] for c in columns], bits[:, columns], joints)
            first: dict[interpreter.State, int] = {}
            for column, state in enumerate(after):
                if state not in known:
                    first.setdefault(state, column)
            states = list(first)
            bits = following[:, list(first.values())]
            known.update(states)
            if len(known) > max_states:
                return None
        return len(known)

    def compare_random(self, count: int, seed: int = 0, copies: int = 10) -> None:
        """Compares along random matches, for that many states."""
        rng = random.Random(seed)
        states, bits = self.start()
        states, bits = states * copies, np.repeat(bits, copies, axis=1)
        for _ in range(0, count, copies):
            going: list[int] = []
            joints: list[interpreter.JointAction] = []
            for column, legal in enumerate(self.compare_states(states, bits)):
                if legal and all(legal.values()):
                    going.append(column)
                    joints.append({role: rng.choice(moves) for role, moves in legal.items()})
            after, following = self.step([states[c] for c in going], bits[:, going], joints)
            fresh, first = self.start()
            missing = copies - len(going)
            states, bits = (
                after + fresh * missing,
                np.concatenate([following, np.repeat(first, missing, axis=1)], axis=1),
            )


def _literal_values(literals: propnet.Ints, bits: machine.Rows) -> machine.Rows:
    """The values of literals that are constants or registers."""
    rows = np.concatenate([np.zeros((1, bits.shape[1]), np.bool_), bits])
    read: machine.Rows = rows[literals >> 1] ^ (literals & 1).astype(np.bool_)[:, None]
    return read


def assert_same_play(first: propnet.PropNet, second: propnet.PropNet, steps: int = 40, copies: int = 32) -> None:
    """Asserts that random matches of one propnet are the same in another, which may lack moves that never happen."""
    games = (machine.StateMachine(first), machine.StateMachine(second))
    assert [role.name for role in first.roles] == [role.name for role in second.roles]
    assert first.fluents == second.fluents
    state = games[1].initial(copies)
    for number, step in enumerate(random_play.random_steps(first, copies, seed=0)):
        if number == steps:
            return
        fluents = _literal_values(first.fluent_literals, step.state)
        assert np.array_equal(fluents, _literal_values(second.fluent_literals, state))
        terminal, goals = games[1].terminal_and_goals(state)
        assert np.array_equal(step.terminal, terminal)
        _assert_same_rows(first, second, "goal_values", step.goals, goals)
        _assert_same_rows(first, second, "moves", step.legal, games[1].legal(state))
        # A finished match is reset, so its last joint action does not matter.
        going = ~(step.terminal | step.unplayable)
        state, percepts = games[1].step(state, _assert_same_rows(first, second, "moves", step.does & going))
        _assert_same_rows(first, second, "percepts", step.percepts & going, percepts & going)
        state = np.where(going, state, games[1].initial(copies))


def _assert_same_rows(
    first: propnet.PropNet,
    second: propnet.PropNet,
    names: str,
    rows: random_play.Bools,
    others: random_play.Bools | None = None,
) -> random_play.Bools:
    """Compares rows of all roles by name, and returns those of the second propnet; rows that it lacks never hold."""
    is_shared = []
    for role, other in zip(first.roles, second.roles, strict=True):
        assert set(getattr(other, names)) <= set(getattr(role, names))
        is_shared += [name in getattr(other, names) for name in getattr(role, names)]
    assert not rows[[not shared for shared in is_shared]].any()
    shared_rows = rows[is_shared]
    assert others is None or np.array_equal(shared_rows, others)
    return shared_rows
