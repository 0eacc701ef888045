"""Hostile and broken sheets: checking never raises and never hangs, and what it accepts can be played or is refused.

GDLX_FUZZ=50 pytest tests/propnet/test_fuzz.py looks for new examples, fifty times as many.
"""

import contextlib
import random
from collections.abc import Callable

import hypothesis
import hypothesis.strategies as st
import pytest

from gdlx.propnet.checks import checker
from gdlx.propnet.datalog import interpreter, joins, program, transcript
from gdlx.propnet.syntax import diagnostics, rulesheet, source, terms
from gdlx.tests.fuzz import sheets
from gdlx.tests.helpers import trials

FRAME = sheets.FRAME
LIMIT_SECONDS = 20  # of processor time, far more than needed: it catches programs that hang
SHEETS = sheets.originals()


def survive(text: str | bytes) -> checker.CheckReport:
    """Checks a sheet, renders its diagnostics in every way, and plays it if it is usable."""
    plain = source.Source("sheet", text) if isinstance(text, str) else source.Source.from_bytes("sheet", text)
    with trials.time_limit(LIMIT_SECONDS):
        report = sheets.checked(plain)
        if not report.errors:
            play(report.sheet)
        else:
            with pytest.raises(diagnostics.GdlError) as caught:
                report.require_usable()
            assert len(str(caught.value)) < 100_000
    return report


def play(sheet: rulesheet.Rulesheet) -> None:
    """A few random moves; only a GdlError may stop them, and printed terms must parse again."""
    again, _ = rulesheet.parse_rulesheet(source.Source("again", sheet.text()))
    assert (again.rules, again.language) == (sheet.rules, sheet.language)
    with contextlib.suppress(diagnostics.GdlError):
        game = interpreter.Interpreter(sheet, lambda: joins.Budget(facts=20_000, seconds=1.0))
        list(transcript.random_match(game, seed=0, max_steps=3))


