"""A checked rulesheet -> its simplified network."""

import contextlib
import dataclasses
import functools
import gc
import time
from collections.abc import Callable, Iterable, Iterator

from gdlx.propnet.circuits import aig, build, input_constraints, propnet
from gdlx.propnet.circuits.passes import absorb, constants, equal_registers, factor, flatten, invariants
from gdlx.propnet.common import limits
from gdlx.propnet.grounding import ground
from gdlx.propnet.syntax import diagnostics, rulesheet


@dataclasses.dataclass(frozen=True)
class PassStatistics:
    """What one pass made of the network."""

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
    return lambda net: net.with_circuit(rewrite(net.as_circuit()))


def _silent(statistics: PassStatistics) -> None:
    return None


class _Pipeline:
    """A network on its way through passes."""

    def __init__(self, net: propnet.PropNet, report: PassCallback) -> None:
        self.net = net
        self._report = report

    def run(self, name: str, apply: Pass) -> None:
        started = time.perf_counter()
        self.net = apply(self.net)
        seconds = time.perf_counter() - started
        self._report(PassStatistics(name, self.net.gates, len(self.net.gate_inputs), len(self.net.initial), seconds))

    def until_stable(self, passes: Iterable[tuple[str, Pass]]) -> None:
        """Run the passes again and again, as long as a round makes the network smaller by more than it costs."""
        passes = tuple(passes)
        while True:
            before = self._size()
            for name, apply in passes:
                self.run(name, apply)
            gained = before - self._size()
            if gained <= before // (10 if before > _HUGE else 50 if before > _LARGE else before + 1):
                return

    def _size(self) -> int:
        return self.net.gates + len(self.net.gate_inputs) + len(self.net.initial)


def simplify(net: propnet.PropNet, report: PassCallback = _silent) -> propnet.PropNet:
    """The network made smaller by all passes; `report` hears of each."""
    pipeline = _Pipeline(net, report)
    groups: list[frozenset[int]] = []  # of register nodes, of which at most one is true
    covers: set[int] = set()  # numbers of groups of which one is always true

    def absorb_known(net: propnet.PropNet) -> propnet.PropNet:
        return net.with_circuit(
            absorb.absorb(net.as_circuit(), input_constraints.derive_input_constraints(net, groups, covers))
        )

    def drop_proved(net: propnet.PropNet) -> propnet.PropNet:
        nonlocal groups, covers
        smaller, groups, covers = invariants.apply_invariants(net)
        return smaller

    registers = (
        ("constants", constants.fold_constants),
        ("equal registers", equal_registers.merge_equal_registers),
    )
    gates: tuple[tuple[str, Pass], ...] = (("flatten", _on_gates(flatten.flatten)),)
    if len(net.gate_inputs) <= _HUGE:
        gates += (
            ("absorb", absorb_known),
            ("factor", _on_gates(functools.partial(factor.factor, compact=True))),
        )
    pipeline.until_stable((*registers, *gates))
    before = len(pipeline.net.initial)
    pipeline.run("invariants", drop_proved)
    if groups or len(pipeline.net.initial) < before:
        pipeline.until_stable(gates)
        groups, covers = [], set()  # they speak of registers by number, which the next passes change
        pipeline.until_stable((*registers, *gates))
    return pipeline.net


def compile_rulesheet(
    sheet: rulesheet.Rulesheet, within: limits.Limits = limits.Limits(), report: PassCallback = _silent
) -> propnet.PropNet:
    """Ground, build and simplify."""
    with _no_garbage_collection():
        built = constants.fold_constants(build.build(sheet, ground.ground(sheet, within)))
        # Now, because the other passes rely on every role making a legal move, also where none has been made yet.
        _require_state_only_outputs(built, sheet)
        return simplify(built, report)


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Millions of tuples and no cycles: looking for them takes a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _require_state_only_outputs(net: propnet.PropNet, sheet: rulesheet.Rulesheet) -> None:
    """legal, goal and terminal are judged in a state; they cannot ask for the move that is made in it."""
    moved = _after_moves(net)
    found = []
    for what, literals in (
        *((f"(legal {role.name} ..)", role.legal.tolist()) for role in net.roles),
        *((f"(goal {role.name} ..)", role.goal.tolist()) for role in net.roles),
        ("terminal", [net.terminal]),
    ):
        if any(moved[literal >> 1] for literal in literals):
            message = f"{diagnostics.shorten(what)} depends on the move being made"
            hint = "use (true ..) of a fluent that a `next` rule sets; gdlx check names the rules"
            found.append(diagnostics.Diagnostic("depends-on-does", message, None, hint))
    if found:
        raise diagnostics.GdlError(found, sheet.name)


def _after_moves(net: propnet.PropNet) -> bytearray:
    """For every node whether it depends on a move."""
    first_feedback = 1 + net.inputs - len(net.feedback)
    moved = bytearray(1 + net.inputs)
    for node in range(1 + len(net.initial), first_feedback):
        moved[node] = 1
    gates = net.as_circuit().gates
    feedback = net.feedback.tolist()
    while True:
        found = moved[: 1 + net.inputs]
        for gate in gates:
            found.append(any(found[literal >> 1] for literal in gate))
        for node, literal in enumerate(feedback, first_feedback):
            found[node] |= found[literal >> 1]
        if found == moved:
            return found
        moved = found
