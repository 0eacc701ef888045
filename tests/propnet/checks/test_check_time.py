"""Checking takes time in proportion to the sheet, whatever is wrong with it."""

import gc
import time
from collections.abc import Callable

import pytest

from gdlx.propnet.checks import checker
from gdlx.propnet.syntax import source

FRAME = "(role x) (legal x go) (<= (next over) (does x go)) (<= terminal (true over)) (goal x 100)\n"


def many(piece: Callable[[int], str]) -> Callable[[int], str]:
    return lambda size: FRAME + "".join(map(piece, range(size)))


SIZES: dict[str, tuple[Callable[[int], str], int]] = {
    "facts": (many(lambda n: f"(p{n} a) "), 1_000),
    "chain of rules": (many(lambda n: f"(<= (p{n} ?v) (p{n + 1} ?v) (not (q{n} ?v)))\n"), 800),
    "one relation": (many(lambda n: f"(<= (legal x m{n}) (p ?v{n}) (distinct ?v{n} a))\n"), 800),
    "roles": (many(lambda n: f"(role r{n}) (legal r{n} go) (goal r{n} 0)\n"), 1_000),
    "unknown roles": (many(lambda n: f"(legal s{n} go) "), 1_000),
    "next in bodies": (many(lambda n: f"(<= p{n + 1} p{n} (next over))\n"), 800),
    "many errors on one line": (many(lambda n: f"(legal x ?v{n}) "), 1_000),
    "many variables in a fact": (
        lambda size: FRAME + "(p " + " ".join(f"?v{n}" for n in range(size)) + ")",
        4_000,
    ),
    "negative circles": (
        many(
            lambda n: (
                f"(<= (p{n} ?v) (role ?v) (not (q{n} ?v))) (<= (q{n} ?v) (d ?v) (not (p{n} ?v)))\n"
                f"(<= (legal x m{n}) (p{n} x))\n"
            )
        ),
        100,
    ),
    "judgements on moves": (
        many(lambda n: f"(legal x m{n}) (<= (legal x n{n}) h{n}) (<= h{n} (does x o{n}))\n"),
        200,
    ),
    "literals of a rule": (
        lambda size: FRAME + "(<= (legal x stay) " + "".join(f"(p ?v{n} ?v{n + 1})" for n in range(size)) + ")",
        400,
    ),
    "equalities": (
        lambda size: (
            FRAME
            + "(<= (legal x stay) "
            + "".join(f"(not (distinct ?v{n + 1} ?v{n}))" for n in reversed(range(size)))
            + "(role ?v0))"
        ),
        400,
    ),
    "options": (lambda size: FRAME + "(<= (legal x stay) (or " + "(p ?v) " * size + "))", 400),
    "places in a circle": (many(lambda n: f"(<= (next (p{n} (f ?v))) (true (p{n + 1} ?v)) (true (p{n} (f ?v))))"), 200),
    "many arguments": (
        lambda n: f"{FRAME}(<= (legal x a) (p {'?v ' * n})) (<= (p {'?v ' * n}) (p {'?v ' * n}))",
        2_000,
    ),
    "unclosed forms": (lambda size: "(a\n(b)\n(<= c d\n" * size, 800),
    "closing parentheses": (lambda size: FRAME + ")" * size, 10_000),
    "infix garbage": (lambda size: "role(x).\n" + "p :- ((q\n" * size, 1_000),
}


@pytest.mark.parametrize("shape", SIZES)
def test_the_time_of_a_check_grows_with_its_sheet(shape: str) -> None:
    """Twice the text must not take four times as long; the shorter of two runs each, on machines that are noisy."""
    make, size = SIZES[shape]
    texts = make(size), make(2 * size)
    ratios = []
    for _ in range(6):
        small, large = (min(seconds(text) for _ in range(2)) for text in texts)
        ratios.append(large / small)
        if ratios[-1] < 3.4:
            return
    pytest.fail(f"{shape}: {min(ratios):.1f} times the time for twice the text")


def seconds(text: str) -> float:
    """Processor time, since other work may slow the clock down, and without collections of other tests' garbage."""
    gc.collect()
    gc.disable()
    try:
        started = time.process_time()
        checker.check(source.Source("sheet", text))
        return time.process_time() - started
    finally:
        gc.enable()
