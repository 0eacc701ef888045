"""Sheets changed as people, editors and networks change them; checking refuses them or they can be compiled."""

import functools
import json
import pathlib
import random
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gdlx.propnet import library
from gdlx.propnet.checks import checker
from gdlx.propnet.circuits import compiler
from gdlx.propnet.common import errors, limits
from gdlx.propnet.simulate import random_play
from gdlx.propnet.syntax import diagnostics, source
from gdlx.tests.helpers import paths, random_games, trials

FRAME = "(role x) (legal x go) (<= (next over) (does x go)) (<= terminal (true over)) (goal x 100)\n"
KIF_TOKENS = [
    *("(", "(", "(", ")", ")", ")", "(<= ", "<=", "not", "or", "and", "distinct", "\n", ";", " "),
    *("role", "init", "true", "does", "legal", "next", "sees", "goal", "terminal", "base", "input", "random"),
    *("?x", "?y", "?", "x", "y", "f", "p", "q", "100", "0", "TRUE", "Not", "?X", "\r\n", "%", "."),
]
_LONGEST = 30_000  # bytes: a check of the longest sheets takes a second, which is better spent on a hundred others
_LIMITS = limits.Limits(seconds=20.0, memory_mb=1_000, rules=200_000)
_PIECES = re.compile(rb"[()]|[^\s()]+|\s+")
_WORDS = re.compile(r"[()]|[^\s()]+")

Tree = str | list["Tree"]


@functools.cache
def originals() -> list[bytes]:
    """Sheets of the library, and of other authors."""
    return [
        FRAME.encode(),
        b"role(x). legal(x, M) :- move(M) & ~true(shut) | M != a.\nmove(a). next(b) :- does(x, M), true(c).\n"
        b"terminal :- true(b). goal(x, 100) :- not (true(b) & true(c)). sees(x, f(M)) :- does(x, M).",
        *(library.text(name).encode() for name in library.names()),
        *(path.read_bytes() for path in sorted(paths.CORPUS.glob("*.[kg]*"))),
    ]


@functools.cache
def _short_ones() -> list[bytes]:
    """Those that are checked in milliseconds, and random ones."""
    made = [random_games.generate_sheet(seed).encode() for seed in range(40)]
    return [text for text in (*originals(), *made) if len(text) <= _LONGEST]


def mutate(text: bytes, chance: random.Random) -> bytes:
    """A few changes of tokens."""
    tokens = _PIECES.findall(text)
    for _ in range(chance.randint(1, 4)):
        place, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
        match chance.randrange(8):
            case 0:
                del tokens[place]
            case 1:
                tokens.insert(place, tokens[other])
            case 2:
                tokens[place], tokens[other] = tokens[other], tokens[place]
            case 3:
                tokens[place] = chance.choice(KIF_TOKENS).encode()
            case 4:
                del tokens[place : place + chance.randint(1, 30)]
            case 5:
                tokens[place : place + 1] = tokens[other : other + chance.randint(1, 30)]
            case 6:
                tokens[place] = bytes(chance.randrange(256) for _ in range(3))
            case 7:
                tokens = [token.upper() if chance.random() < 0.1 else token for token in tokens]
        if not tokens:
            return b""
    return b"".join(tokens)


def _mutate_bytes(text: bytes, chance: random.Random) -> bytes:
    changed = bytearray(text)
    for _ in range(chance.randint(1, 8)):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed[: chance.choice((None, chance.randrange(len(changed))))])


def mutate_rules(text: bytes, chance: random.Random) -> bytes:
    """A few changes of whole terms, so that parentheses match: what follows the parser sees them, too."""
    trees = _parse(text.decode(errors="replace"))
    for _ in range(chance.randint(1, 4)):
        places = list(_places(trees))
        if not places:
            break
        within, number = chance.choice(places)
        other, at = chance.choice(places)
        within[number] = chance.choice(_CHANGES)(within[number], other[at], chance)
        if chance.random() < 0.2:
            del other[at : at + 1]
    return "\n".join(map(_show, trees)).encode()


def _parse(text: str) -> list[Tree]:
    stack: list[list[Tree]] = [[]]
    for word in _WORDS.findall(re.sub(r";.*", "", text)):
        if word == "(":
            stack.append([])
        elif word != ")":
            stack[-1].append(word)
        elif len(stack) > 1:
            done = stack.pop()
            stack[-1].append(done)
    return stack[0]


