"""Rewrites negated literals with variables of their own, which say that there is none: grounders refuse them.

`(not (true (blocked ?r ?n)))`, where ?n occurs nowhere else, becomes `(not (some ?r))` with the helper relation
`(<= (some ?r) (true (blocked ?r ?n)))`. The interpreter evaluates such literals directly instead.
"""

import dataclasses
from collections.abc import Iterable

from gdlx.propnet.datalog import safety
from gdlx.propnet.syntax import terms


def project(rules: Iterable[terms.Rule]) -> tuple[terms.Rule, ...]:
    """Returns equivalent rules, with one helper relation for all literals that differ only in names of variables."""
    helpers: dict[tuple[str, tuple[str, ...]], terms.Rule] = {}
    projected = []
    for rule in rules:
        free = safety.negated_only(rule)
        if free:
            body = tuple(_with_helper(literal, free, helpers) for literal in rule.body)
            rule = dataclasses.replace(rule, body=body)
        projected.append(rule)
    return (*projected, *helpers.values())


def helper_rule(name: str, atom: terms.Atom, free: frozenset[str]) -> terms.Rule:
    """Returns the rule of a relation of the other variables of an atom, which says that some free ones exist."""
    kept = {v.name: v for v in terms.variables_in(atom.args) if v.name not in free}
    return terms.Rule(terms.Atom(name, tuple(kept.values()), atom.span), (atom,), False, atom.span)


def _with_helper(
    literal: terms.Literal, free: frozenset[str], helpers: dict[tuple[str, tuple[str, ...]], terms.Rule]
) -> terms.Literal:
    if not isinstance(literal, terms.Not):
        return literal
    atom = literal.atom
    if not any(v.name in free for v in terms.variables_in(atom.args)):
        return literal
    # Symbols of a sheet have no spaces, so the name is unused.
    rule = helper_rule(f"some {len(helpers)} {atom.name}", atom, free)
    known = helpers.setdefault(_shape(rule), rule)
    return terms.Not(dataclasses.replace(rule.head, name=known.head.name))


def _shape(rule: terms.Rule) -> tuple[str, tuple[str, ...]]:
    """Returns the text of a helper rule's body and head arguments, with its variables numbered in order."""
    [atom] = rule.body
    assert isinstance(atom, terms.Atom)
    number: dict[str, int] = {}

    def rename(term: terms.Term) -> terms.Term:
        if isinstance(term, terms.Variable):
            return dataclasses.replace(term, name=str(number.setdefault(term.name, len(number))))
        if isinstance(term, terms.Compound):
            return dataclasses.replace(term, args=tuple(map(rename, term.args)))
        return term

    body = dataclasses.replace(atom, args=tuple(map(rename, atom.args)))
    return str(body), tuple(str(rename(arg)) for arg in rule.head.args)
