"""Compiles a checked rulesheet to a simplified propnet."""

import contextlib
import dataclasses
import functools
import gc
import time
from collections.abc import Callable, Iterable, Iterator

from gdlx.propnet.circuits import aig, build, input_constraints, propnet
from gdlx.propnet.circuits.passes import absorb, constants, equal_registers, factor, flatten, invariants
from gdlx.propnet.common import deadlines, limits
from gdlx.propnet.common.text import plurals
from gdlx.propnet.datalog import stratify
from gdlx.propnet.grounding import ground
from gdlx.propnet.syntax import diagnostics, rulesheet


@dataclasses.dataclass(frozen=True)
class PassStatistics:
    """The size of a propnet after one pass, and the time that the pass took."""

    name: str
    gates: int
    edges: int
    registers: int
    seconds: float


_LARGE = 10_000  # in gates, edges and registers: above it a round of passes takes seconds
_HUGE = 600_000  # edges: above it only the cheapest passes are worth their time

Pass = Callable[[propnet.PropNet], propnet.PropNet]
PassCallback = Callable[[PassStatistics], None]


def _on_gates(rewrite: Callable[[aig.Circuit], aig.Circuit]) -> Pass:
    return lambda propnet: propnet.with_circuit(rewrite(propnet.as_circuit()))


def _silent(statistics: PassStatistics) -> None:
    return None


class _Pipeline:
    """Runs passes on a propnet and reports their statistics."""

    def __init__(self, propnet: propnet.PropNet, report: PassCallback) -> None:
        self.propnet = propnet
        self._report = report

    def run(self, name: str, apply: Pass) -> None:
        started = time.perf_counter()
        self.propnet = apply(self.propnet)
        seconds = time.perf_counter() - started
        self._report(
            PassStatistics(name, self.propnet.gates, len(self.propnet.gate_inputs), len(self.propnet.initial), seconds)
        )

    def until_stable(self, passes: Iterable[tuple[str, Pass]]) -> None:
        """Repeats the passes as long as a round shrinks the propnet enough to be worth its time."""
        passes = tuple(passes)
        while True:
            before = self._size()
            for name, apply in passes:
                self.run(name, apply)
            saved = before - self._size()
            if saved <= before // (10 if before > _HUGE else 50 if before > _LARGE else before + 1):
                return

    def _size(self) -> int:
        return self.propnet.gates + len(self.propnet.gate_inputs) + len(self.propnet.initial)


def simplify(unsimplified: propnet.PropNet, report: PassCallback = _silent) -> propnet.PropNet:
    """Simplifies a propnet with all passes; `report` is called after each."""
    pipeline = _Pipeline(unsimplified, report)
    groups: list[frozenset[int]] = []  # of register nodes, of which at most one is true at a time
    covers: set[int] = set()  # numbers of groups of which one is always true

    def absorb_known(propnet: propnet.PropNet) -> propnet.PropNet:
        return propnet.with_circuit(
            absorb.absorb(propnet.as_circuit(), input_constraints.derive_input_constraints(propnet, groups, covers))
        )

    def drop_proved(propnet: propnet.PropNet) -> propnet.PropNet:
        nonlocal groups, covers
        smaller, groups, covers = invariants.apply_invariants(propnet)
        return smaller

    registers = (
        ("constants", constants.fold_constants),
        ("equal registers", equal_registers.merge_equal_registers),
    )
    gates: tuple[tuple[str, Pass], ...] = (("flatten", _on_gates(flatten.flatten)),)
    if len(unsimplified.gate_inputs) <= _HUGE:
        gates += (
            ("absorb", absorb_known),
            ("factor", _on_gates(functools.partial(factor.factor, compact=True))),
        )
    pipeline.until_stable((*registers, *gates))
    before = len(pipeline.propnet.initial)
    pipeline.run("invariants", drop_proved)
    if groups or len(pipeline.propnet.initial) < before:
        pipeline.until_stable(gates)
        groups, covers = [], set()  # the next passes renumber the registers
        pipeline.until_stable((*registers, *gates))
    return pipeline.propnet


def compile_rulesheet(
    sheet: rulesheet.Rulesheet, within: limits.Limits = limits.Limits(), report: PassCallback = _silent
) -> propnet.PropNet:
    """Grounds a rulesheet, builds its propnet and simplifies it; raises GdlError at a limit, wherever it is reached."""
    try:
        with _no_garbage_collection(), deadlines.enforce(within):
            built = constants.fold_constants(build.build(sheet, ground.ground(sheet, within)))
            # Before the other passes: they assume that every role makes a legal move, even where no move is made yet.
            _require_state_only_outputs(built, sheet)
            return simplify(built, report)
    except deadlines.LimitReachedError as error:
        raise diagnostics.GdlError([_limit_diagnostic(error.limit, within, sheet)], sheet.name) from None


def _limit_diagnostic(limit: str, within: limits.Limits, sheet: rulesheet.Rulesheet) -> diagnostics.Diagnostic:
    most = f"{within.memory_mb:,} MB of memory" if limit == "memory_mb" else f"{within.seconds:g} seconds"
    roles, rules = len(stratify.role_names(sheet)), len(sheet.rules)
    message = f"compiling needs more than {most} (`Limits.{limit}=`)"
    hint = (
        f"the game has {plurals.count(roles, 'role')} and {plurals.count(rules, 'rule')}: make it "
        "smaller, for instance the board or the largest number, or raise the limit"
    )
    return diagnostics.Diagnostic("grounding-limit", message, None, hint)


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Disables garbage collection: there are millions of tuples and no cycles, and it takes a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _require_state_only_outputs(propnet: propnet.PropNet, sheet: rulesheet.Rulesheet) -> None:
    """Raises GdlError if legal, goal or terminal depends on a move: they are properties of a state."""
    depends_on_move = _move_dependence(propnet)
    problems = []
    for output, literals in (
        *((f"(legal {role.name} ..)", role.legal.tolist()) for role in propnet.roles),
        *((f"(goal {role.name} ..)", role.goal.tolist()) for role in propnet.roles),
        ("terminal", [propnet.terminal]),
    ):
        if any(depends_on_move[literal >> 1] for literal in literals):
            message = f"{diagnostics.shorten(output)} depends on the move being made"
            hint = "use (true ..) of a fluent that a `next` rule sets; gdlx check names the rules"
            problems.append(diagnostics.Diagnostic("depends-on-does", message, None, hint))
    if problems:
        raise diagnostics.GdlError(problems, sheet.name)


def _move_dependence(propnet: propnet.PropNet) -> bytearray:
    """Returns for every node whether it depends on a move."""
    first_feedback = 1 + propnet.inputs - len(propnet.feedback)
    depends = bytearray(1 + propnet.inputs)
    for node in range(1 + len(propnet.initial), first_feedback):
        depends[node] = 1
    gates = propnet.as_circuit().gates
    feedback = propnet.feedback.tolist()
    while True:
        updated = depends[: 1 + propnet.inputs]
        for gate in gates:
            updated.append(any(updated[literal >> 1] for literal in gate))
        for node, literal in enumerate(feedback, first_feedback):
            updated[node] |= updated[literal >> 1]
        if updated == depends:
            return updated
        depends = updated
