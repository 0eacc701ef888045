"""Text -> rules: what is found in the wild, the infix form, places, and that printing reads back."""

import itertools
import pathlib
from collections.abc import Iterator, Sequence

import hypothesis
import hypothesis.strategies as st
import pytest

from gdlx.propnet import diagnostics, forms, infix, library, nodes, rulesheet, source, terms

NOWHERE = source.Span(source.Source("nowhere", ""), 0, 0)
SHEET = """\
; A coin is tossed, and somebody guesses.
(role guesser) (role random)
(init (coin unknown))

(<= (legal random (toss ?side))
    (side ?side)
    (true (coin unknown)))
(<= (legal guesser (guess ?side)) (side ?side) (true (coin unknown)))
(side heads)
(side tails)
(<= (next (coin ?side)) (does random (toss ?side)))
(<= (next won) (does random (toss ?side)) (does guesser (guess ?side)))
(<= (sees guesser (landed ?side))
    (does random (toss ?side)))
(<= terminal
    (or (true (coin heads)) (true (coin tails))))
(<= (goal guesser 100) (true won))
(<= (goal guesser 0) (not (true won)))
"""
CORPUS_NAMES = [
    *("connectFour.kif", "simpleMutex.kif", "ticTacToe.kif", "montyhall.gdl", "meier.gdl", "transit.gdl"),
    *("blindtictactoe.gdl", "kriegTTT_5x5.gdl", "scissor_paper_rock.gdl", "guessSix.gdl", "mastermind.kif"),
    *("blind_breakthrough_5x5.gdl", "Qyshinsu_dresden.gdl", "switches.kif", "queens06ug.kif"),
    *("wargame01.kif", "amazons_8x8.kif", "reversi.kif", "ENDGAME_S.3357418313.kif"),
    *("test_case_3a.kif", "test_case_5b.kif", "test_clean_not_distinct.kif"),
]


def read(text: str | bytes, *, fold_case: bool = False, gdl: int | None = None) -> rulesheet.Rulesheet:
    """A sheet without errors in its text."""
    sheet, found = read_all(text, fold_case=fold_case, gdl=gdl)
    errors = [problem for problem in found if problem.severity is diagnostics.Severity.ERROR]
    assert errors == []
    return sheet


def read_all(
    text: str | bytes, *, fold_case: bool = False, gdl: int | None = None
) -> tuple[rulesheet.Rulesheet, list[diagnostics.Diagnostic]]:
    plain = source.Source("sheet", text) if isinstance(text, str) else source.Source.from_bytes("sheet", text)
    return rulesheet.read(plain, fold_case=fold_case, gdl=gdl)


def codes(text: str | bytes) -> list[str]:
    return [problem.code for problem in read_all(text)[1]]


def printed(text: str | bytes) -> list[str]:
    return [" ".join(str(rule).split()) for rule in read(text).rules]


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_do_not_matter(end: str) -> None:
    text = SHEET.replace("\n", end)
    sheet = read(text.encode())
    assert sheet.rules == read(SHEET).rules
    assert [rule.span.line for rule in sheet.rules] == [rule.span.line for rule in read(SHEET).rules]


def test_a_byte_order_mark_does_not_matter() -> None:
    assert read(b"\xef\xbb\xbf" + SHEET.encode()).rules == read(SHEET).rules
    assert read(b"\xef\xbb\xbf(role x)").rules[0].span.column == 1


def test_glued_parentheses() -> None:
    expected = ["(base (cell 1))", "(<= terminal (true (cell 1)))"]
    assert printed("(base(cell 1))(<= terminal(true(cell 1)))") == expected


def test_symbols_of_any_characters() -> None:
    [rule] = read("(<= (++ ?n++ ?n) (> ?n++ 0.5) (succ ?n ?n++) (p a_b-c é 'x' \N{GREEK SMALL LETTER ALPHA}))").rules
    assert rule.head.name == "++"
    assert {variable.name for variable in terms.variables_in(rule.head.args)} == {"n++", "n"}
    assert [atom.name for atom, _ in terms.atoms_in(rule.body)] == [">", "succ", "p"]


@pytest.mark.parametrize("text", ["(role x) ; the end", "(role x);", "(role x)\n;;; (role y)", ";\r(role x)"])
def test_comments_at_the_ends(text: str) -> None:
    assert printed(text) == ["(role x)"]


def test_a_comment_ends_with_its_line_and_may_follow_a_symbol() -> None:
    assert printed("(p a;b)\n c);d") == ["(p a c)"]