def _show(tree: Tree) -> str:
    return tree if isinstance(tree, str) else f"({' '.join(map(_show, tree))})"


def _places(trees: list[Tree]) -> "list[tuple[list[Tree], int]]":
    actual, todo = [], [trees]
    while todo:
        inside = todo.pop()
        for number, part in enumerate(inside):
            actual.append((inside, number))
            if isinstance(part, list):
                todo.append(part)
    return actual


def _shuffled(part: Tree, other: Tree, chance: random.Random) -> Tree:
    return part if isinstance(part, str) else chance.sample(part, len(part))


_CHANGES: Sequence[Callable[[Tree, Tree, random.Random], Tree]] = (
    lambda part, other, chance: _copy(other),
    lambda part, other, chance: ["not", part],
    lambda part, other, chance: ["or", part, _copy(other)],
    lambda part, other, chance: ["<=", part, _copy(other)],
    lambda part, other, chance: ["f", part],
    lambda part, other, chance: [part] if isinstance(part, str) else [*part, _copy(other)],
    lambda part, other, chance: chance.choice(("?x", "?y", "random", "0", "100", "-1", "99999999999999999999")),
    lambda part, other, chance: chance.choice(KIF_TOKENS).strip() or "x",
    lambda part, other, chance: [["true", part], ["next", part], ["does", part, _copy(other)]][chance.randrange(3)],
    _shuffled,
)


def _copy(tree: Tree) -> Tree:
    return tree if isinstance(tree, str) else [_copy(part) for part in tree]


def mutant(seed: int) -> source.Source:
    return source.Source.from_bytes("sheet", mutated(seed))


def mutated(seed: int) -> bytes:
    chance = random.Random(seed)
    text = chance.choice(_short_ones())
    return chance.choice((mutate, mutate_rules, mutate_rules, _mutate_bytes))(text, chance)


def checked(text: source.Source) -> checker.CheckReport:
    """Checks a sheet and shows its diagnostics in every way."""
    report = checker.check(text)
    for problem in report.diagnostics:
        if not problem.message:
            raise trials.Failure(f"{problem.code} without a message")
        if problem.span is not None and not 0 <= problem.span.start <= min(problem.span.end, len(text.text)):
            raise trials.Failure(f"{problem.code} at {problem.span.start} to {problem.span.end}")
    shown = [problem.render("sheet") for problem in report.diagnostics[:200]]
    if not all(line.isprintable() for message in shown for line in message.split("\n")):
        raise trials.Failure("a message has control characters")
    json.dumps([problem.as_json() for problem in report.diagnostics])
    return report


def check(seed: int) -> Mapping[str, int]:
    """A trial: a mutated sheet is checked."""
    report = checked(mutant(seed))
    return {"refused" if report.errors else "accepted": 1}


def compile_one(seed: int) -> Mapping[str, int]:
    """A trial: a sheet that may be accepted is compiled and played; only a UserError may stop that."""
    report = checked(mutant(seed))
    if report.errors:
        with_errors = 0
        try:
            report.require_usable()
        except diagnostics.GdlError:
            with_errors = 1
        if not with_errors:
            raise trials.Failure("a sheet with errors is usable")
        return {"not accepted": 1}
    try:
        propnet = compiler.compile_rulesheet(report.sheet, _LIMITS)
    except errors.UserError as error:
        if not str(error):
            raise trials.Failure("an error without a message") from error
        return {"accepted, and refused by the compiler": 1}
    for number, step in enumerate(random_play.random_steps(propnet, 4, seed)):
        if not np.isfinite(step.goals).all() or number == 8:
            break
    return {"compiled": 1}


def compile_accepted(folder: pathlib.Path) -> trials.Trial:
    """The same, where each trial is a sheet that is accepted: most mutants are not."""
    del folder

    def trial(seed: int) -> Mapping[str, int]:
        outcome: Mapping[str, int] = {}
        for attempt in range(100):
            outcome = compile_one(1_000 * seed + attempt)
            if "not accepted" not in outcome:
                break
        return outcome

    return trial
