"""The checker on complete sheets: severities, the corpus, all problems at once."""

import collections
import pathlib

import pytest

from gdlx.propnet import library
from gdlx.propnet.checks import checker
from gdlx.propnet.syntax import source

FRAME = "(role x) (legal x go) (<= (next over) (does x go)) (<= terminal (true over)) (goal x 100)\n"

# What may be odd about sheets of the corpus; none has an error.
CORPUS: dict[str, dict[str, int]] = {
    "ENDGAME_S.3357418313.kif": {},
    "Qyshinsu_dresden.gdl": {
        "case-variants": 6,
        "old-style-declaration": 8,
        "two-arities": 3,
        "unused-relation": 1,
    },
    "amazons_8x8.kif": {},
    "blind_breakthrough_5x5.gdl": {"keyword-as-function": 1, "unbound-role": 2},
    "blindtictactoe.gdl": {"empty-body": 1, "unused-relation": 1},
    "connectFour.kif": {},
    "guessSix.gdl": {"no-percepts": 1},
    "kriegTTT_5x5.gdl": {},
    "mastermind.kif": {},
    "meier.gdl": {"keyword-as-function": 1},
    "montyhall.gdl": {},
    "queens06ug.kif": {"ground-stratified": 1},
    "reversi.kif": {},
    "scissor_paper_rock.gdl": {},
    "simpleMutex.kif": {},
    "switches.kif": {},
    "test_case_1a.kif": {"empty-body": 1},
    "test_case_1b.kif": {},
    "test_case_2a.kif": {},
    "test_case_2b.kif": {},
    "test_case_2c.kif": {"unused-relation": 1},
    "test_case_3a.kif": {"needless-parentheses": 1},
    "test_case_3b.kif": {"unsafe-unused-rule": 8, "unused-relation": 1},
    "test_case_3c.kif": {"undefined-relation": 1},
    "test_case_3d.kif": {},
    "test_case_3e.kif": {"unbound-role": 2},
    "test_case_3f.kif": {"unbound-role": 2},
    "test_case_4a.kif": {},
    "test_case_5a.kif": {},
    "test_case_5b.kif": {},
    "test_case_5c.kif": {},
    "test_case_5d.kif": {"empty-body": 1},
    "test_case_5e.kif": {},
    "test_clean_not_distinct.kif": {"not-distinct": 7},
    "test_distinct_beginning_rule.kif": {},
    "test_invalid_function_arities_differ.kif": {"two-arities": 1},
    "test_invalid_sentence_arities_differ.kif": {"two-arities": 1, "unused-relation": 2},
    "ticTacToe.kif": {},
    "transit.gdl": {},
    "wargame01.kif": {"case-variants": 1, "empty-body": 4, "undefined-relation": 1, "unused-relation": 1},
}


def report(text: str, *, fold_case: bool = False) -> checker.CheckReport:
    return checker.check(source.Source("sheet", text), fold_case=fold_case)


def errors(text: str) -> list[str]:
    return [problem.code for problem in report(text).errors]


def warnings(text: str) -> list[str]:
    """The warnings of a sheet that has no errors."""
    checked = report(text)
    assert checked.errors == ()
    return [problem.code for problem in checked.warnings]


@pytest.mark.parametrize("name", CORPUS)
def test_no_sheet_of_the_corpus_has_an_error(name: str, corpus: pathlib.Path) -> None:
    actual = checker.check(source.Source.from_path(corpus / name))
    assert actual.errors == ()
    assert collections.Counter(problem.code for problem in actual.warnings) == CORPUS[name]
    assert actual.require_usable().rules


def test_no_sheet_of_the_corpus_is_left_out(corpus: pathlib.Path) -> None:
    assert {path.name for path in corpus.iterdir() if path.suffix in (".kif", ".gdl")} == set(CORPUS)


@pytest.mark.parametrize("game", library.names())
def test_library_games_are_clean(game: str) -> None:
    assert warnings(library.text(game)) == []


