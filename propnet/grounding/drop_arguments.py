"""Drops arguments of relations that make no difference.

`(<= (p ?x ?y) (bit ?x) (q ?y))`, called only with an ?x that is a bit, is equivalent to `(<= (p ?y) (q ?y))`. An
argument that a relation only passes to others makes no difference if it makes none there; twenty of them make a million
instances.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from gdlx.propnet.syntax import terms

_Place = tuple[terms.Relation, int]  # an argument of a relation
Lists = Mapping[terms.Relation, frozenset[terms.Term]]


def drop_unused_arguments(rules: Iterable[terms.Rule]) -> tuple[terms.Rule, ...]:
    """Removes idle arguments from the heads and calls of rules."""
    rules = tuple(rules)
    lists = lists_of_values(rules)
    idle = _idle(rules, lists)
    return tuple(dict.fromkeys(_without(rule, idle, lists) for rule in rules)) if idle else rules


def lists_of_values(rules: Iterable[terms.Rule]) -> Lists:
    """Returns relations of one argument that are defined by facts, with their values."""
    values_of: dict[terms.Relation, set[terms.Term]] = {}
    other = set()
    for rule in rules:
        if rule.body or rule.head.relation[1] != 1 or rule.head.name in terms.KEYWORD_ARITY:
            other.add(rule.head.relation)
        else:
            values_of.setdefault(rule.head.relation, set()).add(rule.head.args[0])
    return {relation: frozenset(values) for relation, values in values_of.items() if relation not in other}


def _idle(rules: tuple[terms.Rule, ...], lists: Lists) -> set[_Place]:
    """Returns arguments whose lists hold at every call, and that are used for nothing else."""
    needed: dict[_Place, set[terms.Relation]] = {}  # the lists by which rules bind an argument
    users: dict[_Place, set[_Place]] = {}  # arguments that are passed to one
    busy: set[_Place] = set()
    for rule in rules:
        ranges = _ranges(rule, lists)
        for number, arg in enumerate(rule.head.args):
            place = (rule.head.relation, number)
            lists_of_arg = ranges.get(arg.name, set()) if isinstance(arg, terms.Variable) else set()
            needed.setdefault(place, set()).update(lists_of_arg)
            uses = list(_uses(rule, number, lists))
            if not lists_of_arg or None in uses or rule.head.name in terms.KEYWORD_ARITY:
                busy.add(place)
            for use in filter(None, uses):
                users.setdefault(use, set()).add(place)
    for rule in rules:
        ranges = _ranges(rule, lists)
        for atom, _ in terms.atoms_in(rule.body):
            for number, arg in enumerate(atom.args):
                place = (atom.relation, number)
                if place not in needed or not needed[place] <= _known(arg, ranges, lists):
                    busy.add(place)
    work = list(busy)
    while work:
        new = users.get(work.pop(), set()) - busy
        busy |= new
        work += new
    return needed.keys() - busy


def _ranges(rule: terms.Rule, lists: Lists) -> dict[str, set[terms.Relation]]:
    """Returns the lists that each variable of a body is in."""
    lists_of: dict[str, set[terms.Relation]] = {}
    for literal in rule.body:
        if (name := listed(literal, lists)) is not None:
            assert isinstance(literal, terms.Atom)
            lists_of.setdefault(name, set()).add(literal.relation)
    return lists_of


def listed(literal: terms.Literal, lists: Lists) -> str | None:
    """Returns the variable that a literal declares to be in a list."""
    if isinstance(literal, terms.Atom) and literal.relation in lists:
        [arg] = literal.args
        return arg.name if isinstance(arg, terms.Variable) else None
    return None


def _known(arg: terms.Term, ranges: Mapping[str, set[terms.Relation]], lists: Lists) -> set[terms.Relation]:
    """Returns the lists that an argument of a call is known to be in."""
    if isinstance(arg, terms.Variable):
        return ranges.get(arg.name, set())
    return {relation for relation, values in lists.items() if arg in values}


def _uses(rule: terms.Rule, number: int, lists: Lists) -> Iterator[_Place | None]:
    """Yields the arguments that an argument of the head is passed to; None for any other use of it."""
    arg = rule.head.args[number]
    if not isinstance(arg, terms.Variable) or _occurs(arg, (*rule.head.args[:number], *rule.head.args[number + 1 :])):
        yield None
        return
    for literal in rule.body:
        assert not isinstance(literal, terms.Or)
        if listed(literal, lists) == arg.name:
            continue
        for place, term in enumerate(terms.literal_terms(literal)):
            if _occurs(arg, (term,)):
                atom = literal.atom if isinstance(literal, terms.Not) else literal
                is_passed = isinstance(atom, terms.Atom) and isinstance(term, terms.Variable)
                yield (atom.relation, place) if isinstance(atom, terms.Atom) and is_passed else None


def _occurs(variable: terms.Variable, items: Iterable[terms.Term]) -> bool:
    return any(other.name == variable.name for other in terms.variables_in(items))


def _without(rule: terms.Rule, idle: set[_Place], lists: Lists) -> terms.Rule:
    dropped = {
        arg.name
        for number, arg in enumerate(rule.head.args)
        if (rule.head.relation, number) in idle and isinstance(arg, terms.Variable)
    }
    body: list[terms.Literal] = []
    for literal in rule.body:
        if isinstance(literal, terms.Not):
            body.append(terms.Not(_shortened(literal.atom, idle)))
        elif isinstance(literal, terms.Atom):
            if listed(literal, lists) not in dropped:
                body.append(_shortened(literal, idle))
        else:
            body.append(literal)
    return dataclasses.replace(rule, head=_shortened(rule.head, idle), body=tuple(body))


def _shortened(atom: terms.Atom, idle: set[_Place]) -> terms.Atom:
    args = tuple(arg for number, arg in enumerate(atom.args) if (atom.relation, number) not in idle)
    if len(args) == len(atom.args):
        return atom
    # The shorter relation may exist; symbols of a sheet have no spaces, so this name is unused.
    return dataclasses.replace(atom, name=f"{atom.name} {len(atom.args)}", args=args)
