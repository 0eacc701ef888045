"""Grounding: the same game with and without rewrites, for any text of a sheet, and within the limits."""

import dataclasses
import os
import pathlib
import resource
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from gdlx.propnet import games
from gdlx.propnet.checks import checker
from gdlx.propnet.circuits import build, compiler
from gdlx.propnet.common import limits
from gdlx.propnet.grounding import ground
from gdlx.propnet.syntax import diagnostics, rulesheet, source, terms
from gdlx.tests.helpers import support

FRAME = "(role r) (legal r a) (<= (next x) (does r a)) (<= terminal (true x)) (goal r 100)\n"
NUMBERS = "\n".join(f"(n {n})" for n in range(100)) + "\n"

# One rule each that explodes, in line 102: many instances; many that are then refused; terms that grow.
BOMBS = {
    "product": "(<= (legal r (f ?a ?b ?c ?d ?e)) (n ?a) (n ?b) (n ?c) (n ?d) (n ?e))",
    "silent": "(<= (legal r (f ?a ?b ?c ?d ?e)) (n ?a) (n ?b) (n ?c) (n ?d) (n ?e) (distinct (g ?a ?b ?c ?d ?e) "
    "(g ?a ?b ?c ?d ?e)))",
    "unbounded": "(<= (next (count (s ?n))) (true (count ?n))) (init (count zero))",
    "doubling": "(<= (next (count (s ?n ?n))) (true (count ?n))) (init (count zero))",
}


def bomb(name: str) -> rulesheet.Rulesheet:
    return rulesheet.parse_rulesheet(source.Source("bomb.gdl", FRAME + NUMBERS + BOMBS[name]))[0]


@pytest.mark.parametrize(
    "game",
    ["tictactoe", "kuhn_poker", "goofspiel:cards=3", "leduc_poker", "liars_dice:sides=3", "simultaneous_breakthrough"],
)
def test_splitting_changes_no_game(game: str) -> None:
    sheet = games.load_rulesheet(game)
    propnets = [build.build(sheet, ground.ground(sheet, rewrite=splitting)) for splitting in (True, False)]
    assert propnets[0].fluents == propnets[1].fluents
    assert [role.moves for role in propnets[0].roles] == [role.moves for role in propnets[1].roles]
    for propnet in propnets:
        support.RulesAndPropnet(sheet, propnet).compare_random(100)


def test_splitting_makes_joins_small() -> None:
    """Five places in a circle, each beside the next: a direct translation has all five in one rule."""
    names = " ".join(f"(at {n})" for n in range(12))
    ring = " ".join(f"(true (at ?{a})) (true (at ?{b}))" for a, b in ("ab", "bc", "cd", "de"))
    text = f"(role r) {names} (<= (legal r (go ?x)) (at ?x)) (<= (next (at ?x)) (does r (go ?x)))"
    sheet = support.read(f"{text} (<= terminal {ring} (distinct ?a ?e)) (goal r 100)")
    split, direct = ground.ground(sheet), ground.ground(sheet, rewrite=False)
    assert len(direct.heads) > 12**5 - 12**4
    assert len(split.heads) < 1_000
    assert split.peak_mb > 0


SYMBOLS = [
    '"',
    'a"b',
    "\\",
    '\\"',
    "'",
    "#script",
    "#show",
    "#end.",
    ":-",
    ".",
    "a.b",
    "{x}",
    "@f",
    "$x",
    "a,b",
    "a=b",
    "!=",
    "-->",
    "/*",
    "%*",
    "&",
    "|",
    "f",
    "r0",
    "V0",
    "X",
    "_",
    "_x",
    "nota",
    "not_",
    "true",
    "init",
    "007",
    "-1",
    "+1",
    "1.5",
    "99999999999999999999",
    "ñandú",
    "名前",
    "\N{PLAYING CARD ACE OF SPADES}",
    "a" * 1000,
]


def test_no_text_of_a_sheet_reaches_the_grounder() -> None:
    """Symbols that would be syntax, directives or other things for clingo are plain names of moves and fluents."""
    free = [symbol for symbol in SYMBOLS if symbol not in terms.KEYWORD_ARITY]
    rules = [f"(symbol {symbol})" for symbol in SYMBOLS]
    rules += [f"(<= (next ({symbol} taken)) (does r (take {symbol})))" for symbol in free]
    rules += [f"({symbol} {number}) (<= (sees r ({symbol} ?n)) ({symbol} ?n))" for number, symbol in enumerate(free)]
    rules.append("""
        (role r) (init (step 1)) (<= (next (step 2)) (true (step 1))) (<= terminal (true (step 2)))
        (<= (legal r (take ?s)) (symbol ?s)) (<= (next (last ?s)) (does r (take ?s)))
        (<= (sees r ?s) (does r (take ?s)) (distinct ?s "))
        (<= (goal r 100) (true (" taken))) (<= (goal r 0) (not (true (" taken))))
    """)
    sheet = support.read("\n".join(rules))
    propnet = compiler.compile_rulesheet(sheet)
    assert set(propnet.roles[0].moves) == {f"(take {symbol})" for symbol in SYMBOLS}
    assert {f"(last {symbol})" for symbol in SYMBOLS} < set(propnet.fluents)
    assert support.RulesAndPropnet(sheet, propnet).compare_all(1000) == len(SYMBOLS) + 1