@pytest.mark.parametrize(
    ("added", "code"),
    [
        ("(<= (legal ?r stay) (true over))", "unbound-role"),
        ("(<= (goal ?r 100) (not (true over)))", "unbound-role"),
        ("(<= (sees ?r over) (true over))", "unbound-role"),
        ("(<= (legal x stay) (role ?r) (not (distinct ?r x)))", "not-distinct"),
        ("(<= (sees x (does ?r ?m)) (does ?r ?m))", "keyword-as-function"),
        ("(legal x Go)", "case-variants"),
        ("(legal x (go north))\n(legal x (go up north))", "two-arities"),
        ("(<= (legal x stay) allowed)", "undefined-relation"),
        ("(<= (terminal) (true over))", "needless-parentheses"),
        ("(<= (legal x stay))", "empty-body"),
        ("(<= (legal x stay) (distinct x y))", "constant-distinct"),
        ("(<= (next late) (not (does ?r go)))", "negated-variable"),
        ("(<= (legal x stay) (or (true over) (not (true ?f))))", "negated-variable"),
        ("(<= (goal x 0) (not (goal x 100)))", "ground-stratified"),
        ("(<= (base (mark ?n)) (mark ?n)) (<= (mark ?n) (role ?r))", "unsafe-unused-rule"),
    ],
)
def test_settled_warnings(added: str, code: str) -> None:
    assert set(warnings(FRAME + added)) == {code}


@pytest.mark.parametrize(
    ("added", "code"),
    [
        ("(<= (legal x stay) (true over)", "unclosed-parenthesis"),
        ("(<= (legal x stay) (true over)))", "unmatched-parenthesis"),
        ("(<= (legal x (say ?w)) (true over))", "unsafe-variable"),
        ("(<= (legal x stay) (p ?v)) (<= (p ?v) (role ?r))", "unsafe-variable"),
        ("(<= (legal x stay) p) (<= p (not q)) (<= q (not p))", "negative-cycle"),
        ("(<= (legal x stay) (p a)) (<= (p ?v) (d ?v) (not (p ?v))) (d a)", "negative-cycle"),
        ("(<= (legal x stay) (does x go))", "depends-on-does"),
        ("(<= (goal x 0) moved) (<= moved (does x go))", "depends-on-does"),
        ("(<= terminal (does ?r ?m))", "depends-on-does"),
        ("(<= terminal (not (does x go)))", "depends-on-does"),
        ("(legal x (say ?w))", "variable-in-fact"),
        ("(<= (true over) (does x go))", "bad-head"),
        ("(does x go)", "bad-head"),
        ("(<= (role y) (true over))", "static-depends-on-state"),
    ],
)
def test_settled_errors(added: str, code: str) -> None:
    assert set(errors(FRAME + added)) == {code}


def test_a_sheet_needs_role_legal_and_goal() -> None:
    assert errors("") == ["missing-role", "missing-legal", "missing-goal"]


def test_a_game_without_terminal_never_ends() -> None:
    [problem] = report("(role x) (legal x go) (goal x 1)").diagnostics
    assert (problem.code, problem.severity.value) == ("missing-terminal", "warning")
    assert "never ends" in problem.message


@pytest.mark.parametrize(
    "added",
    [
        "(contains 1 (not 18))",
        "(<= (base (cell ?x)) ((index ?x))) (index 1)",
        "(<= (input x go) ())",
        "(<= helper (terminal 1)) (<= (base late) helper)",
    ],
)
def test_malformed_rules_that_nothing_uses_are_warnings(added: str) -> None:
    assert "malformed-unused-rule" in warnings(FRAME + added)


@pytest.mark.parametrize(
    "added",
    [
        "(<= (legal x stay) (contains 1)) (contains 1 (not 18))",
        "(<= (legal x stay) ((late)) (helper)) (<= helper (terminal 1))",
        "(<= (helper) (terminal 1)) (<= (next late) (or helper (terminal 2)))",
        "(<= ((helper)) (true over))",
    ],
)
def test_malformed_rules_that_something_uses_are_errors(added: str) -> None:
    assert errors(FRAME + added)
    assert "malformed-unused-rule" not in [problem.code for problem in report(FRAME + added).warnings]