DIGITS = "".join(f"(digit {number})" for number in range(100))
EQUALITIES = "".join(f"(not (distinct ?v{n + 1} ?v{n}))" for n in reversed(range(990)))
DOUBLING = "".join(f"(not (distinct ?v{n + 1} (f ?v{n} ?v{n})))" for n in range(90))
FIVE = "(digit ?a) (digit ?b) (digit ?c) (digit ?d) (digit ?e)"
TEXTS: dict[str, Callable[[], str | bytes]] = {
    "nothing": lambda: "",
    "blanks": lambda: " " * 4_000_000,
    "a comment of megabytes": lambda: ";" * 3_000_000,
    "percent signs": lambda: "%" * 1_000_000,
    "a name, blanks, a name": lambda: "a" + " " * 1_000_000 + "b",
    "opening parentheses": lambda: "(" * 1_000_000,
    "closing parentheses": lambda: ")" * 1_000_000,
    "pairs of parentheses": lambda: "()" * 50_000,
    "nested pairs": lambda: FRAME + "(" * 5_000 + ")" * 5_000,
    "unclosed lists": lambda: "(a\n" * 100_000,
    "unclosed rules": lambda: "(<= " * 30_000,
    "unclosed rules in lists": lambda: "((<= " * 30_000,
    "arrows": lambda: "<= " * 50_000,
    "too deep, then rules": lambda: "(" * 5_000 + FRAME * 100,
    "a symbol of a megabyte": lambda: f"{FRAME}(legal x {'a' * 1_000_000})",
    "a variable of a megabyte": lambda: f"{FRAME}(<= (legal x ?{'a' * 1_000_000}) (true over))",
    "NUL": lambda: b"\0" * 1_000_000,
    "NUL symbols": lambda: b"\0 " * 30_000,
    "invalid UTF-8": lambda: FRAME.encode() + bytes(range(128, 256)) * 1_000,
    "UTF-16": lambda: FRAME.encode("utf-16"),
    "lone surrogates": lambda: FRAME + "(legal x \ud800) ; \udfff",
    "odd characters": lambda: FRAME + "(legal x \u202e\u200b\x85\u2028\x1c\x7f\ufeff)",
    "a very long line": lambda: (FRAME.replace("\n", " ") + "(<= (legal x ?v) (p ?w)) ") * 1_000,
    "carriage returns": lambda: FRAME + "(p\r" * 50_000,
    "bare symbols": lambda: "a " * 50_000,
    "infix full stops": lambda: "role(x)." + "." * 50_000,
    "infix parentheses": lambda: "p :- " + "(" * 100_000,
    "infix negations": lambda: "p :- " + "~" * 100_000 + "q",
    "infix conjunctions": lambda: "p :- " + "q & " * 50_000 + "q",
    "infix calls": lambda: "role(" + "f(" * 100_000,
    "infix arguments": lambda: "role(x). p(" + "a," * 50_000 + "a).",
    "infix sentences that break": lambda: "role(x).\n" + "a :- ((\n" * 30_000,
    "infix characters": lambda: "role(x). " + '#$@![]{}"`^=' * 10_000,
    "infix names": lambda: "p(a) " + "a " * 50_000,
}
# Added to a sheet that is a game already.
RULES_ADDED: dict[str, Callable[[], str]] = {
    "facts": lambda: "(a b)" * 20_000,
    "a deep term": lambda: f"(legal x {'(s ' * 99}0{')' * 99})",
    "a deep term in a recursion": lambda: (
        f"(p {'(s ' * 98}0{')' * 98}) (<= (p ?n) (p (s ?n))) (<= (legal x ?n) (p ?n))"
    ),
    "a rule of 20000 literals": lambda: rule("(true over) " * 20_000),
    "a rule of 900 literals": lambda: DIGITS + rule("".join(f"(digit ?v{n}) " for n in range(900))),
    "a rule of 900 recursive literals": lambda: (
        f"(p x) (<= (p ?v) (role ?v) {''.join(f'(p ?v{n}) ' for n in range(900))})" + rule("(p ?v)")
    ),
    "a chain of equalities": lambda: rule(EQUALITIES + "(role ?v0)"),
    "equalities that double": lambda: "(p a)" + rule(f"(role ?v0) {DOUBLING} (p ?v90)"),
    "thousands of or": lambda: rule("(or (true over) (not (true over))) " * 5_000),
    "hundreds of or": lambda: rule("(or (true over) (not (true over))) " * 450),
    "an or of many options": lambda: rule("(or " + "".join(f"(true (at {n})) " for n in range(900)) + ")"),
    "or in or": lambda: rule("(or (role ?v) " * 90 + "(role ?v)" + ")" * 90),
    "or in and in or": lambda: rule("(or (role ?v) (and (role ?v) " * 45 + "(role ?v)" + "))" * 45),
    "or that binds in or": lambda: rule(
        "(or (and (role ?v) (not (distinct ?v ?w)) " * 45 + "(role ?v)" + ") (role ?v))" * 45
    ),
    "or that cannot be split": lambda: (
        DIGITS + rule("".join(f"(or (role ?v{n}) (digit ?v{n + 1}))" for n in range(300)))
    ),
    "many rules with or": lambda: DIGITS + rule("".join(f"(or (digit ?v{n}) (role ?v{n}))" for n in range(100))) * 30,
    "negation of negation": lambda: rule("(not " * 95 + "(true over)" + ")" * 95),
    "many arguments": lambda: f"(<= (p {'?v ' * 9_000}) (p {'?v ' * 9_000})) (<= (legal x a) (p 1))",
    "a chain of relations": lambda: rule("(p0 ?v)") + many(lambda n: f"(<= (p{n} ?v) (p{n + 1} ?v))", 3_000),
    "roles": lambda: many(lambda n: f"(role r{n}) (legal r{n} a) (goal r{n} 1)", 3_000),
    "next in bodies": lambda: many(lambda n: f"(<= p{n + 1} p{n} (next over))", 3_000),
    "negative circles": lambda: many(
        lambda n: f"(<= p{n} (not q{n})) (<= q{n} (true over) (not p{n})) (<= (legal x m{n}) p{n})", 1_000
    ),
    "a circle of negations": lambda: rule("p0") + "(<= p0 p2000)" + many(lambda n: f"(<= p{n + 1} (not p{n}))", 2_000),
    "judgements on moves": lambda: many(
        lambda n: f"(legal x m{n}) (<= (legal x n{n}) h{n}) (<= h{n} (does x m{n}))", 1_000
    ),
    "terms that double": lambda: "(init (f a a)) (<= (next (f ?v ?v)) (true ?v))",
    "terms that grow in equalities": lambda: (
        "(p a) (<= (p ?w) (p ?v) (not (distinct ?w (s ?v)))) (<= (legal x ?v) (p ?v))"
    ),
    "terms that pair": lambda: "(init a) (<= (next (f ?v ?w)) (true ?v) (true ?w))",
    "a join without end": lambda: DIGITS + rule(FIVE + "(distinct (f ?a ?e) (f ?a ?e))"),
    "a join without end in a circle": lambda: DIGITS + f"(<= p {FIVE} (not q)) (<= q (true over) (not p))" + rule("p"),
    "spellings": lambda: many(lambda n: f"(p {spelled('abcdefghijkl', n)})", 8_000),
    "arities": lambda: many(lambda n: "(p" + " a" * n + ")", 300),
}


