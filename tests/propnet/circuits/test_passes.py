"""Each propnet pass alone: it preserves what a match shows, and removes what it is meant to remove."""

import dataclasses
import functools
import hashlib
import itertools
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from gdlx.propnet import games
from gdlx.propnet.checks import checker
from gdlx.propnet.circuits import aig, build, compiler, input_constraints, propnet, sat
from gdlx.propnet.circuits.passes import absorb, constants, equal_registers, factor, flatten, invariants, pairs
from gdlx.propnet.grounding import ground
from gdlx.propnet.io import files, validity
from gdlx.propnet.syntax import rulesheet, source
from gdlx.tests.helpers import random_games, support

FRAME = """(role r) (legal r a) (legal r b) (init (step 1)) (succ 1 2) (succ 2 3) (succ 3 4) (succ 4 5) (succ 5 6)
    (<= (next (step ?n)) (true (step ?m)) (succ ?m ?n)) (<= terminal (true (step 6)))
    (<= (goal r 100) (true won)) (<= (goal r 0) (not (true won))) (<= (next won) (true won)) """

SHEETS = {
    "static": """(init on) (<= (next on) (true on)) (<= (next off) (true off)) (<= (next won) (true on) (does r a))
        (<= (next won) (true off) (does r b))""",
    "static together": """(init p) (init q) (<= (next p) (true q)) (<= (next q) (true p) (not (true s)))
        (<= (next s) (true s)) (<= (next s) (not (true p))) (<= (next won) (true p) (does r b))""",
    "twins": """(init on) (<= (next on) (true on) (does r a)) (<= (next on) (not (true on)) (does r b))
        (<= (next also) (true also) (does r a)) (<= (next also) (not (true also)) (does r b)) (init also)
        (<= (next won) (true on) (does r a) (true also))""",
    "inverted twins": """(init on) (<= (next on) (does r a)) (<= (next off) (not (does r a)))
        (<= (next won) (true off) (does r b)) (<= (sees r dark) (true off)) (<= (sees r light) (not (true on)))""",
    "never legal": """(init on) (<= (next on) (true on)) (<= (next never) (not (true on)))
        (<= (legal r c) (true never)) (<= (next won) (does r c))
        (<= (sees r cheat) (does r c)) (<= (sees r a) (does r a))""",
    "unreachable": """(init (at 1)) (edge 1 2) (edge 2 3) (edge 3 1)
        (<= (next (at ?y)) (does r a) (true (at ?x)) (edge ?x ?y)) (<= (next (at ?x)) (does r b) (true (at ?x)))
        (<= (next broken) (true (at ?x)) (true (at ?y)) (distinct ?x ?y)) (<= (next broken) (true broken))
        (<= (next won) (true (at 3))) (<= (legal r c) (true broken)) (<= (sees r (at ?x)) (true (at ?x)))""",
    "lost": """(init (at 1)) (init (at 2)) (<= (next (at ?x)) (true (at ?x)) (does r a))
        (<= (next gone) (does r b)) (<= (next gone) (true gone)) (<= (next won) (true (at 1)) (not (true gone)))
        (<= (legal r c) (not (true (at 2))))""",
    "nothing changes": "(init won)",
}
GAMES = ["kuhn_poker", "tictactoe", "goofspiel:cards=3", "monty_hall", "blind_tictactoe", "simultaneous_breakthrough"]


def _apply_invariants(propnet: propnet.PropNet) -> propnet.PropNet:
    return invariants.apply_invariants(propnet)[0]


def _absorb_known(propnet: propnet.PropNet) -> propnet.PropNet:
    smaller, groups, covers = invariants.apply_invariants(propnet)
    known = input_constraints.derive_input_constraints(smaller, groups, covers)
    return smaller.with_circuit(absorb.absorb(smaller.as_circuit(), known))


def _absorb_legal(propnet: propnet.PropNet) -> propnet.PropNet:
    return propnet.with_circuit(
        absorb.absorb(propnet.as_circuit(), input_constraints.derive_input_constraints(propnet))
    )


PASSES: dict[str, compiler.Pass] = {
    "constants": constants.fold_constants,
    "equal registers": equal_registers.merge_equal_registers,
    "invariants": _apply_invariants,
    "absorb, knowing moves": _absorb_legal,
    "absorb, knowing all": _absorb_known,
    "flatten": lambda propnet: propnet.with_circuit(flatten.flatten(propnet.as_circuit())),
    "factor": lambda propnet: propnet.with_circuit(factor.factor(propnet.as_circuit())),
    "pairs": lambda propnet: propnet.with_circuit(pairs.extract_pairs(propnet.as_circuit())),
    "all": compiler.simplify,
}


