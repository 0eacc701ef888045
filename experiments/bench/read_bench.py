"""Benchmark `read`: reading and checking rulesheets, how that grows, and the start of the command line."""

import functools
import math
import statistics
import sys
from collections.abc import Iterator

from gdlx.experiments.bench import harness
from gdlx.experiments.bench.measuring import children, host_machine
from gdlx.propnet.checks import checker
from gdlx.propnet.syntax import source

_FRAME = """\
; A territory game: each region is a board of its own, whoever owns more regions wins.
(role red) (role blue)
(init (control red)) (init (step 0))
(<= (legal ?p noop) (role ?p) (not (true (control ?p))))
(<= (next (control blue)) (true (control red)))
(<= (next (control red)) (true (control blue)))
(<= (next (step ?m)) (true (step ?n)) (succ ?n ?m))
(<= (owned ?p) (role ?p) (owns ?p ?region))
(<= (goal ?p 100) (owned ?p) (rival ?p ?q) (not (owned ?q)))
(<= (goal ?p 50) (owned ?p) (rival ?p ?q) (owned ?q))
(<= (goal ?p 50) (role ?p) (rival ?p ?q) (not (owned ?p)) (not (owned ?q)))
(<= (goal ?p 0) (rival ?p ?q) (owned ?q) (not (owned ?p)))
(<= terminal (true (step 60)))
(rival red blue) (rival blue red)
"""

_REGION = """
; region {r}
{cells}
(<= (legal ?p (mark {r} ?x ?y)) (true (control ?p)) (true (cell {r} ?x ?y blank)) (not (decided {r})))
(<= (next (cell {r} ?x ?y ?p)) (does ?p (mark {r} ?x ?y)) (true (cell {r} ?x ?y blank)))
(<= (next (cell {r} ?x ?y ?c)) (true (cell {r} ?x ?y ?c)) (distinct ?c blank))
(<= (next (cell {r} ?x ?y blank)) (true (cell {r} ?x ?y blank)) (not (marked {r} ?x ?y)))
(<= (marked {r} ?x ?y) (does ?p (mark {r} ?x ?y)))
(<= (line {r} ?x ?p) (role ?p) (true (cell {r} ?x 1 ?p)) (true (cell {r} ?x 2 ?p)) (true (cell {r} ?x 3 ?p)))
(<= (line {r} ?y ?p) (role ?p) (true (cell {r} 1 ?y ?p)) (true (cell {r} 2 ?y ?p)) (true (cell {r} 3 ?y ?p)))
(<= (decided {r}) (line {r} ?n ?p))
(<= (owns ?p {r}) (line {r} ?n ?p))
(<= (owns ?p {r}) (role ?p) (not (decided {r})) (or (owns_next ?p {r}) (true (cell {r} 2 2 ?p))))
(<= (owns_next ?p {r}) (line {next} ?n ?p) (distinct ?n {r}))
"""


def generate_sheet(size: int) -> str:
    """A well-formed rulesheet of about `size` characters: many small boards, as in large published sheets."""
    parts = [_FRAME, *(f"(succ {n} {n + 1})\n" for n in range(60))]
    cells = [f"(init (cell {{r}} {x} {y} blank))" for x in (1, 2, 3) for y in (1, 2, 3)]
    region = _REGION.replace("{cells}", "\n".join(cells))
    length = sum(map(len, parts))
    number = 0
    while length < size:
        parts.append(region.replace("{r}", f"r{number}").replace("{next}", f"r{number + 1}"))
        length += len(parts[-1])
        number += 1
    return "".join(parts)


def read_and_check(size: int) -> None:
    report = checker.check(source.Source(f"{size} characters", generate_sheet(size)))
    if report.diagnostics:
        raise RuntimeError(f"the generated sheet is not clean: {report.diagnostics[0].render()}")


def figures() -> Iterator[harness.Figure]:
    def seconds(size: int) -> float:
        return host_machine.best_seconds(functools.partial(read_and_check, size))

    yield harness.Figure("read and check 70 kB", seconds(70_000), "s", target=harness.Target(1))

    sizes = (250_000, 500_000, 1_000_000)
    times = [seconds(size) for size in sizes]
    yield harness.Figure("read and check 1 MB", times[-1], "s", target=harness.Target(15))
    exponent = statistics.linear_regression([math.log(s) for s in sizes], [math.log(t) for t in times]).slope
    yield harness.Figure("growth from 0.25 to 1 MB", exponent, "exponent", target=harness.Target(1.2))

    idle, peak = host_machine.peak_mb(int), host_machine.peak_mb(read_and_check, 1_000_000)
    yield harness.Figure("memory to read and check 1 MB", peak, "MB", peer="idle python", peer_value=idle)

    bare = _start_seconds("-c", "pass")
    for command in ("--version", "games", "check tictactoe"):
        yield harness.Figure(
            f"gdlx {command}",
            _start_seconds("-m", "gdlx.cli", *command.split()),
            "s",
            peer="python -c pass",
            peer_value=bare,
            target=harness.Target(1),
        )


def _start_seconds(*arguments: str) -> float:
    command = [sys.executable, *arguments]
    run = functools.partial(children.run, command)
    return host_machine.best_seconds(run, repeats=5)