def test_nothing_at_all() -> None:
    assert printed("") == printed("; only a comment") == printed(b"\xef\xbb\xbf") == []


@pytest.mark.parametrize("keyword", list(terms.KEYWORD_ARITY))
def test_keywords_in_any_case(keyword: str) -> None:
    args = ["x", "y"][: terms.KEYWORD_ARITY[keyword]]
    for spelled in (keyword.upper(), keyword.capitalize()):
        [rule] = read(f"(<= head ({' '.join([spelled, *args])}))").rules
        [(atom, _)] = terms.atoms_in(rule.body)
        assert atom.name == keyword


def test_connectives_in_any_case() -> None:
    upper = read("(<= (P ?x) (OR (Q ?x) (AND (R ?x) (NOT (S ?x)))) (DISTINCT ?x A))").rules
    lower = read("(<= (P ?x) (or (Q ?x) (and (R ?x) (not (S ?x)))) (distinct ?x A))").rules
    assert upper == lower


def test_a_sheet_all_in_upper_case() -> None:
    sheet = read(SHEET.upper())
    assert sheet.language == 2
    assert [rule.head.name for rule in sheet.rules][:3] == ["role", "role", "init"]
    assert str(sheet.rules[0]) == "(role GUESSER)"


@pytest.mark.parametrize("spelled", ["random", "RANDOM", "Random"])
def test_random_in_any_case(spelled: str) -> None:
    sheet = read(f"(role x) (role {spelled}) (legal {spelled} toss)")
    assert sheet.language == 2
    assert [str(rule) for rule in sheet.rules[1:]] == ["(role random)", "(legal random toss)"]


def test_a_variable_called_random_is_like_any_other() -> None:
    [rule] = read("(<= (p ?Random ?random) (q ?Random) (q ?random))").rules
    assert [variable.name for variable in terms.variables_in(rule.head.args)] == ["Random", "random"]


def test_symbols_keep_their_case_unless_folded() -> None:
    text = "(role White) (<= (P ?X) (q ?X ?x))"
    assert printed(text) == ["(role White)", "(<= (P ?X) (q ?X ?x))"]
    folded = read(text, fold_case=True)
    assert [str(rule) for rule in folded.rules] == ["(role white)", "(<= (p ?x)\n    (q ?x ?x))"]


def test_needless_parentheses_mean_the_name() -> None:
    assert (
        read("(<= (terminal) (open) (not (shut)) (p (a)))").rules == read("(<= terminal open (not shut) (p a))").rules
    )
    assert codes("(<= (terminal) (open) (p (a)))") == ["needless-parentheses"] * 3


@pytest.mark.parametrize("text", ["terminal", "terminal\n(role x)", "terminal (role x)", "; c\nterminal ; d\n(role x)"])
def test_a_sheet_may_start_with_a_bare_symbol(text: str) -> None:
    assert printed(text)[0] == "terminal"


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
    assert read(f"(<= p {written})").rules == read(f"(<= p {meant})").rules