def test_names_of_roles_and_relations_are_free() -> None:
    text = """(role #) (role ") (legal # ") (legal " \\) (<= (next :-) (does # ")) (<= (:- ?x) (true ?x))
        (<= terminal (:- ?x)) (goal # 50) (goal " 50) (<= (sees # %) (:- :-))"""
    sheet = support.read(text)
    propnet = compiler.compile_rulesheet(sheet)
    assert [role.name for role in propnet.roles] == ["#", '"']
    assert support.RulesAndPropnet(sheet, propnet).compare_all(10) == 2


def test_equal_numbers_written_in_two_ways_are_two_symbols() -> None:
    text = "(legal r (pick 7)) (legal r (pick 07)) (legal r (pick +7)) (<= (next (got ?n)) (does r (pick ?n)))"
    sheet = support.read(FRAME + text + "(<= terminal (true (got ?n)))")
    propnet = compiler.compile_rulesheet(sheet)
    assert propnet.roles[0].moves == ("(pick +7)", "(pick 07)", "(pick 7)", "a")
    assert support.RulesAndPropnet(sheet, propnet).compare_all(10) == 5


LIMITS = {
    "more than 20,000 ground rules (`Limits.rules=`)": limits.Limits(rules=20_000, seconds=60),
    "more than 1 seconds (`Limits.seconds=`)": limits.Limits(seconds=1),
    "more than 64 MB of memory (`Limits.memory_mb=`)": limits.Limits(memory_mb=64, seconds=60),
}


@pytest.mark.parametrize(
    ("name", "words"),
    [(name, words) for name in BOMBS for words in LIMITS if not (name == "silent" and "rules" in words)],
)
def test_a_bomb_is_stopped_and_named(name: str, words: str) -> None:
    within = LIMITS[words]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.monotonic()
    with pytest.raises(diagnostics.GdlError) as caught:
        ground.ground(bomb(name), within)
    assert time.monotonic() - started < within.seconds + 30  # bounded; how fast depends on the machine
    [problem] = caught.value.diagnostics
    assert problem.code == "grounding-limit"
    assert words in problem.message
    assert problem.span is not None
    assert problem.span.source.position(problem.span.start)[0] == 102
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 2**10  # kilobytes
    assert not [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]


def test_the_limit_of_rules_is_exact() -> None:
    sheet = support.read(FRAME)
    count = len(ground.ground(sheet).heads)
    ground.ground(sheet, limits.Limits(rules=count))
    with pytest.raises(diagnostics.GdlError, match="ground rules"):
        ground.ground(sheet, limits.Limits(rules=count - 1))


def test_huge_limits_are_no_limits(capfd: pytest.CaptureFixture[str]) -> None:
    endless = limits.Limits(seconds=float("inf"), memory_mb=10**15, rules=10**15)
    assert len(ground.ground(support.read(FRAME), endless).heads) > 0
    assert capfd.readouterr() == ("", "")


def test_a_limit_of_the_system_is_respected() -> None:
    """A process with little memory cannot allow its child more."""
    code = """if True:
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
        from gdlx.propnet import games
        from gdlx.propnet.grounding import ground
        print(len(ground.ground(games.load_rulesheet("kuhn_poker")).heads) > 100)
    """
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("True\n", "")


def test_terms_that_grow_are_found_before_grounding() -> None:
    report = checker.check(source.Source("bomb.gdl", FRAME + NUMBERS + BOMBS["unbounded"]))
    assert [problem.code for problem in report.errors] == ["unbounded-term"]


def test_deep_terms_are_refused_by_the_reader() -> None:
    deep = "(s " * 100_000 + "z" + ")" * 100_000
    report = checker.check(source.Source("deep.gdl", f"{FRAME} (init (count {deep}))"))
    assert "nesting-too-deep" in [problem.code for problem in report.errors]


def test_a_join_of_many_variables_is_split_not_ground() -> None:
    """A closed walk of 30 steps through 20 places: 20 to the 30th instances, or a few thousand."""
    steps = " ".join(f"(e ?x{n} ?x{n + 1})" for n in range(30))
    edges = " ".join(f"(e {n} {(n + k) % 20})" for n in range(20) for k in (1, 3, 7))
    sheet = support.read(f"{FRAME} {edges} (<= (legal r b) (true x) {steps} (e ?x30 ?x0))")
    assert len(ground.ground(sheet, limits.Limits(rules=200_000)).heads) < 200_000