def sheet(name: str) -> rulesheet.Rulesheet:
    return support.read(FRAME + SHEETS[name]) if name in SHEETS else games.load_rulesheet(name)


@functools.cache
def built(name: str) -> propnet.PropNet:
    parsed = sheet(name)
    return build.build(parsed, ground.ground(parsed))


@pytest.mark.parametrize("name", [*SHEETS, *GAMES])
@pytest.mark.parametrize("apply", PASSES)
def test_a_pass_alone_changes_nothing_that_can_be_seen(name: str, apply: str) -> None:
    before = built(name)
    after = PASSES[apply](before)
    validity.validate(after)
    support.assert_same_play(before, after)
    if name in SHEETS:
        assert support.RulesAndPropnet(sheet(name), after).compare_all(300)


@pytest.mark.parametrize("apply", PASSES)
def test_a_pass_again_finds_little_more(apply: str) -> None:
    """The result of a pass is a valid input of the pass."""
    once = PASSES[apply](built("blind_tictactoe"))
    twice = PASSES[apply](once)
    assert len(twice.initial) <= len(once.initial)
    support.assert_same_play(once, twice)


@pytest.mark.parametrize(
    ("name", "apply", "constant", "equal"),
    [
        ("static", "constants", {"on"}, []),
        ("static together", "constants", {"p", "q", "s"}, []),
        ("never legal", "constants", {"on", "never", "won"}, []),
        ("nothing changes", "constants", {"won"}, []),
        ("twins", "equal registers", set(), [{"on", "also"}]),
        ("inverted twins", "equal registers", set(), [{"on", "off"}]),
        ("unreachable", "constants", set(), []),
        ("unreachable", "equal registers", set(), []),
        ("unreachable", "invariants", {"broken"}, []),
    ],
)
def test_registers_that_a_pass_removes(name: str, apply: str, constant: set[str], equal: list[set[str]]) -> None:
    propnet = PASSES[apply](built(name))
    fluents: dict[int, set[str]] = {}  # by register
    for fluent, literal in zip(propnet.fluents, propnet.fluent_literals.tolist(), strict=True):
        fluents.setdefault(literal >> 1, set()).add(fluent)
    assert fluents.pop(0, set()) == constant
    assert [actual for actual in fluents.values() if len(actual) > 1] == equal
    assert sorted(fluents) == list(range(1, len(propnet.initial) + 1))


def test_an_inverted_twin_is_read_off_its_register() -> None:
    propnet = equal_registers.merge_equal_registers(built("inverted twins"))
    on, off = (propnet.fluent_literals[propnet.fluents.index(fluent)] for fluent in ("on", "off"))
    assert on == off ^ 1


def test_what_never_holds_has_no_name_left() -> None:
    before, after = built("never legal"), constants.fold_constants(built("never legal"))
    assert before.roles[0].moves == ("a", "b", "c")
    assert after.roles[0].moves == ("a", "b")
    assert before.roles[0].percepts == ("a", "cheat")
    assert after.roles[0].percepts == ("a",)
    assert after.fluents == before.fluents


def test_a_group_of_which_one_holds_is_proved() -> None:
    smaller, groups, covers = invariants.apply_invariants(built("unreachable"))
    places = {smaller.fluent_literals[smaller.fluents.index(f"(at {n})")] >> 1 for n in (1, 2, 3)}
    number = groups.index(frozenset(places))
    assert number in covers


def test_what_holds_only_by_chance_is_not_proved() -> None:
    """A sample sees at most one place lit at a time, because it takes a hundred steps to light the second."""
    steps = "".join(f"(succ {n} {n + 1})" for n in range(1, 100))
    text = f"""(role r) (legal r a) (init (step 1)) (init (lit 1)) {steps}
        (<= (next (step ?n)) (true (step ?m)) (succ ?m ?n)) (<= (next (lit 1)) (true (lit 1)))
        (<= (next (lit 2)) (true (step 98))) (<= (next (lit 2)) (true (lit 2)))
        (<= terminal (true (step 100)))
        (<= (goal r 100) (true (lit 1)) (true (lit 2))) (<= (goal r 0) (true (step 1)))"""
    actual = support.read(text)
    assert support.RulesAndPropnet(actual, compiler.compile_rulesheet(actual)).compare_all(200) == 100


def test_states_after_the_end_are_not_reached() -> None:
    """The second place is lit only by a move after a terminal state."""
    text = """(role r) (legal r a) (init (at 1)) (<= (next (at 2)) (true (at 1))) (<= (next (at 3)) (true (at 2)))
        (<= terminal (true (at 2))) (<= (goal r 100) (not (true (at 3)))) (<= (goal r 0) (true (at 3)))"""
    propnet = compiler.compile_rulesheet(support.read(text))
    assert propnet.fluent_literals[propnet.fluents.index("(at 3)")] == 0
    assert support.RulesAndPropnet(support.read(text), propnet).compare_all(5) == 2