Formula = str | tuple[str, list["Formula"]]  # an atom, or a connective with what it joins
FORMULAS: st.SearchStrategy[Formula] = st.recursive(
    st.sampled_from("abc"),
    lambda inner: st.one_of(
        st.tuples(st.just("not"), st.lists(inner, min_size=1, max_size=1)),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=12,
)


def kif(formula: Formula) -> str:
    return formula if isinstance(formula, str) else f"({formula[0]} {' '.join(map(kif, formula[1]))})"


def truth(formula: Formula, holds: set[str]) -> bool:
    if isinstance(formula, str):
        return formula in holds
    parts = [truth(inner, holds) for inner in formula[1]]
    return not parts[0] if formula[0] == "not" else all(parts) if formula[0] == "and" else any(parts)


def body_truth(body: terms.Body, holds: set[str]) -> bool:
    def literal(part: terms.Literal) -> bool:
        if isinstance(part, terms.Or):
            return any(body_truth(option, holds) for option in part.options)
        assert not isinstance(part, terms.Distinct)
        return part.name in holds if isinstance(part, terms.Atom) else part.atom.name not in holds

    return all(map(literal, body))


@hypothesis.given(FORMULAS)
def test_connectives_keep_their_meaning(formula: Formula) -> None:
    [rule] = read(f"(<= p {kif(formula)})").rules
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
    sheet, _ = rulesheet.read(text)
    assert sheet.rules
    for rule in sheet.rules:
        assert rulesheet.read(source.Source("piece", text.text[rule.span.start : rule.span.end]))[0].rules == (rule,)
        for term in every_term(rule):
            piece = source.Source("piece", text.text[term.span.start : term.span.end])
            assert forms.FormReader(nodes.Log()).all_terms(nodes.read_nodes(piece, nodes.Log())) == (term,)
        for atom in (rule.head, *(atom for atom, _ in terms.atoms_in(rule.body))):
            [written] = rulesheet.read(source.Source("piece", f"(<= p {text.text[atom.span.start : atom.span.end]})"))[
                0
            ].rules
            assert written.body == (atom,)


@pytest.mark.parametrize("game", library.names())
def test_places_in_library_games_read_back(game: str) -> None:
    assert_spans_read_back(source.Source(game, library.text(game)))


@pytest.mark.parametrize("name", CORPUS_NAMES)
def test_places_in_the_corpus_read_back(name: str, corpus: pathlib.Path) -> None:
    assert_spans_read_back(source.Source.from_path(corpus / name))


def test_lines_and_columns_count_from_one() -> None:
    [first, second] = read("(role x)\r\n  (role\r(y))").rules
    assert (first.span.line, first.span.column) == (1, 1)
    assert (second.span.line, second.span.column) == (2, 3)
    assert (second.head.args[0].span.line, second.head.args[0].span.column) == (3, 1)


def parentheses(text: str, which: str) -> list[int]:
    """Where parentheses stand, those in comments left out."""
    return [start for token, start in nodes.tokens(source.Source("sheet", text)) if token == which]


@pytest.mark.parametrize("lost", parentheses(SHEET, ")"))
def test_a_lost_closing_parenthesis_costs_one_message(lost: int) -> None:
    whole = read(SHEET).rules
    sheet, [problem] = read_all(SHEET[:lost] + SHEET[lost + 1 :])
    assert problem.code == "unclosed-parenthesis"
    [broken] = [rule for rule in whole if rule.span.start <= lost < rule.span.end]
    assert problem.span is not None
    assert problem.span.line == broken.span.line
    # Everything else is read, apart from what stands behind it on the same line.
    others = [rule for rule in whole if rule.span.line != broken.span.line]
    assert [rule for rule in sheet.rules if rule in others] == others


@pytest.mark.parametrize("lost", parentheses(SHEET, "("))
def test_a_lost_opening_parenthesis_costs_one_message(lost: int) -> None:
    assert codes(SHEET[:lost] + SHEET[lost + 1 :]) == ["unmatched-parenthesis"]


@pytest.mark.parametrize("place", parentheses(SHEET, ")"))
def test_a_closing_parenthesis_too_many_costs_one_message(place: int) -> None:
    assert codes(SHEET[:place] + ")" + SHEET[place:]) == ["unmatched-parenthesis"]


def test_two_lost_parentheses_cost_two_messages() -> None:
    assert (
        codes("(<= a (b)\n(<= c (d))\n(<= e (f\n(<= g (h))")
        == ["unclosed-parenthesis"] * 2 + ["needless-parentheses"] * 2
    )


def test_a_rule_behind_a_form_too_deep_keeps_its_place() -> None:
    sheet, found = read_all("(p " + "(s " * 200 + "\n  ( <= a b)")
    assert [problem.code for problem in found] == ["nesting-too-deep"]
    [rule] = sheet.rules
    assert (rule.span.line, rule.span.column) == (2, 3)


def test_every_problem_of_a_rule_is_told() -> None:
    expected = ["keyword-arity", "keyword-arity", "empty-form", "bad-head"]
    assert codes("(<= (legal x) (true a b) (p ())) (<= (true x) (q y))") == expected


@pytest.mark.parametrize("depth", [nodes.MAX_NESTING - 1, nodes.MAX_NESTING, nodes.MAX_NESTING + 1, 5_000])
def test_a_form_too_deep_does_not_hide_the_others(depth: int) -> None:
    sheet, found = read_all(f"(role x) (p {'(s ' * depth}0{')' * depth}) (role y)")
    assert len(sheet.rules) == (3 if depth < nodes.MAX_NESTING else 2)
    assert [problem.code for problem in found] == ([] if depth < nodes.MAX_NESTING else ["nesting-too-deep"])
    assert str(sheet.rules[-1]) == "(role y)"


def test_a_rule_at_the_deepest_nesting_prints_and_hashes() -> None:
    depth = nodes.MAX_NESTING - 1
    [rule] = read(f"(p {'(s ' * depth}0{')' * depth})").rules
    assert read(str(rule)).rules == (rule,)
    assert len({rule, *read(str(rule)).rules}) == 1


INFIX = """\
% A coin is tossed, and somebody guesses.
role(guesser). role(random).
init(coin(unknown)).

legal(random, toss(Side)) :-
    side(Side) &
    true(coin(unknown)).
legal(guesser, guess(?Side)) :- side(?Side), true(coin(unknown))
side(heads)
side(tails)   ; the end of a sentence is where the next one begins
next(coin(Side)) :- does(random, toss(Side)).
next(won) <= does(random, toss(Side)) & does(guesser, guess(Side)).
sees(guesser, landed(Side)) :-
    does(random, toss(Side)).
terminal :-
    true(coin(heads)) | true(coin(tails)).
goal(guesser, 100) :- true(won).
goal(guesser, 0) :- ~true(won).
"""


def test_a_game_written_both_ways_is_the_same() -> None:
    sheet = read(INFIX)
    assert sheet.rules == read(SHEET.replace("?side", "?Side")).rules
    assert sheet.language == 2
    assert [rule.span.line for rule in sheet.rules] == [rule.span.line for rule in read(SHEET).rules]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a & b", "a b"),
        ("a, b", "a b"),
        ("(a, b)", "a b"),
        ("a | b & c", "(or a (and b c))"),
        ("(a | b) & c", "(or a b) c"),
        ("~a", "(not a)"),
        ("not a", "(not a)"),
        ("not(a)", "(not a)"),
        ("not (a | b)", "(not (or a b))"),
        ("~(a, b)", "(not (and a b))"),
        ("~~a", "(not (not a))"),
        ("or(a, b & c)", "(or a (and b c))"),
        ("and(a, not(b))", "(and a (not b))"),
        ("p(X) & X != Y", "(p ?X) (distinct ?X ?Y)"),
        ("p(X) & f(X) \\= g(a)", "(p ?X) (distinct (f ?X) (g a))"),
        ("distinct(X, Y)", "(distinct ?X ?Y)"),
        ("~distinct(X, Y)", "(not (distinct ?X ?Y))"),
        ("p(_x, ?y, Z9, a-b, n++, 1)", "(p ?_x ?y ?Z9 a-b n++ 1)"),
        ("p(f(g(X), h(a, b)))", "(p (f (g ?X) (h a b)))"),
        ("terminal()", "(terminal)"),
    ],
)
@pytest.mark.parametrize("end", [".", "", " .\n"])
def test_infix_bodies(written: str, meant: str, end: str) -> None:
    assert read(f"q(X, Y) :- {written}{end}").rules == read(f"(<= (q ?X ?Y) {meant})").rules