def test_facts_with_variables_that_nothing_uses_are_warnings() -> None:
    assert sorted(warnings(FRAME + "(mark ?x)")) == ["unsafe-unused-rule", "unused-relation"]


@pytest.mark.parametrize(("end", "code"), [(") 10", "start-message"), (")\n60 10)\n", "start-message")])
def test_the_end_of_a_start_message_is_left_out(end: str, code: str) -> None:
    assert warnings(FRAME + end) == [code]


@pytest.mark.parametrize("end", [")", ") 10 go", ") 10 (legal x stay)", "(10"])
def test_other_ends_are_errors(end: str) -> None:
    assert errors(FRAME + end)


@pytest.mark.parametrize(
    ("added", "keyword"),
    [
        ("(legl x stay)", "legal"),
        ("(<= trminal (true over))", "terminal"),
        ("(<= (nxet late) (true over))", "next"),
        ("(<= (next late) (dose x go))", "does"),
        ("(<= (next late) (ture over))", "true"),
        ("(<= (next late) (does ?r go) (distnct ?r y))", "distinct"),
    ],
)
def test_misspelt_keywords(added: str, keyword: str) -> None:
    hints = [problem.hint for problem in report(FRAME + added).diagnostics]
    assert any(f"did you mean `{keyword}`?" in hint for hint in hints), hints


def test_hints_for_unbound_variables_lead_somewhere() -> None:
    mark = FRAME + "(init (mark x 1)) (init (spot x 1))"
    two = "(<= (legal ?r stay) (role ?r) (not (true (mark ?r ?n))) (not (true (spot ?r ?n))))"
    differ = "(<= (legal ?r stay) (role ?r) (not (true (mark ?r ?n))) (distinct ?n 1))"
    helper = "(<= (some_mark ?r) (true (mark ?r ?n))"
    for rule in (two, differ):
        [problem] = report(mark + rule).errors
        assert problem.code == "unsafe-variable"
        assert helper in problem.hint
        assert "(role" not in problem.hint
    [problem] = report(FRAME + "(<= (next (mark ?n)) (true over))").errors
    assert "(role" not in problem.hint
    [problem] = report(FRAME + "(<= (next late) (not (does ?p go)) (not (does ?p stay)))").errors
    assert "(role ?p)" in problem.hint
    [warning] = [p for p in report(FRAME + "(<= (legal x (say ?w)))").warnings if p.code == "empty-body"]
    assert "fact" not in warning.hint


def test_constants_decide_where_the_game_is_too_large_to_ground() -> None:
    digits = "".join(f"(digit {n})" for n in range(60)) + "(<= (legal x (t ?a ?b ?c)) (digit ?a) (digit ?b) (digit ?c))"
    goals = "(<= (goal ?r 0) (role ?r) (not (goal ?r 100)))"
    assert warnings(FRAME + digits + goals) == ["ground-stratified"]
    assert "undecided" in warnings(FRAME + digits + "(<= (goal ?r ?n) (role ?r) (digit ?n) (not (goal ?r 7)))")


def test_players_without_percepts_are_named_unless_they_are_meant() -> None:
    dice = FRAME + "(role random) (legal random roll)"
    assert warnings(dice) == ["no-percepts"]
    assert warnings(dice + "(<= (sees x rolled) (does random roll))") == []
    assert warnings(dice + "\n; gdlx: gdl-ii\n") == []
    assert warnings(dice + "\n; gdlx: gdl-i\n") == []


def test_what_cannot_be_read_is_not_also_missing() -> None:
    assert errors("(role x (legal x go) (goal x 1) (<= terminal (true over))") == ["unclosed-parenthesis"]
    assert errors("(role x y) (legal x go) (goal x 1) terminal") == ["keyword-arity"]


def test_all_problems_at_once_in_file_order() -> None:
    actual = report(
        "(role x)\n(legal x ?m)\n(<= (next (at ?p)) (does x go))\n(<= (true over) (does x go))\n"
        "(<= (goal x 100) ())\n(<= (legal x stay) (or (true late) (nothing)))\n(goal x 200)\n"
    )
    assert [(problem.code, problem.span.line if problem.span else None) for problem in actual.diagnostics] == [
        ("variable-in-fact", 2),
        ("unsafe-variable", 3),
        ("bad-head", 4),
        ("empty-form", 5),
        ("undefined-fluent", 6),
        ("needless-parentheses", 6),
        ("undefined-relation", 6),
        ("goal-value", 7),
        ("missing-terminal", None),
    ]


