"""Every code of diagnostics.SEVERITY: documented, caused by its example, and gone when the example is fixed."""

import pathlib
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple
from unittest import mock

import pytest

from gdlx.propnet.checks import by_playing, checker
from gdlx.propnet.circuits import compiler
from gdlx.propnet.common import limits
from gdlx.propnet.datalog import interpreter, joins, transcript
from gdlx.propnet.grounding import ground
from gdlx.propnet.syntax import diagnostics, kif, parser, source
from gdlx.tests.helpers import paths

DOCS = paths.ROOT / "docs" / "reference" / "diagnostics.md"
FRAME = "(role x) (legal x go) (<= (next over) (does x go)) (<= terminal (true over)) (goal x 100)\n"

Found = Iterable[diagnostics.Diagnostic]


class Section(NamedTuple):
    """One code in the document; sheets is empty, or the wrong one and the fixed one."""

    severity: str
    text: str
    sheets: list[str]


def read_document() -> dict[str, Section]:
    problems = {}
    _, *parts = re.split(r"^### ", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for part in parts:
        title, _, rest = part.partition("\n")
        match = re.fullmatch(r"([a-z-]+) \((error|warning)\)", title)
        assert match, title
        body = rest.split("\n## ")[0]
        sheets = re.findall(r"^```gdl\n(.*?)^```$", body, flags=re.MULTILINE | re.DOTALL)
        problems[match.group(1)] = Section(match.group(2), body.partition("```")[0].strip(), sheets)
    return problems


SECTIONS = read_document()


def checked(text: str) -> Found:
    return checker.check(source.Source("sheet", text)).diagnostics


def playing(text: str, play: Callable[[interpreter.Interpreter], object]) -> Found:
    """The diagnostics of playing a checked sheet."""
    sheet = checker.check(source.Source("sheet", text)).require_usable()
    return caught(lambda: play(interpreter.Interpreter(sheet, lambda: joins.Budget(facts=2_000))))


def grounding(text: str) -> Found:
    sheet = checker.check(source.Source("sheet", text)).require_usable()
    return caught(lambda: ground.ground(sheet, limits.Limits(rules=2_000)))


def examining(text: str, length: int = 5) -> Found:
    """The diagnostics of `check --play`, with smaller limits, since matches here end within a few steps or never."""
    sheet = checker.check(source.Source("sheet", text)).require_usable()
    with mock.patch.multiple(by_playing, _MAX_NODES=2_000, _MAX_LENGTH=length):
        return by_playing.check_by_playing(compiler.compile_rulesheet(sheet)).problems


def caught(run: Callable[[], object]) -> Found:
    try:
        run()
    except diagnostics.GdlError as error:
        return error.diagnostics
    return ()


# Codes that show only when a sheet is evaluated.
PLAYED: dict[str, Callable[[str], Found]] = {
    "grounding-limit": grounding,
    "unplayable-state": examining,
    "two-goal-values": examining,
    "no-goal-value": examining,
    "endless-play": examining,
    "chance-is-seen": examining,
    "chance-may-idle": examining,
    "repeated-state": lambda text: examining(text, 100),  # matches end, but not soon
    "never-wins": examining,
    "hidden-legal-moves": examining,
    "evaluation-limit": lambda text: playing(text, lambda game: game.legal(game.initial)),
    "goal-not-integer": lambda text: playing(text, lambda game: game.goals(game.initial)),
    "illegal-move": lambda text: playing(text, lambda game: transcript.parse_joint_action(game, game.initial, "stay")),
}

BIG = "".join(f"(digit {number})" for number in range(40)) + (
    "(<= (triple ?a ?b ?c) (digit ?a) (digit ?b) (digit ?c))"
    "(<= (legal x stay) open) (<= open (triple 1 2 3) (not shut)) (<= shut (true over) (not open))"
)
# Codes that no short text causes: the bytes of a wrong and of a fixed sheet, built here.
GENERATED: dict[str, tuple[bytes, bytes]] = {
    "too-large": (
        FRAME.encode() + b"(<= (legal x stay)" + b" (true over)" * (parser.MAX_LITERALS + 1) + b")",
        FRAME.encode() + b"(<= (legal x stay)" + b" (true over)" * parser.MAX_LITERALS + b")",
    ),
    "symbol-too-long": (
        FRAME.encode() + b"(legal x %s)" % (b"a" * (kif.MAX_SYMBOL + 1)),
        FRAME.encode() + b"(legal x %s)" % (b"a" * kif.MAX_SYMBOL),
    ),
    "nesting-too-deep": (
        FRAME.encode() + b"(legal x %s0%s)" % (b"(s " * kif.MAX_NESTING, b")" * kif.MAX_NESTING),
        FRAME.encode() + b"(legal x %s0%s)" % (b"(s " * (kif.MAX_NESTING - 1), b")" * (kif.MAX_NESTING - 1)),
    ),
    "bad-encoding": (FRAME.encode() + b"; \xfcber", FRAME.encode() + "; über".encode()),
    "undecided": (
        FRAME.encode() + BIG.encode(),
        FRAME.encode() + BIG.replace("(not open)", "").encode(),
    ),
}

# The text of the wrong sheet that the message points at; None if it has no position.
MARKED: dict[str, str | None] = {
    "too-large": "(<= (legal x stay) (true over)",
    "bad-character": "\N{REPLACEMENT CHARACTER}",
    "symbol-too-long": "aaa",
    "nesting-too-deep": "(s 0",
    "unclosed-parenthesis": "(<= (legal x stay)",
    "unmatched-parenthesis": ")\n",
    "syntax": ".\n",
    "empty-form": "()",
    "bad-functor": "(true over)))",
    "bad-head": "(true late)",
    "misplaced-connective": "not (true over)",
    "keyword-arity": "(legal stay)",
    "variable-in-fact": "?word",
    "unsafe-variable": "?word",
    "missing-role": None,
    "missing-legal": None,
    "missing-goal": None,
    "compound-role": "(player 1)",
    "static-depends-on-state": "(<= (init late)",
    "depends-on-does": "(<= (legal x stay)",
    "negative-cycle": "shut",
    "unbounded-term": "(<= (next (count (s ?n)))",
    "evaluation-limit": "(<= (legal x (dial",
    "grounding-limit": "(<= (legal x (dial",
    "goal-not-integer": None,
    "illegal-move": None,
    "bad-encoding": "\N{REPLACEMENT CHARACTER}",
    "start-message": ") 60 10",
    "needless-parentheses": "(terminal)",
    "empty-body": "(<= (legal x stay))",
    "not-distinct": "(distinct ?r x)",
    "double-negation": "(not (true over))",
    "keyword-as-function": "(does ?r ?m)",
    "old-style-declaration": "(base over 1)",
    "keyword-in-body": "(init fresh))",
    "constant-distinct": "(distinct r x)",
    "unbound-role": "?r",
    "negated-variable": "?n",
    "unsafe-unused-rule": "?n",
    "malformed-unused-rule": "(number ?n)))",
    "missing-terminal": None,
    "no-percepts": "(role random)",
    "two-arities": "(say yes please)",
    "case-variants": "Stay",
    "undefined-relation": "allowed",
    "undefined-fluent": "(true ower)",
    "undefined-move": "(does x wait)",
    "unused-relation": "late",
    "unknown-role": "y go",
    "role-without-legal": "(role y)",
    "role-without-goal": "(role y)",
    "goal-value": "101",
    "ground-stratified": "(goal x 0)",
    "recursion-restriction": "?b) (path ?b ?c)",
    "growing-term": "(<= (next (pair",
    "undecided": "shut)) (<= shut",
    "unplayable-state": None,
    "two-goal-values": None,
    "no-goal-value": None,
    "endless-play": None,
    "chance-is-seen": None,
    "chance-may-idle": None,
    "repeated-state": None,
    "never-wins": None,
    "hidden-legal-moves": None,
}


def cause(code: str, *, fixed: bool) -> tuple[Found, str]:
    """The diagnostics of the wrong or the fixed sheet of a code, and its text."""
    if code in GENERATED:
        text = source.Source.from_bytes("sheet", GENERATED[code][fixed])
        return checker.check(text).diagnostics, text.text
    text_of_document = SECTIONS[code].sheets[fixed]
    return PLAYED.get(code, checked)(text_of_document), text_of_document


def test_the_document_has_every_code_and_its_severity() -> None:
    documented = [(code, section.severity) for code, section in SECTIONS.items()]
    assert documented == [(code, str(severity)) for code, severity in diagnostics.SEVERITY.items()]


def test_the_first_example_is_clean() -> None:
    assert f"```gdl\n{FRAME}```" in DOCS.read_text(encoding="utf-8")
    assert checked(FRAME) == ()


@pytest.mark.parametrize("code", diagnostics.SEVERITY)
def test_a_section_explains_and_has_both_sheets(code: str) -> None:
    assert len(SECTIONS[code].text) > 20
    assert len(SECTIONS[code].sheets) == (0 if code in GENERATED else 2)


@pytest.mark.parametrize("code", diagnostics.SEVERITY)
def test_the_wrong_sheet_causes_the_code_and_no_other(code: str) -> None:
    problems, text = cause(code, fixed=False)
    assert [problem.code for problem in problems] == [code]
    for problem in problems:
        assert problem.hint
        marked = MARKED[code]
        if marked is None:
            assert problem.span is None
        else:
            assert problem.span is not None
            assert text.startswith(marked, problem.span.start), text[problem.span.start :][:60]
            line, column = problem.span.line, problem.span.column
            assert text.splitlines()[line - 1][column - 1 :].startswith(marked.splitlines()[0])


@pytest.mark.parametrize("code", diagnostics.SEVERITY)
def test_the_fixed_sheet_does_not(code: str) -> None:
    problems, _ = cause(code, fixed=True)
    assert [problem.code for problem in problems] == []


@pytest.mark.parametrize("code", diagnostics.SEVERITY)
def test_a_message_reads_well(code: str) -> None:
    problems, _ = cause(code, fixed=False)
    for problem in problems:
        lines = problem.render("sheet").splitlines()
        place = "sheet" if problem.span is None else f"sheet:{problem.span.line}:{problem.span.column}"
        assert lines[0] == f"{place}: {problem.severity}: {problem.message} [{code}]"
        assert lines[-1] == f"hint: {problem.hint}"
        assert all(len(line) < 200 and line.isprintable() for line in lines)
        if problem.span is not None:
            excerpt, carets = lines[1:3]
            assert carets.strip("^ ") == ""
            under = excerpt[carets.index("^") : carets.rindex("^") + 1]
            marked = MARKED[code]
            assert marked is not None
            assert under.startswith(marked.splitlines()[0][: len(under)])


def test_json_has_the_documented_fields() -> None:
    [problem] = checked(FRAME + "(legal x ?m)")
    assert problem.as_json() == {
        "code": "variable-in-fact",
        "message": problem.message,
        "line": 2,
        "column": 10,
        "hint": problem.hint,
    }
    missing = next(iter(checked("(role x)")))
    assert (missing.as_json()["line"], missing.as_json()["column"]) == (None, None)


def test_an_unknown_code_is_refused() -> None:
    with pytest.raises(ValueError, match="no-such-code"):
        diagnostics.Diagnostic("no-such-code", "", None)


def test_an_error_tells_everything_but_not_without_end() -> None:
    report = checker.check(source.Source("sheet", FRAME + "(legal x ?m)\n" * 3))
    with pytest.raises(diagnostics.GdlError) as caught:
        report.require_usable()
    assert str(caught.value).count("variable-in-fact") == 3
    many = checker.check(source.Source("sheet", FRAME + "(legal x ?m)" * 5_000))
    with pytest.raises(diagnostics.GdlError) as caught:
        many.require_usable()
    assert len(caught.value.diagnostics) == 1_000
    assert "left out" in caught.value.diagnostics[-1].message
    assert str(caught.value).endswith("and 950 more")


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"(a)" * (source.MAX_BYTES // 3 + 1), "4 MiB"),
        ("é".encode() * (source.MAX_BYTES // 2 + 1), "4 MiB"),  # more bytes than characters
        (b"a " * (kif.MAX_TOKENS + 1), f"{kif.MAX_TOKENS} symbols and parentheses"),
        (b"p(a) :- " + b"a " * kif.MAX_TOKENS, f"{kif.MAX_TOKENS} names and marks"),
        (b"(p" + b" a" * kif.MAX_FORM + b") (role x)", "a single form of more than 20000 symbols"),
        (b"role(x). p(" + b"a," * kif.MAX_FORM + b"a).", "a single form of more than 20000 symbols"),
    ],
    ids=["bytes", "characters", "tokens", "infix-tokens", "form", "infix-form"],
)
def test_everything_that_can_be_too_large(data: bytes, what: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "sheet.gdl"
    path.write_bytes(data)
    problems = checker.check(source.Source.from_path(path)).errors
    assert [problem.message for problem in problems if problem.code == "too-large"] != []
    assert any(what in problem.message for problem in problems)


def test_an_excerpt_of_a_very_long_line_is_a_window() -> None:
    text = FRAME + " " * 100_000 + "(legal x ?m)" + " " * 100_000
    [problem] = checked(text)
    excerpt, carets = problem.render().splitlines()[1:3]
    assert len(excerpt) < 120
    assert excerpt[carets.index("^") :].startswith("?m)")
