"""Parsing text into rules: sheets as they are published, and positions."""

import itertools
import pathlib
from collections.abc import Iterator

import hypothesis
import hypothesis.strategies as st
import pytest

from gdlx.propnet import library
from gdlx.propnet.checks import checker
from gdlx.propnet.syntax import kif, parser, rulesheet, source, terms
from gdlx.tests.helpers import reading


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_do_not_matter(end: str) -> None:
    text = reading.SHEET.replace("\n", end)
    sheet = reading.read(text.encode())
    assert sheet.rules == reading.read(reading.SHEET).rules
    assert [rule.span.line for rule in sheet.rules] == [rule.span.line for rule in reading.read(reading.SHEET).rules]


def test_a_byte_order_mark_does_not_matter() -> None:
    assert reading.read(b"\xef\xbb\xbf" + reading.SHEET.encode()).rules == reading.read(reading.SHEET).rules
    assert reading.read(b"\xef\xbb\xbf(role x)").rules[0].span.column == 1


def test_glued_parentheses() -> None:
    expected = ["(base (cell 1))", "(<= terminal (true (cell 1)))"]
    assert reading.printed("(base(cell 1))(<= terminal(true(cell 1)))") == expected


def test_symbols_of_any_characters() -> None:
    [rule] = reading.read(
        "(<= (++ ?n++ ?n) (> ?n++ 0.5) (succ ?n ?n++) (p a_b-c é 'x' \N{GREEK SMALL LETTER ALPHA}))"
    ).rules
    assert rule.head.name == "++"
    assert {variable.name for variable in terms.variables_in(rule.head.args)} == {"n++", "n"}
    assert [atom.name for atom, _ in terms.atoms_in(rule.body)] == [">", "succ", "p"]


@pytest.mark.parametrize("text", ["(role x) ; the end", "(role x);", "(role x)\n;;; (role y)", ";\r(role x)"])
def test_comments_at_the_ends(text: str) -> None:
    assert reading.printed(text) == ["(role x)"]


def test_a_comment_ends_with_its_line_and_may_follow_a_symbol() -> None:
    assert reading.printed("(p a;b)\n c);d") == ["(p a c)"]


def test_nothing_at_all() -> None:
    assert reading.printed("") == reading.printed("; only a comment") == reading.printed(b"\xef\xbb\xbf") == []


@pytest.mark.parametrize("keyword", list(terms.KEYWORD_ARITY))
def test_keywords_in_any_case(keyword: str) -> None:
    args = ["x", "y"][: terms.KEYWORD_ARITY[keyword]]
    for spelled in (keyword.upper(), keyword.capitalize()):
        [rule] = reading.read(f"(<= head ({' '.join([spelled, *args])}))").rules
        [(atom, _)] = terms.atoms_in(rule.body)
        assert atom.name == keyword


def test_connectives_in_any_case() -> None:
    upper = reading.read("(<= (P ?x) (OR (Q ?x) (AND (R ?x) (NOT (S ?x)))) (DISTINCT ?x A))").rules
    lower = reading.read("(<= (P ?x) (or (Q ?x) (and (R ?x) (not (S ?x)))) (distinct ?x A))").rules
    assert upper == lower


def test_a_sheet_all_in_upper_case() -> None:
    sheet = reading.read(reading.SHEET.upper())
    assert sheet.language == 2
    assert [rule.head.name for rule in sheet.rules][:3] == ["role", "role", "init"]
    assert str(sheet.rules[0]) == "(role GUESSER)"


@pytest.mark.parametrize("spelled", ["random", "RANDOM", "Random"])
def test_random_in_any_case(spelled: str) -> None:
    sheet = reading.read(f"(role x) (role {spelled}) (legal {spelled} toss)")
    assert sheet.language == 2
    assert [str(rule) for rule in sheet.rules[1:]] == ["(role random)", "(legal random toss)"]


def test_a_variable_called_random_is_like_any_other() -> None:
    [rule] = reading.read("(<= (p ?Random ?random) (q ?Random) (q ?random))").rules
    assert [variable.name for variable in terms.variables_in(rule.head.args)] == ["Random", "random"]


def test_symbols_keep_their_case_unless_folded() -> None:
    text = "(role White) (<= (P ?X) (q ?X ?x))"
    assert reading.printed(text) == ["(role White)", "(<= (P ?X) (q ?X ?x))"]
    folded = reading.read(text, fold_case=True)
    assert [str(rule) for rule in folded.rules] == ["(role white)", "(<= (p ?x)\n    (q ?x ?x))"]


def test_needless_parentheses_mean_the_name() -> None:
    assert (
        reading.read("(<= (terminal) (open) (not (shut)) (p (a)))").rules
        == reading.read("(<= terminal open (not shut) (p a))").rules
    )
    assert reading.codes("(<= (terminal) (open) (p (a)))") == ["needless-parentheses"] * 3