def test_groups_that_cannot_be_proved_are_none() -> None:
    """Both places are lit at first, and (at 1) alone is lit no more often than (at 2)."""
    _, groups, _ = invariants.apply_invariants(built("lost"))
    propnet = built("lost")
    both = {propnet.fluent_literals[propnet.fluents.index(f"(at {n})")] >> 1 for n in (1, 2)}
    assert not any(both <= group for group in groups)


def test_limits_of_work_give_the_network_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invariants, "_MAX_WORK", 0)
    smaller, groups, covers = invariants.apply_invariants(built("unreachable"))
    assert (groups, covers) == ([], set())
    assert len(smaller.initial) == len(built("unreachable").initial)


@pytest.mark.parametrize("conflicts", [0, 1, 5])
def test_a_search_without_an_answer_concludes_nothing(conflicts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invariants, "_MAX_CONFLICTS", conflicts)
    support.assert_same_play(built("tictactoe"), _apply_invariants(built("tictactoe")))


def test_statistics_tell_of_every_pass() -> None:
    statistics: list[compiler.PassStatistics] = []
    propnet = compiler.simplify(built("tictactoe"), statistics.append)
    assert {step.name for step in statistics} == {
        "constants",
        "equal registers",
        "flatten",
        "absorb",
        "factor",
        "invariants",
    }
    assert (statistics[-1].gates, statistics[-1].registers) == (propnet.gates, len(propnet.initial))
    assert statistics[-1].edges == len(propnet.gate_inputs)
    assert all(step.seconds >= 0 for step in statistics)


DETERMINED = ["kuhn_poker", "tictactoe", "goofspiel:cards=3"]


def _digests(folder: pathlib.Path) -> list[str]:
    collected = []
    for number, game in enumerate(DETERMINED):
        path = folder / f"{number}.npz"
        files.save_propnet(compiler.compile_rulesheet(games.load_rulesheet(game)), path)
        collected.append(hashlib.sha256(path.read_bytes()).hexdigest())
    return collected


def test_a_sheet_gives_the_same_network_every_time(tmp_path: pathlib.Path) -> None:
    """Also in a process whose sets of strings have another order."""
    code = """if True:
        import pathlib, sys
        from gdlx.tests.propnet.circuits import test_passes
        print(*test_passes._digests(pathlib.Path(sys.argv[1])))
    """
    expected = _digests(tmp_path)
    assert _digests(tmp_path) == expected
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == expected


def test_equal_networks_have_equal_arrays() -> None:
    one, two = (compiler.compile_rulesheet(games.load_rulesheet("kuhn_poker")) for _ in range(2))
    for field in dataclasses.fields(propnet.PropNet):
        first, second = getattr(one, field.name), getattr(two, field.name)
        if isinstance(first, np.ndarray):
            assert np.array_equal(first, second)
        elif field.name != "roles":
            assert first == second


TIMES = int(os.environ.get("GDLX_FUZZ", "1"))


@pytest.mark.parametrize("unrolled", [True, False], ids=["unrolled", "iterated"])
@pytest.mark.parametrize("batch", range(3 * TIMES))
def test_random_games(batch: int, unrolled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All passes together, on random sheets."""
    if not unrolled:
        monkeypatch.setattr(build, "_UNROLLED_GATES", 0)
    for seed in itertools.islice(itertools.count(1_000 * batch + (0 if unrolled else 500)), 5):
        report = checker.check(source.Source(f"random_games.text({seed})", random_games.generate_sheet(seed)))
        assert not report.errors
        propnet = compiler.compile_rulesheet(report.sheet)
        validity.validate(propnet)
        support.RulesAndPropnet(report.sheet, propnet).compare_all(60)


def test_wide_gates_are_given_to_the_prover_in_parts() -> None:
    inputs = 3 * sat._WIDEST
    wide = aig.Circuit(inputs, (tuple(2 * node for node in range(1, inputs + 1)),), ())
    rules = list(sat.gates_to_asp(wide))
    assert max(rule.count("n(") for rule in rules) <= sat._WIDEST + 1
    free = f"{{n(1..{inputs})}}."
    assert not sat.is_unsatisfiable([free, *rules, f":- not n({inputs + 1})."])
    for last in (1, inputs // 2, inputs):
        assert sat.is_unsatisfiable([free, *rules, f":- not n({inputs + 1}).", f":- n({last})."])