@pytest.mark.parametrize(
    "body",
    [
        "(or (word ?w) (and (role ?w) (true over)))",
        "(or (word ?w) (not (distinct ?w yes)))",
        "(not (distinct ?w ?v)) (word ?v)",
        "(not (distinct (f ?w) ?v)) (thing ?v)",
        "(not (distinct ?w ?v)) (or (not (distinct ?v ?u)) (word ?v)) (word ?u)",
        "(or (and (not (distinct ?w ?v)) (word ?v)) (and (word ?w) (not (word ?w))))",
    ],
)
def test_safe_rules(body: str) -> None:
    actual = warnings(FRAME + f"(<= (legal x (say ?w)) {body}) (word yes) (thing (f yes)) (<= p (word ?w) (thing ?w))")
    assert set(actual) <= {"not-distinct", "unused-relation"}


@pytest.mark.parametrize(
    "body",
    [
        "(or (word ?w) (true over))",
        "(not (word ?w))",
        "(distinct ?w yes)",
        "(not (distinct ?w ?v))",
        "(word ?w) (or (word ?v) (and (true over) (not (word ?v))))",
        "(word ?w) (or (word ?v) (word ?u)) (distinct ?v ?u)",
        "(not (distinct (f ?w ?v) (f ?v ?w)))",
    ],
)
def test_unsafe_rules(body: str) -> None:
    assert "unsafe-variable" in errors(FRAME + f"(<= (legal x (say ?w)) {body}) (word yes)")


def test_judgements_may_mention_does_where_no_ground_rule_leads_there() -> None:
    # The move is never legal, so atoms that depend on it are always false.
    assert warnings(FRAME + "(<= (legal x stay) (does x fly))") == ["undefined-move"]
    assert warnings(FRAME + "(<= (legal x stay) (not (does x fly)))") == ["undefined-move"]
    # helper is about the move for one argument only, and legal uses the other.
    helper = "(<= (helper now) (does x go)) (<= (helper always) (role x)) (<= (legal x stay) (helper always))"
    assert warnings(FRAME + helper + "(<= (next late) (helper now))") == []


def test_percepts_may_use_the_next_state_and_judgements_percepts() -> None:
    assert warnings(FRAME + "(<= (sees x changed) (next over))") == []
    assert warnings(FRAME + "(<= (sees x changed) helper) (<= helper (next over))") == []
    assert warnings(FRAME + "(<= (sees x end) (true over)) (<= (legal x stay) (sees x end))") == []


def test_next_in_the_body_of_a_judgement_depends_on_the_move() -> None:
    assert errors(FRAME + "(<= (legal x stay) (next over))") == ["depends-on-does"]


@pytest.mark.parametrize(
    ("rules", "is_error"),
    [
        ("(<= (even ?n) (succ ?m ?n) (not (even ?m))) (even 0)", False),
        ("(<= (even ?n) (succ ?m ?n) (not (even ?m))) (even 0) (succ 2 0)", True),
        ("(<= (even ?n) (true over) (succ ?m ?n) (not (even ?m)))", False),
        (
            "(<= (even ?n) (or (role ?n) (succ ?n ?m)) (not (odd ?n))) (<= (odd ?n) (succ ?m ?n) (not (even ?m)))",
            False,
        ),
        ("(<= (even ?n) (succ ?m ?n) (not (odd ?n))) (<= (odd ?n) (succ ?m ?n) (not (even ?n)))", True),
    ],
)
def test_negative_circles_are_judged_on_ground_atoms(rules: str, is_error: bool) -> None:
    sheet = FRAME + "(succ 0 1) (succ 1 2) (<= (legal x (take ?n)) (even ?n))" + rules
    assert errors(sheet) == (["negative-cycle"] if is_error else [])
    assert ("ground-stratified" in [problem.code for problem in report(sheet).warnings]) is not is_error