def many(piece: Callable[[int], str], count: int) -> str:
    return "".join(map(piece, range(count)))


def rule(body: str) -> str:
    return f"(<= (legal x stay) {body})\n"


def spelled(name: str, number: int) -> str:
    return "".join(c.upper() if number >> place & 1 else c for place, c in enumerate(name))


@pytest.mark.parametrize("shape", TEXTS)
def test_hostile_texts(shape: str) -> None:
    survive(TEXTS[shape]())


@pytest.mark.parametrize("shape", RULES_ADDED)
def test_hostile_rules(shape: str) -> None:
    survive(FRAME + RULES_ADDED[shape]())


INFIX_TOKENS = [
    *("(", ")", ",", "&", "|", "~", ".", ":-", "<=", "!=", "\\=", "not", "or", "and", "distinct", "\n", "%", ";"),
    *("role", "init", "true", "does", "legal", "next", "sees", "goal", "terminal", "X", "Y", "?x", "_", "x", "f", "p"),
    *("role(x)", "legal(x, f(X))", "true(p)", " ", "100", "#"),
]


@hypothesis.given(st.lists(st.sampled_from(sheets.KIF_TOKENS), max_size=60), st.booleans(), st.sampled_from(["", " "]))
def test_random_tokens(tokens: list[str], framed: bool, between: str) -> None:
    survive(FRAME * framed + between.join(tokens))


@hypothesis.given(st.lists(st.sampled_from(INFIX_TOKENS), max_size=60), st.sampled_from(["", " "]))
def test_random_infix_tokens(tokens: list[str], between: str) -> None:
    survive("role(x).\n" + between.join(tokens))


@hypothesis.given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
def test_random_text(text: str | bytes) -> None:
    survive(text)


TERMS = st.recursive(
    st.sampled_from(["?a", "?b", "?c", "x", "a", "0", "1"]),
    lambda inner: st.lists(inner, min_size=1, max_size=2).map(lambda args: f"(f {' '.join(args)})"),
    max_leaves=3,
)
ATOMS = st.one_of(
    st.tuples(st.sampled_from(["p", "q", "r", "true", "next", "init", "role"]), TERMS).map(" ".join),
    st.tuples(st.sampled_from(["does", "legal", "sees", "goal", "p"]), TERMS, TERMS).map(" ".join),
).map(lambda inside: f"({inside})")
LITERALS = st.recursive(
    st.one_of(ATOMS, st.just("terminal"), st.tuples(TERMS, TERMS).map(lambda two: f"(distinct {two[0]} {two[1]})")),
    lambda inner: st.tuples(st.sampled_from(["not", "or", "and"]), st.lists(inner, min_size=1, max_size=3)).map(
        lambda made: f"({made[0]} {' '.join(made[1][:1] if made[0] == 'not' else made[1])})"
    ),
    max_leaves=4,
)
RULES = st.tuples(ATOMS, st.lists(LITERALS, max_size=4)).map(lambda made: f"(<= {' '.join([made[0], *made[1]])})")


@hypothesis.given(st.lists(RULES, max_size=8))
def test_random_rules(rules: list[str]) -> None:
    """Rules that are well formed one by one: nearly everything is unsafe, circular or growing."""
    survive(FRAME + "(p a) (q 0) (init (f a))" + "\n".join(rules))


