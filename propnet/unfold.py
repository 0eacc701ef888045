"""Calls of wide static relations replaced by what defines them, so that splitting can take them apart.

`(set ?a ?b ?c ?d)`, four pieces that share one of four properties, has 27 120 instances; joined with four cells of ten
lines that is a quarter of a million ground rules. Its definition speaks of each piece separately, and splits well.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

from gdlx.propnet import terms

_LEAST_ARGUMENTS = 4  # narrower relations have few instances, and cost more unfolded than looked up


def unfold(rules: Iterable[terms.Rule], static: frozenset[terms.Relation]) -> tuple[terms.Rule, ...]:
    """The rules with calls of suitable relations unfolded; `static` are those that depend on nothing that changes."""
    found = list(rules)
    fresh = itertools.count()
    for relation in sorted(static):
        definition = _definition(relation, found)
        if definition is not None:
            found = [_unfolded(rule, definition, fresh) for rule in found if rule is not definition]
    return tuple(found)


def _definition(relation: terms.Relation, rules: Sequence[terms.Rule]) -> terms.Rule | None:
    """The only rule of a relation, if its calls can be unfolded and that is worth it."""
    own = [rule for rule in rules if rule.head.relation == relation]
    if len(own) != 1 or relation[0] in terms.KEYWORD_ARITY or relation[1] < _LEAST_ARGUMENTS:
        return None
    (rule,) = own
    heads = [arg.name for arg in rule.head.args if isinstance(arg, terms.Variable)]
    inner = {v.name for literal in terms.literals_in(rule.body) for v in terms.variables_in(terms.terms_of(literal))}
    calls = [(atom, positive) for r in rules for atom, positive in terms.atoms_in(r.body) if atom.relation == relation]
    plain_head = len(set(heads)) == relation[1]
    plain_body = all(isinstance(literal, terms.Atom | terms.Not) for literal in rule.body)
    recursive = any(atom.relation == relation for atom, _ in terms.atoms_in(rule.body))
    suitable = plain_head and plain_body and not recursive and all(positive for _, positive in calls)
    return rule if suitable and len(inner) > len(heads) else None


def _unfolded(rule: terms.Rule, definition: terms.Rule, fresh: Iterator[int]) -> terms.Rule:
    if all(atom.relation != definition.head.relation for atom, _ in terms.atoms_in(rule.body)):
        return rule
    body: list[terms.Literal] = []
    for literal in rule.body:
        if isinstance(literal, terms.Atom) and literal.relation == definition.head.relation:
            body += _instance(definition, literal, next(fresh))
        else:
            body.append(literal)
    return dataclasses.replace(rule, body=tuple(body))


def _instance(definition: terms.Rule, call: terms.Atom, number: int) -> Iterator[terms.Literal]:
    """The body of a definition with the arguments of a call; a blank keeps the names of its own variables apart."""
    heads = (head for head in definition.head.args if isinstance(head, terms.Variable))
    given = {head.name: arg for head, arg in zip(heads, call.args, strict=True)}

    def replace(term: terms.Term) -> terms.Term:
        if isinstance(term, terms.Variable):
            return given.get(term.name, terms.Variable(f"{term.name} {number}", term.span))
        if isinstance(term, terms.Compound):
            return dataclasses.replace(term, args=tuple(map(replace, term.args)))
        return term

    for literal in definition.body:
        atom = literal.atom if isinstance(literal, terms.Not) else literal
        assert isinstance(atom, terms.Atom)
        renamed = dataclasses.replace(atom, args=tuple(map(replace, atom.args)))
        yield terms.Not(renamed) if isinstance(literal, terms.Not) else renamed