def test_a_negative_circle_through_many_alternatives_is_seen() -> None:
    # More alternatives than are expanded, so that each `or` gets an auxiliary relation.
    choice = "(or (p ?n) (role ?n) (true over))"
    many = FRAME + f"(<= (legal x (take ?n)) (p ?n)) (n 1) (<= (p ?n) (n ?n) {choice * 10} (or (not (p ?n)) (role ?n)))"
    assert errors(many) == ["negative-cycle"]


@pytest.mark.parametrize(
    "rules",
    [
        "(init (count 0)) (<= (next (count (s ?n))) (true (count ?n)))",
        "(init (count 0)) (<= (next (count ?m)) (true (count ?n)) (not (distinct ?m (s ?n))))",
        "(init fresh) (<= (next (older ?f)) (true ?f))",
        "(init (pair a a)) (<= (next (pair ?p ?p)) (true ?p))",
        "(number 0) (<= (number (s ?n)) (number ?n)) (<= (legal x (say ?n)) (number ?n))",
        "(<= (legal x (say (s ?m))) (true (said ?m))) (init (said 0)) (<= (next (said ?m)) (does x (say ?m)))",
    ],
)
def test_terms_that_grow_without_bound(rules: str) -> None:
    assert "unbounded-term" in errors(FRAME + rules)


@pytest.mark.parametrize(
    "rules",
    [
        "(init (count 0)) (<= (next (count ?m)) (true (count ?n)) (succ ?n ?m)) (succ 0 1)",
        "(init (stack (s (s 0)))) (<= (next (stack ?n)) (true (stack (s ?n))))",
        "(init (box a)) (<= (next (crate ?b)) (true (box ?b))) (<= (next (box ?b)) (true (crate ?b)))",
        "(init (box a)) (<= (next (crate (f ?b))) (true (box ?b)))",
        "(limit (s (s 0))) (<= (limit ?n) (limit (s ?n))) (<= (legal x (say (s ?n))) (limit ?n))",
    ],
)
def test_terms_that_stay_bounded(rules: str) -> None:
    assert errors(FRAME + rules) == []


@pytest.mark.parametrize(
    ("into", "out_of", "grows"),
    [("(f ?b)", "(f ?b)", False), ("(f (f ?b))", "(f (f ?b))", False), ("(f (f ?b))", "(f ?b)", True)],
)
def test_only_circles_that_make_terms_deeper_are_suspect(into: str, out_of: str, grows: bool) -> None:
    # The digits make too many facts to decide by evaluation.
    digits = "".join(f"(digit {n})" for n in range(40)) + "(<= (t ?a ?b ?c) (digit ?a) (digit ?b) (digit ?c))"
    boxes = f"(init (box a)) (<= (next (crate {into})) (true (box ?b))) (<= (next (box ?b)) (true (crate {out_of})))"
    assert warnings(FRAME + digits + boxes + "(<= (legal x up) (t 1 2 3))") == (["growing-term"] if grows else [])


def test_folding_case_unites_spellings() -> None:
    text = "(ROLE X) (legal x GO) (<= (NEXT over) (does X go)) (<= terminal (true OVER)) (goal x 100)"
    assert report(text, fold_case=True).diagnostics == ()
    assert "case-variants" in [problem.code for problem in report(text).warnings]


def test_infix_sheets_are_checked_the_same() -> None:
    sheet = "role(x). legal(x, go). next(over) :- does(x, go). terminal :- true(over). goal(x, 100).\n"
    assert warnings(sheet) == []
    [problem] = report(sheet + "legal(x, say(W)) :- true(over).").errors
    assert problem.code == "unsafe-variable"
    assert problem.span is not None
    assert (problem.span.line, problem.span.column) == (2, 14)


def test_checking_twice_says_the_same() -> None:
    text = FRAME + "(<= (legal x stay) p) (<= p (not q)) (<= q (not r) (not p)) (<= r (not q)) (<= a b) (<= b a)"
    assert [str(problem.render()) for problem in report(text).diagnostics] == [
        str(problem.render()) for problem in report(text).diagnostics
    ]