@pytest.mark.parametrize("text", ["terminal", "terminal\n(role x)", "terminal (role x)", "; c\nterminal ; d\n(role x)"])
def test_a_sheet_may_start_with_a_bare_symbol(text: str) -> None:
    assert reading.printed(text)[0] == "terminal"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("(or a)", "a"),
        ("(and a)", "a"),
        ("(and a (and b c))", "a b c"),
        ("(not (not a))", "a"),
        ("(not (or a b))", "(not a) (not b)"),
        ("(not (and a b))", "(or (not a) (not b))"),
        ("(not (and a (or b (not c))))", "(or (not a) (and (not b) c))"),
        ("(not (or a (and b (not c))))", "(not a) (or (not b) c)"),
        ("(or a (not (or b c)))", "(or a (and (not b) (not c)))"),
        ("(or (and a b) (or c d))", "(or (and a b) (or c d))"),
        ("(not (or (distinct x y) a))", "(not (distinct x y)) (not a)"),
    ],
)
def test_nestings_of_connectives(written: str, meant: str) -> None:
    assert reading.read(f"(<= p {written})").rules == reading.read(f"(<= p {meant})").rules


Formula = str | tuple[str, list["Formula"]]  # an atom, or a connective with what it joins
FORMULAS: st.SearchStrategy[Formula] = st.recursive(
    st.sampled_from("abc"),
    lambda inner: st.one_of(
        st.tuples(st.just("not"), st.lists(inner, min_size=1, max_size=1)),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=12,
)


def as_kif(formula: Formula) -> str:
    return formula if isinstance(formula, str) else f"({formula[0]} {' '.join(map(as_kif, formula[1]))})"


def truth(formula: Formula, holds: set[str]) -> bool:
    if isinstance(formula, str):
        return formula in holds
    parts = [truth(inner, holds) for inner in formula[1]]
    return not parts[0] if formula[0] == "not" else all(parts) if formula[0] == "and" else any(parts)


def body_truth(body: terms.Body, holds: set[str]) -> bool:
    def literal(part: terms.Literal) -> bool:
        if isinstance(part, terms.Or):
            return any(body_truth(option, holds) for option in part.disjuncts)
        assert not isinstance(part, terms.Distinct)
        return part.name in holds if isinstance(part, terms.Atom) else part.atom.name not in holds

    return all(map(literal, body))


@hypothesis.given(FORMULAS)
def test_connectives_keep_their_meaning(formula: Formula) -> None:
    [rule] = reading.read(f"(<= p {as_kif(formula)})").rules
    for chosen in itertools.product([False, True], repeat=3):
        holds = {name for name, included in zip("abc", chosen, strict=True) if included}
        assert body_truth(rule.body, holds) == truth(formula, holds)


def every_term(rule: terms.Rule) -> Iterator[terms.Term]:
    work = list(terms.rule_terms(rule))
    while work:
        term = work.pop()
        yield term
        if isinstance(term, terms.Compound):
            work += term.args


def assert_spans_read_back(text: source.Source) -> None:
    sheet, _ = rulesheet.parse_rulesheet(text)
    assert sheet.rules
    for rule in sheet.rules:
        assert rulesheet.parse_rulesheet(source.Source("piece", text.text[rule.span.start : rule.span.end]))[
            0
        ].rules == (rule,)
        for term in every_term(rule):
            piece = source.Source("piece", text.text[term.span.start : term.span.end])
            assert parser.RuleParser(kif.DiagnosticLog()).parse_terms(kif.read_nodes(piece, kif.DiagnosticLog())) == (
                term,
            )
        for atom in (rule.head, *(atom for atom, _ in terms.atoms_in(rule.body))):
            [written] = rulesheet.parse_rulesheet(
                source.Source("piece", f"(<= p {text.text[atom.span.start : atom.span.end]})")
            )[0].rules
            assert written.body == (atom,)


@pytest.mark.parametrize("game", library.names())
def test_places_in_library_games_read_back(game: str) -> None:
    assert_spans_read_back(source.Source(game, library.text(game)))


@pytest.mark.parametrize("name", reading.CORPUS_NAMES)
def test_places_in_the_corpus_read_back(name: str, corpus: pathlib.Path) -> None:
    assert_spans_read_back(source.Source.from_path(corpus / name))


def test_lines_and_columns_count_from_one() -> None:
    [first, second] = reading.read("(role x)\r\n  (role\r(y))").rules
    assert (first.span.line, first.span.column) == (1, 1)
    assert (second.span.line, second.span.column) == (2, 3)
    assert (second.head.args[0].span.line, second.head.args[0].span.column) == (3, 1)


def parentheses(text: str, which: str) -> list[int]:
    """Offsets of parentheses, without those in comments."""
    return [start for token, start in kif.tokens(source.Source("sheet", text)) if token == which]


@pytest.mark.parametrize("lost", parentheses(reading.SHEET, ")"))
def test_a_lost_closing_parenthesis_costs_one_message(lost: int) -> None:
    rules = reading.read(reading.SHEET).rules
    sheet, [problem] = reading.read_all(reading.SHEET[:lost] + reading.SHEET[lost + 1 :])
    assert problem.code == "unclosed-parenthesis"
    [broken] = [rule for rule in rules if rule.span.start <= lost < rule.span.end]
    assert problem.span is not None
    assert problem.span.line == broken.span.line
    # Everything else is parsed, apart from what follows it on the same line.
    others = [rule for rule in rules if rule.span.line != broken.span.line]
    assert [rule for rule in sheet.rules if rule in others] == others


@pytest.mark.parametrize("lost", parentheses(reading.SHEET, "("))
def test_a_lost_opening_parenthesis_costs_one_message(lost: int) -> None:
    assert reading.codes(reading.SHEET[:lost] + reading.SHEET[lost + 1 :]) == ["unmatched-parenthesis"]


@pytest.mark.parametrize("place", parentheses(reading.SHEET, ")"))
def test_a_closing_parenthesis_too_many_costs_one_message(place: int) -> None:
    assert reading.codes(reading.SHEET[:place] + ")" + reading.SHEET[place:]) == ["unmatched-parenthesis"]


def test_two_lost_parentheses_cost_two_messages() -> None:
    assert (
        reading.codes("(<= a (b)\n(<= c (d))\n(<= e (f\n(<= g (h))")
        == ["unclosed-parenthesis"] * 2 + ["needless-parentheses"] * 2
    )


def test_a_rule_behind_a_form_too_deep_keeps_its_place() -> None:
    sheet, problems = reading.read_all("(p " + "(s " * 200 + "\n  ( <= a b)")
    assert [problem.code for problem in problems] == ["nesting-too-deep"]
    [rule] = sheet.rules
    assert (rule.span.line, rule.span.column) == (2, 3)


def test_every_problem_of_a_rule_is_told() -> None:
    expected = ["keyword-arity", "keyword-arity", "empty-form", "bad-head"]
    assert reading.codes("(<= (legal x) (true a b) (p ())) (<= (true x) (q y))") == expected


@pytest.mark.parametrize("depth", [kif.MAX_NESTING - 1, kif.MAX_NESTING, kif.MAX_NESTING + 1, 5_000])
def test_a_form_too_deep_does_not_hide_the_others(depth: int) -> None:
    sheet, problems = reading.read_all(f"(role x) (p {'(s ' * depth}0{')' * depth}) (role y)")
    assert len(sheet.rules) == (3 if depth < kif.MAX_NESTING else 2)
    assert [problem.code for problem in problems] == ([] if depth < kif.MAX_NESTING else ["nesting-too-deep"])
    assert str(sheet.rules[-1]) == "(role y)"


def test_a_rule_at_the_deepest_nesting_prints_and_hashes() -> None:
    depth = kif.MAX_NESTING - 1
    [rule] = reading.read(f"(p {'(s ' * depth}0{')' * depth})").rules
    assert reading.read(str(rule)).rules == (rule,)
    assert len({rule, *reading.read(str(rule)).rules}) == 1


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("(role x)", 1),
        ("(role x) (role random)", 2),
        ("(role x) (<= (sees x m) (does x m))", 2),
        ("(role x) (<= (p x) (sees x m))", 1),
        ("; gdlx: gdl-ii\n(role x)", 2),
        ("(role x)\n  ;; GDLX: GDL-II and why\n", 2),
        ("(role x)\r; gdlx: gdl-ii\r(role y)", 2),
        ("; gdlx: gdl-i\n(role random)", 1),
        ("% gdlx: gdl-ii\nrole(x).", 2),
        ("; about gdlx: gdl-ii\n(role x)", 1),
        ("; gdlx: gdl-iii\n(role x)", 1),
    ],
)
def test_which_language(text: str, language: int) -> None:
    sheet = reading.read(text)
    assert sheet.language == language
    assert reading.read(sheet.text()).language == language
    assert reading.read(text, gdl=1).language == 1
    assert reading.read(reading.read(text, gdl=2).text()).language == 2


def test_missing_inner_parentheses_are_suggested() -> None:
    text = "(role x) (init cell 1 b) (<= (legal x mark ?n) (true cell ?n b)) (<= (next over) (does x mark ?n))"
    hints = {problem.hint for problem in checker.check(source.Source("sheet", text)).errors}
    assert {
        "did you mean (init (cell 1 b))?",
        "did you mean (legal x (mark ?n))?",
        "did you mean (true (cell ?n b))?",
        "did you mean (does x (mark ?n))?",
    } <= hints
    corrected = text
    for wrong, right in (
        ("(init cell 1 b)", "(init (cell 1 b))"),
        ("(legal x mark ?n)", "(legal x (mark ?n))"),
        ("(true cell ?n b)", "(true (cell ?n b))"),
        ("(does x mark ?n)", "(does x (mark ?n))"),
    ):
        corrected = corrected.replace(wrong, right)
    problems = checker.check(source.Source("sheet", corrected)).errors
    assert "keyword-arity" not in {problem.code for problem in problems}
