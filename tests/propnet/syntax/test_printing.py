"""Printed rules parse to the same rules, in both forms."""

import pathlib
from collections.abc import Sequence

import hypothesis
import hypothesis.strategies as st
import pytest

from gdlx.propnet import library
from gdlx.propnet.syntax import terms
from gdlx.tests.helpers import reading


def rules_of(names: st.SearchStrategy[str], *, empty_bodies: bool) -> st.SearchStrategy[list[terms.Rule]]:
    """Lists of rules with those names."""
    nowhere = st.just(reading.NOWHERE)
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
        return terms.Atom(keyword or draw(names), tuple(draw(term) for _ in range(size)), reading.NOWHERE)

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
    written = reading.read("".join(f"{rule}\n" for rule in rules), gdl=gdl)
    assert written.rules == tuple(rules)
    again = reading.read(written.text())
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
            return f"({' | '.join(map(infix_body, part.disjuncts))})"
        if isinstance(part, terms.Distinct):
            plain = f"{infix_term(part.left)} != {infix_term(part.right)}"
            return f"~distinct({infix_term(part.left)}, {infix_term(part.right)})" if part.equal else plain
        return infix_atom(part) if isinstance(part, terms.Atom) else f"~{infix_atom(part.atom)}"

    return " & ".join(map(literal, body))


@hypothesis.given(rules_of(INFIX_NAMES, empty_bodies=False))
def test_the_infix_form_of_rules_reads_the_same(rules: list[terms.Rule]) -> None:
    sentences = (infix_atom(rule.head) + (f" :- {infix_body(rule.body)}" if rule.body else "") for rule in rules)
    assert reading.read("start(x).\n" + "".join(f"{sentence}.\n" for sentence in sentences)).rules[1:] == tuple(rules)


@pytest.mark.parametrize("game", library.names())
def test_library_games_print_and_read_back(game: str) -> None:
    sheet = reading.read(library.text(game))
    again = reading.read(sheet.text())
    assert (again.rules, again.language) == (sheet.rules, sheet.language)


@pytest.mark.parametrize("name", reading.CORPUS_NAMES)
def test_the_corpus_prints_and_reads_back(name: str, corpus: pathlib.Path) -> None:
    sheet = reading.read((corpus / name).read_bytes())
    again = reading.read(sheet.text())
    assert (again.rules, again.language) == (sheet.rules, sheet.language)
