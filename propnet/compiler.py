"""A checked rulesheet -> its simplified network."""

import dataclasses
import functools
import time
from collections.abc import Callable, Iterable

import numpy as np

from gdlx.propnet import build, circuit, diagnostics, emit, game_knowledge, ground, limits, network, rulesheet
from gdlx.propnet.passes import absorb, constants, equal_registers, factor, flatten, invariants


@dataclasses.dataclass(frozen=True)
class PassStatistics:
    """What one pass made of the network."""

    name: str
    gates: int
    edges: int
    registers: int
    seconds: float


Pass = Callable[[network.PropNet], network.PropNet]
Report = Callable[[PassStatistics], None]


def _on_gates(rewrite: Callable[[circuit.Circuit], circuit.Circuit]) -> Pass:
    return lambda net: net.with_circuit(rewrite(net.as_circuit()))


def _silent(statistics: PassStatistics) -> None:
    return None


class _Pipeline:
    """A network on its way through passes."""

    def __init__(self, net: network.PropNet, report: Report) -> None:
        self.net = net
        self._report = report

    def run(self, name: str, apply: Pass) -> None:
        started = time.perf_counter()
        self.net = apply(self.net)
        seconds = time.perf_counter() - started
        self._report(PassStatistics(name, self.net.gates, len(self.net.gate_inputs), len(self.net.initial), seconds))

    def until_stable(self, passes: Iterable[tuple[str, Pass]]) -> None:
        passes = tuple(passes)
        size = None
        while size != (size := (self.net.gates, len(self.net.gate_inputs), len(self.net.initial))):
            for name, apply in passes:
                self.run(name, apply)


def simplify(net: network.PropNet, report: Report = _silent) -> network.PropNet:
    """The network made smaller by all passes; `report` hears of each."""
    pipeline = _Pipeline(net, report)
    groups: list[frozenset[int]] = []  # of register nodes, of which at most one is true
    covers: set[int] = set()  # numbers of groups of which one is always true

    def absorb_known(net: network.PropNet) -> network.PropNet:
        return net.with_circuit(absorb.absorb(net.as_circuit(), game_knowledge.knowledge(net, groups, covers)))

    def drop_proved(net: network.PropNet) -> network.PropNet:
        nonlocal groups, covers
        smaller, groups, covers = invariants.apply_invariants(net)
        return smaller

    registers = (
        ("constants", constants.fold_constants),
        ("equal registers", equal_registers.merge_equal_registers),
    )
    gates = (
        ("flatten", _on_gates(flatten.flatten)),
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


def compile_sheet(
    sheet: rulesheet.Rulesheet, within: limits.Limits = limits.Limits(), report: Report = _silent
) -> network.PropNet:
    """Ground, build and simplify."""
    net = simplify(build.build(sheet, ground.ground(sheet, within)), report)
    _require_judged_before_moves(net, sheet)
    return net


def _require_judged_before_moves(net: network.PropNet, sheet: rulesheet.Rulesheet) -> None:
    """legal, goal and terminal are judged in a state; they cannot ask for the move that is made in it."""
    moves = range(1 + len(net.initial), 1 + net.inputs - len(net.feedback))
    found = []
    for what, literals in (
        *((f"(legal {role.name} ..)", role.legal) for role in net.roles),
        *((f"(goal {role.name} ..)", role.goal) for role in net.roles),
        ("terminal", np.array([net.terminal])),
    ):
        if any(node in moves for node in emit.cone(net, literals).inputs):
            message = f"{diagnostics.shorten(what)} depends on the move being made"
            hint = "use (true ..) of a fluent that a `next` rule sets; gdlx check names the rules"
            found.append(diagnostics.Diagnostic("depends-on-does", message, None, hint))
    if found:
        raise diagnostics.GdlError(found, sheet.name)