FLAT = st.sampled_from(["?a", "?b", "?a", "a", "b"])
SAFE_HEADS = st.one_of(
    FLAT.map(lambda term: f"(p {term})"),
    st.tuples(FLAT, FLAT).map(lambda two: f"(q {two[0]} {two[1]})"),
    FLAT.map(lambda term: f"(next (g {term}))"),
    FLAT.map(lambda term: f"(legal x (m {term}))"),
    FLAT.map(lambda term: f"(sees x {term})"),
    st.sampled_from(["(goal x 50)", "terminal", "(next over)"]),
)
SAFE_ATOMS = st.one_of(
    FLAT.map(lambda term: f"(p {term})"),
    st.tuples(FLAT, FLAT).map(lambda two: f"(q {two[0]} {two[1]})"),
    FLAT.map(lambda term: f"(true (g {term}))"),
    FLAT.map(lambda term: f"(does x (m {term}))"),
    FLAT.map(lambda term: f"(legal x (m {term}))"),
    st.tuples(FLAT, FLAT).map(lambda two: f"(distinct {two[0]} {two[1]})"),
    st.sampled_from(["(true over)", "(next over)", "(sees x a)", "(goal x 50)"]),
)
SAFE_LITERALS = st.one_of(
    SAFE_ATOMS,
    SAFE_ATOMS.map(lambda atom: f"(not {atom})"),
    st.lists(SAFE_ATOMS, min_size=2, max_size=3).map(lambda atoms: f"(or {' '.join(atoms)})"),
)
SAFE_RULES = st.tuples(SAFE_HEADS, st.lists(SAFE_LITERALS, min_size=1, max_size=3)).map(
    lambda made: f"(<= {made[0]} (d ?a) (d ?b) {' '.join(made[1])})"
)


@hypothesis.settings(max_examples=2 * hypothesis.settings().max_examples)
@hypothesis.given(st.lists(SAFE_RULES, min_size=1, max_size=7))
def test_a_game_keeps_what_its_check_promised(rules: list[str]) -> None:
    """No atom without a truth value, and state-only relations that do not depend on the move."""
    report = survive(FRAME + "(d a) (d b) (init (g a))\n" + "\n".join(rules))
    if report.errors or any(problem.code == "undecided" for problem in report.warnings):
        return
    game = interpreter.Interpreter(report.sheet)
    everything = program.DatalogProgram(game.rules)
    state = game.initial
    for move in [*game.legal(state)["x"], *game.legal(state)["x"]][:4]:
        if move not in game.legal(state)["x"]:
            break
        joint = {"x": move}
        given = {
            terms.TRUE: joins.Table((fluent,) for fluent in state),
            terms.DOES: joins.Table([("x", move)]),
        }
        at_once = everything.evaluate(given)
        before, during = game.tables(state), game.tables(state, joint)
        for relation in (terms.LEGAL, terms.GOAL, terms.TERMINAL):
            assert facts(before, relation) == facts(at_once, relation)
        for relation in (terms.NEXT, terms.SEES):
            assert facts(during, relation) == facts(at_once, relation)
        state = game.next(state, joint)


def facts(tables: joins.Tables, relation: tuple[str, int]) -> set[tuple[object, ...]]:
    return set(tables[relation].known) if relation in tables else set()


@hypothesis.given(st.sampled_from(range(len(SHEETS))), st.integers(0, 2**32))
def test_mutated_sheets(number: int, seed: int) -> None:
    survive(sheets.mutate(SHEETS[number], random.Random(seed)))


@pytest.mark.parametrize("number", range(len(SHEETS)))
def test_sheets_cut_off(number: int) -> None:
    text = SHEETS[number]
    for part in (1, 2, 3):
        report = survive(text[: len(text) * part // 4])
        codes = [problem.code for problem in report.errors]
        assert codes.count("unclosed-parenthesis") <= 1


@hypothesis.given(st.text(alphabet="()?ab \n;.&~|:-,", max_size=80))
def test_typed_moves(typed: str) -> None:
    game = interpreter.Interpreter(checker.check(source.Source("sheet", FRAME)).require_usable())
    with contextlib.suppress(diagnostics.GdlError):
        assert transcript.parse_joint_action(game, game.initial, typed) == {"x": "go"}
