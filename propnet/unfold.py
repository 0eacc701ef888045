"""Calls of wide static relations replaced by what defines them, so that splitting can take them apart.

`(set ?a ?b ?c ?d)`, four pieces that share one of four properties, has 27 120 instances; joined with four cells of ten
lines that is a quarter of a million ground rules. Its definition speaks of each piece separately, and splits well.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator

from gdlx.propnet import terms

_LEAST_ARGUMENTS = 4  # narrower relations have few instances, and cost more unfolded than looked up
_LONGEST_BODY = 100  # relations that call each other twice would double it each time


def unfold(rules: Iterable[terms.Rule], static: frozenset[terms.Relation]) -> tuple[terms.Rule, ...]:
    """The rules with calls of suitable relations unfolded; `static` are those that depend on nothing that changes."""
    book = _Book(rules)
    fresh = itertools.count()
    for relation in sorted(static):
        number = book.only_rule(relation)
        if number is None or not _is_worth_it(book.rules[number]):
            continue
        definition, callers = book.rules[number], book.callers(relation)
        unfolded = {caller: _unfolded(book.rules[caller], definition, fresh) for caller in callers}
        if number not in callers and all(unfolded.values()):
            book.rules.pop(number)
            for caller, rule in unfolded.items():
                assert rule is not None
                book.replace(caller, rule)
    return tuple(book.rules[number] for number in sorted(book.rules))


class _Book:
    """Rules by number, and which of them conclude and call each relation."""

    def __init__(self, rules: Iterable[terms.Rule]) -> None:
        self.rules = dict(enumerate(rules))
        self._heads: dict[terms.Relation, list[int]] = {}
        self._callers: dict[terms.Relation, set[int]] = {}
        for number, rule in self.rules.items():
            self._heads.setdefault(rule.head.relation, []).append(number)
            self._note_calls(number, rule)

    def only_rule(self, relation: terms.Relation) -> int | None:
        numbers = self._heads.get(relation, [])
        return numbers[0] if len(numbers) == 1 else None

    def callers(self, relation: terms.Relation) -> list[int]:
        return sorted(number for number in self._callers.get(relation, ()) if number in self.rules)

    def replace(self, number: int, rule: terms.Rule) -> None:
        self.rules[number] = rule
        self._note_calls(number, rule)

    def _note_calls(self, number: int, rule: terms.Rule) -> None:
        for atom, _ in terms.atoms_in(rule.body):
            self._callers.setdefault(atom.relation, set()).add(number)


def _is_worth_it(rule: terms.Rule) -> bool:
    """Whether a definition is wide, speaks of more than its arguments, and can be put in the place of a call."""
    name, arity = rule.head.relation
    heads = {arg.name for arg in rule.head.args if isinstance(arg, terms.Variable)}
    inner = {v.name for literal in terms.literals_in(rule.body) for v in terms.variables_in(terms.terms_of(literal))}
    plain = len(heads) == arity and all(isinstance(literal, terms.Atom | terms.Not) for literal in rule.body)
    return plain and arity >= _LEAST_ARGUMENTS and len(inner) > arity and name not in terms.KEYWORD_ARITY


def _unfolded(rule: terms.Rule, definition: terms.Rule, fresh: Iterator[int]) -> terms.Rule | None:
    """The rule with calls replaced by the definition; None where one is negated or the body would get too long."""
    relation = definition.head.relation
    signs = [positive for atom, positive in terms.atoms_in(rule.body) if atom.relation == relation]
    if not all(signs) or len(rule.body) + len(signs) * (len(definition.body) - 1) > _LONGEST_BODY:
        return None
    body: list[terms.Literal] = []
    for literal in rule.body:
        if isinstance(literal, terms.Atom) and literal.relation == relation:
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