def test_infix_errors_do_not_hide_the_rest() -> None:
    sheet, found = read_all(
        "role(x).\nlegal(x, go :- true(a).\nlegal(x, )\ngoal(x, 100).\np :- a & & b.\nterminal :- a # b.\nq."
    )
    assert [(problem.code, problem.span.line if problem.span else 0) for problem in found] == [
        ("syntax", 2),
        ("syntax", 3),
        ("syntax", 5),
        ("syntax", 6),
    ]
    assert [str(rule) for rule in sheet.rules if rule.head.name in ("role", "goal", "q")] == [
        "(role x)",
        "(goal x 100)",
        "q",
    ]


def test_infix_nesting_has_a_limit() -> None:
    assert codes("p(a). q(" + "f(" * 1_000 + "x" + ")" * 1_000 + ").\nr(b).") == ["nesting-too-deep"]
    assert codes("p :- " + "~" * 1_000 + "a.") == ["nesting-too-deep"]
    assert codes("p(" + "f(" * 25 + "x" + ")" * 25 + ").") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(role x)", False),
        ("role(x).", True),
        ("terminal :- p.", True),
        ("terminal.", True),
        ("terminal", False),
        ("% c\n; d\nrole(x)", True),
        ("role x)", False),
        (") role(x)", False),
        ("", False),
        ("a" + " " * 100_000 + "b", False),
    ],
)
def test_which_form_is_decided_by_how_a_sheet_begins(text: str, expected: bool) -> None:
    assert infix.looks_infix(text) is expected


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
    sheet = read(text)
    assert sheet.language == language
    assert read(sheet.text()).language == language
    assert read(text, gdl=1).language == 1
    assert read(read(text, gdl=2).text()).language == 2


