"""One deadline and one limit on memory over all stages of compiling, and none outside."""

import dataclasses
import time
import types

import pytest

from gdlx.propnet.circuits import build, compiler
from gdlx.propnet.circuits.passes import absorb, constants, equal_registers, factor, flatten, invariants
from gdlx.propnet.common import deadlines, limits
from gdlx.propnet.grounding import ground
from gdlx.propnet.syntax import diagnostics
from gdlx.tests.helpers import support

SHEET = """(role r) (role s) (init (at 1)) (succ 1 2) (succ 2 3) (succ 3 1) (<= (legal ?p go) (role ?p))
    (<= (legal ?p (stay ?n)) (role ?p) (true (at ?n))) (<= (next (at ?n)) (does r go) (true (at ?m)) (succ ?m ?n))
    (<= (next (at ?n)) (does r (stay ?n)) (not won)) (<= won (does s (stay 3)) (true (at 3))) (<= (next over) won)
    (<= terminal (true over)) (<= (goal ?p 100) (role ?p) (true over)) (<= (goal ?p 0) (role ?p) (not (true over)))"""

STAGES = {
    "rewriting rules": (ground, "rewrite_rules"),
    "building": (build, "build"),
    "constants": (constants, "fold_constants"),
    "equal registers": (equal_registers, "merge_equal_registers"),
    "flatten": (flatten, "flatten"),
    "absorb": (absorb, "absorb"),
    "factor": (factor, "factor"),
    "invariants": (invariants, "find_invariants"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_of_compiling_stops_at_the_deadline(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock jumps when the stage starts, so that it is the one that has to notice."""
    module, name = STAGES[stage]
    run, clock, started = getattr(module, name), types.SimpleNamespace(monotonic=time.monotonic), []

    def start_late(*args: object, **options: object) -> object:
        started.append(stage)
        clock.monotonic = lambda: time.monotonic() + 1_000
        run(*args, **options)
        pytest.fail("the stage went on after the deadline")

    monkeypatch.setattr(module, name, start_late)
    monkeypatch.setattr(deadlines, "time", clock)
    sheet = support.read(SHEET)
    with pytest.raises(diagnostics.GdlError) as caught:
        compiler.compile_rulesheet(sheet, limits.Limits(seconds=900))
    assert started == [stage]
    [problem] = caught.value.diagnostics
    assert problem.code == "grounding-limit"
    assert "more than 900 seconds (`Limits.seconds=`)" in problem.message
    assert "2 roles and 15 rules" in problem.hint


def test_memory_that_building_takes_is_limited_too(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = iter([2**30, 2**30, *[2**31] * 1_000])
    monkeypatch.setattr(deadlines, "_resident_bytes", lambda: next(taken))
    monkeypatch.setattr(deadlines, "_MEMORY_SECONDS", 0.0)
    sheet = support.read(SHEET)
    with pytest.raises(diagnostics.GdlError, match=r"compiling needs more than 500 MB of memory \(`Limits.memory_mb=`"):
        compiler.compile_rulesheet(sheet, limits.Limits(memory_mb=500))


def test_limits_end_with_the_block() -> None:
    none_left = limits.Limits(seconds=-1.0)
    with pytest.raises(deadlines.LimitReachedError), deadlines.enforce(none_left):
        list(deadlines.watched([1]))
    deadlines.check()
    assert list(deadlines.watched([1])) == [1]
    with deadlines.enforce(dataclasses.replace(none_left, seconds=60.0)):
        assert 50 < deadlines.seconds_left() <= 60
        deadlines.check()


def test_many_roles_compile() -> None:
    """Everybody perceives all moves: 120 roles with 2 moves each are 28 800 percepts, which no pass simulates."""
    roles = "".join(f"(role r{number})" for number in range(120))
    rules = """(<= (legal ?r a) (role ?r)) (<= (legal ?r b) (role ?r)) (<= (next done) (does r0 a))
        (<= terminal (true done)) (<= (goal ?r 100) (role ?r))"""
    propnet = compiler.compile_rulesheet(support.read(roles + rules), limits.Limits(seconds=60))
    assert {len(role.percepts) for role in propnet.roles} == {240}
    assert len(propnet.initial) == 1