def _children() -> set[int]:
    """Processes started by this one that still run."""
    pids = set()
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and fields[0] != "Z":
            pids.add(int(status.parent.name))
    return pids


@pytest.mark.skipif(not pathlib.Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_killed_child_is_a_limit_of_memory() -> None:
    """A child that the system kills is assumed to have run out of memory."""

    def kill() -> None:
        while not (started := _children() - before):
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(started.pop(), signal.SIGKILL)

    before = _children()
    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(diagnostics.GdlError, match=r"MB of memory \(`Limits.memory_mb=`\)") as caught:
        ground.ground(bomb("silent"))
    killer.join()
    assert "bomb.gdl:102:" in str(caught.value)
    assert _children() == before


class _Cut:
    """A child that exits while it writes."""

    def __init__(self, stdout: bytes, returncode: int) -> None:
        self.stdout, self.returncode = stdout, returncode

    def command(self) -> list[str]:
        code = f"import os, sys; sys.stdin.readline(); os.write(1, {self.stdout!r}); "
        ending = f"os.kill(os.getpid(), {-self.returncode})" if self.returncode < 0 else f"os._exit({self.returncode})"
        return [sys.executable, "-c", code + ending]


@pytest.mark.parametrize(
    "stdout", [b"", b'{"stopped": "", "count": 5', b'{"stopped": "", "count": 1, "literals": 9, "relations": 4}\n12345']
)
def test_half_an_answer_is_none(stdout: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    popen = subprocess.Popen
    cut = _Cut(stdout, -signal.SIGKILL)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: popen(cut.command(), **options))
    with pytest.raises(diagnostics.GdlError, match="MB of memory"):
        ground.ground(support.read(FRAME))


def test_a_child_that_fails_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    popen = subprocess.Popen
    cut = _Cut(b"", 1)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: popen(cut.command(), **options))
    with pytest.raises(RuntimeError, match="grounder"):
        ground.ground(support.read(FRAME))


def _running(marker: str) -> list[int]:
    """Processes whose environment contains a text."""
    pids = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if marker.encode() in path.read_bytes():
                pids.append(int(path.parent.name))
        except OSError:
            continue
    return pids


@pytest.mark.skipif(not pathlib.Path("/proc/self/environ").exists(), reason="needs /proc")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_the_child_ends_with_its_parent(ending: signal.Signals, tmp_path: pathlib.Path) -> None:
    (tmp_path / "bomb.gdl").write_text(FRAME + NUMBERS + BOMBS["silent"])
    marker = f"GDLX_TEST_MARKER={tmp_path}"
    command = [sys.executable, "-m", "gdlx.cli", "compile", str(tmp_path / "bomb.gdl")]
    environment: dict[str, Any] = {**os.environ, "GDLX_TEST_MARKER": str(tmp_path)}
    # A session of its own, so that the signal goes to parent and child alike, as from a terminal.
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as parent:
        deadline = time.monotonic() + 60
        while len(_running(marker)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)  # into the join
        if ending is signal.SIGINT:
            os.killpg(parent.pid, ending)
        else:
            parent.kill()
        out, err = parent.communicate(timeout=30)
    if ending is signal.SIGINT:
        assert (parent.returncode, out, err) == (130, b"", b"interrupted\n")
    deadline = time.monotonic() + 10
    while _running(marker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _running(marker)


def test_nothing_in_the_current_folder_stands_in_for_a_module(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "clingo.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(tmp_path)
    assert len(ground.ground(support.read(FRAME)).heads) > 0


def test_ground_rules_are_what_the_grounder_says() -> None:
    """A rule with a body, a fact, a negation; atoms of keywords by name."""
    sheet = support.read(FRAME + "(<= (legal r b) (not (true x)) (true y)) (init y)")
    rules = ground.ground(sheet)
    legal = rules.atoms["legal", 2]
    assert set(legal) == {("r", "a"), ("r", "b")}
    true = {fact[0]: atom for fact, atom in rules.atoms["true", 1].items()}
    assert set(true) == {"x", "y"}
    [number] = np.flatnonzero(rules.heads == legal["r", "b"])
    body = rules.body[rules.starts[number] : rules.starts[number + 1]]
    assert sorted(body.tolist()) == sorted([-true["x"], true["y"]])
    assert rules.relations[rules.relation[legal["r", "b"]]] == ("legal", 2)
    assert dataclasses.is_dataclass(rules)


@pytest.mark.parametrize("request_sent", [b"", b'{"program": "'])
def test_the_grounder_ends_silently_if_its_request_does_not_come(request_sent: bytes) -> None:
    """As when a command is interrupted just after it has started the grounder."""
    command = [sys.executable, "-P", "-m", "gdlx.propnet.grounding.worker"]
    ran = subprocess.run(command, input=request_sent, capture_output=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