def rules_of(names: st.SearchStrategy[str], *, empty_bodies: bool) -> st.SearchStrategy[list[terms.Rule]]:
    """Lists of rules with those names."""
    nowhere = st.just(NOWHERE)
    variables = st.builds(terms.Variable, st.sampled_from(["X", "Y", "Long", "X2"]), nowhere)
    term: st.SearchStrategy[terms.Term] = st.recursive(
        st.one_of(st.builds(terms.Symbol, names, nowhere), variables),
        lambda inner: st.builds(terms.Compound, names, st.lists(inner, min_size=1, max_size=3).map(tuple), nowhere),
        max_leaves=6,
    )

    @st.composite
    def atoms(draw: st.DrawFn, keywords: Sequence[str]) -> terms.Atom:
        keyword = draw(st.sampled_from([None, None, *keywords]))
        size = terms.KEYWORD_ARITY[keyword] if keyword else draw(st.integers(0, 3))
        return terms.Atom(keyword or draw(names), tuple(draw(term) for _ in range(size)), NOWHERE)

    heads = atoms([keyword for keyword in terms.KEYWORD_ARITY if keyword not in ("true", "does")])
    positive = atoms(list(terms.KEYWORD_ARITY))
    literals: st.SearchStrategy[terms.Literal] = st.recursive(
        st.one_of(
            positive,
            st.builds(terms.Not, positive),
            st.builds(terms.Distinct, term, term, st.booleans(), nowhere),
        ),
        lambda inner: st.lists(st.lists(inner, min_size=1, max_size=3).map(tuple), min_size=2, max_size=3).map(
            lambda options: terms.Or(tuple(options))
        ),
        max_leaves=6,
    )
    bodies = st.lists(literals, min_size=0 if empty_bodies else 1, max_size=4).map(tuple)
    rule = st.one_of(
        st.builds(terms.Rule, heads, bodies, st.just(False), nowhere),
        st.builds(terms.Rule, heads, st.just(()), st.just(True), nowhere),
    )
    return st.lists(rule, max_size=4)


INFIX_NAMES = st.sampled_from(["a", "b", "cell", "n++", "x'", "1", "-3", "é", "noop", "legal2"])
NAMES = st.one_of(INFIX_NAMES, st.sampled_from([">", "<", "Foo", "Role2", "a.b", "#"]))


@hypothesis.given(rules_of(NAMES, empty_bodies=True), st.sampled_from([None, 1, 2]))
def test_printed_rules_read_back(rules: list[terms.Rule], gdl: int | None) -> None:
    written = read("".join(f"{rule}\n" for rule in rules), gdl=gdl)
    assert written.rules == tuple(rules)
    again = read(written.text())
    assert (again.rules, again.language) == (written.rules, written.language)


def infix_term(term: terms.Term) -> str:
    if isinstance(term, terms.Compound):
        return f"{term.functor}({', '.join(map(infix_term, term.args))})"
    return term.name


def infix_atom(atom: terms.Atom) -> str:
    return f"{atom.name}({', '.join(map(infix_term, atom.args))})" if atom.args else atom.name


def infix_body(body: Sequence[terms.Literal]) -> str:
    def literal(part: terms.Literal) -> str:
        if isinstance(part, terms.Or):
            return f"({' | '.join(map(infix_body, part.options))})"
        if isinstance(part, terms.Distinct):
            plain = f"{infix_term(part.left)} != {infix_term(part.right)}"
            return f"~distinct({infix_term(part.left)}, {infix_term(part.right)})" if part.equal else plain
        return infix_atom(part) if isinstance(part, terms.Atom) else f"~{infix_atom(part.atom)}"

    return " & ".join(map(literal, body))


@hypothesis.given(rules_of(INFIX_NAMES, empty_bodies=False))
def test_the_infix_form_of_rules_reads_the_same(rules: list[terms.Rule]) -> None:
    sentences = (infix_atom(rule.head) + (f" :- {infix_body(rule.body)}" if rule.body else "") for rule in rules)
    assert read("start(x).\n" + "".join(f"{sentence}.\n" for sentence in sentences)).rules[1:] == tuple(rules)


@pytest.mark.parametrize("game", library.names())
def test_library_games_print_and_read_back(game: str) -> None:
    sheet = read(library.text(game))
    again = read(sheet.text())
    assert (again.rules, again.language) == (sheet.rules, sheet.language)


@pytest.mark.parametrize("name", CORPUS_NAMES)
def test_the_corpus_prints_and_reads_back(name: str, corpus: pathlib.Path) -> None:
    sheet = read((corpus / name).read_bytes())
    again = read(sheet.text())
    assert (again.rules, again.language) == (sheet.rules, sheet.language)
