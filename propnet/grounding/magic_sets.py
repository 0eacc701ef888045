"""Guards rules by the calls that can be made, so that the grounder omits other instances (magic sets).

`(<= (threatened ?x ?y ?ignored) (attack ?x ?y) (square ?ignored))` holds for every square that might be ignored, called
or not: `?ignored` is a parameter, which only the caller restricts. For every relation with parameters this adds a
relation `domain of calls of ..`, derived from the literals next to the calls, and guards its rules with it.

Such a relation is like a domain of `split_joins`: it is grounded as if every fluent may hold, without the negative
literals of the caller, so it covers every call that can be made. A guard then holds wherever the guarded atom is used,
and is dropped when the propnet is built. So guards do not change the meaning and close no cycle through `not`.
"""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from gdlx.propnet.common import graphs
from gdlx.propnet.grounding import split_joins
from gdlx.propnet.syntax import terms

_LEAST_ARGUMENTS = 4  # narrower relations have few instances
_NAME = f"{split_joins.DOMAIN}calls of "  # symbols of a sheet have no spaces, so the names are unused

_Place = tuple[terms.Relation, int]  # an argument of a relation
_Guards = Mapping[terms.Relation, tuple[int, ...]]  # the arguments of every guarded relation that its callers bind


def apply_magic_sets(
    rules: Iterable[terms.Rule], static: frozenset[terms.Relation], fresh: Iterator[int] | None = None
) -> tuple[terms.Rule, ...]:
    """Returns rules that derive every atom that is used.

    `static` are relations that never change; `fresh` numbers new relations.
    """
    rules = tuple(rules)
    guards = _guards(rules, static)
    all_demands = dict.fromkeys(demand for rule in rules for demand in _demands(rule, guards))
    demands = split_joins.split_rules(all_demands, fresh)
    return tuple(dict.fromkeys((*(_guarded(rule, guards) for rule in rules), *demands)))


def _guards(rules: tuple[terms.Rule, ...], static: frozenset[terms.Relation]) -> _Guards:
    """Returns the parameters of every relation that are bound at every call, as a greatest fixpoint."""
    parameters = _parameters(rules, static)
    guards = {
        relation: places
        for relation in dict.fromkeys(rule.head.relation for rule in rules)
        if _may_be_guarded(relation) and (places := tuple(n for n in range(relation[1]) if (relation, n) in parameters))
    }
    concluding: dict[terms.Relation, list[terms.Rule]] = {}
    for rule in rules:
        concluding.setdefault(rule.head.relation, []).append(rule)
    work = collections.deque(rules)
    while work:
        for call in list(_calls(work.popleft(), guards)):
            relation = call.atom.relation
            places = guards.get(relation, ())
            bound = tuple(n for n in places if _names([call.atom.args[n]]) <= call.known)
            if bound != places:
                guards[relation] = bound
                if not bound:
                    del guards[relation]
                work += concluding[relation]  # they bind less now
    return guards


def _may_be_guarded(relation: terms.Relation) -> bool:
    name, arity = relation
    return arity >= _LEAST_ARGUMENTS and name not in terms.KEYWORD_ARITY and not name.startswith(split_joins.DOMAIN)


def _parameters(rules: tuple[terms.Rule, ...], static: frozenset[terms.Relation]) -> set[_Place]:
    """Arguments that every rule binds only by a static relation of one variable, or by passing them as a parameter.

    Rules that call their own relation are ignored: they may bind a parameter in a step of the recursion.
    """
    recursive = _recursion(rules)
    missing: dict[_Place, set[_Place]] = {}  # the places that an argument is passed to and that are not known yet
    refuted: set[_Place] = set()
    for rule in rules:
        relation = rule.head.relation
        positive = [literal for literal in rule.body if isinstance(literal, terms.Atom)]
        if not any(atom.relation in recursive.get(relation, ()) for atom in positive):
            for number, arg in enumerate(rule.head.args):
                passed = _passed_on(arg.name, positive, static) if isinstance(arg, terms.Variable) else None
                missing.setdefault((relation, number), set()).update(passed or ())
                if passed is None:
                    refuted.add((relation, number))
    users: dict[_Place, list[_Place]] = {}
    for place, others in missing.items():
        for other in others:
            users.setdefault(other, []).append(place)
    parameters: set[_Place] = set()
    work = [place for place, others in missing.items() if not others and place not in refuted]
    while work:
        place = work.pop()
        parameters.add(place)
        for user in users.get(place, ()):
            missing[user].discard(place)
            if not missing[user] and user not in refuted:
                work.append(user)
    return parameters


def _recursion(rules: Iterable[terms.Rule]) -> dict[terms.Relation, frozenset[terms.Relation]]:
    """Maps every relation to its strongly connected component."""
    edges: dict[terms.Relation, set[terms.Relation]] = {}
    for rule in rules:
        edges.setdefault(rule.head.relation, set()).update(atom.relation for atom, _ in terms.atoms_in(rule.body))
    return {relation: frozenset(group) for group in graphs.strongly_connected_components(edges) for relation in group}


def _passed_on(name: str, body: Iterable[terms.Atom], static: frozenset[terms.Relation]) -> set[_Place] | None:
    """Returns the arguments that a variable is passed to; None if it is part of a compound term."""
    places = set()
    for atom in body:
        names = _names(atom.args)
        if name not in names or (atom.relation in static and len(names) == 1):
            continue
        for number, arg in enumerate(atom.args):
            if isinstance(arg, terms.Variable) and arg.name == name:
                places.add((atom.relation, number))
            elif name in _names([arg]):
                return None
    return places


@dataclasses.dataclass(frozen=True)
class _Call:
    atom: terms.Atom
    before: tuple[terms.Atom, ...]  # literals that are evaluated before it
    known: frozenset[str]  # their variables


def _calls(rule: terms.Rule, guards: _Guards) -> Iterator[_Call]:
    """Yields the calls of guarded relations in a body, each with the literals that may bind its arguments.

    Two calls must not depend on each other, so they are ordered: literals without a guard bind variables for all calls,
    guarded literals for those after them, negative literals for none.
    """
    positive = [literal for literal in rule.body if isinstance(literal, terms.Atom)]
    before = [literal for literal in positive if literal.relation not in guards]
    if rule.head.relation in guards:
        before.insert(0, _demand(rule.head, guards[rule.head.relation]))
    known = frozenset(_names(arg for literal in before for arg in literal.args))
    for atom in positive:
        if atom.relation in guards:
            yield _Call(atom, tuple(before), known)
            before.append(atom)
            known |= _names(atom.args)
    for literal in rule.body:
        if isinstance(literal, terms.Not) and literal.atom.relation in guards:
            yield _Call(literal.atom, tuple(before), known)


def _demands(rule: terms.Rule, guards: _Guards) -> Iterator[terms.Rule]:
    for call in _calls(rule, guards):
        head = _demand(call.atom, guards[call.atom.relation])
        body = _cover(_names(head.args), call.before)
        if head not in body:
            yield terms.Rule(head, body, False, rule.span)


def _cover(missing: set[str], literals: Iterable[terms.Atom]) -> tuple[terms.Atom, ...]:
    """Selects few literals that bind the variables: joining all of them might cost more than the guard saves."""
    chosen = []
    while missing:
        best = max(literals, key=lambda atom: len(missing & _names(atom.args)))
        chosen.append(best)
        missing = missing - _names(best.args)
    return tuple(chosen)


def _guarded(rule: terms.Rule, guards: _Guards) -> terms.Rule:
    if rule.head.relation not in guards:
        return rule
    return dataclasses.replace(rule, body=(_demand(rule.head, guards[rule.head.relation]), *rule.body), is_fact=False)


def _demand(atom: terms.Atom, places: Iterable[int]) -> terms.Atom:
    # The arity is part of the name: two relations may differ in it alone.
    return terms.Atom(f"{_NAME}{len(atom.args)} {atom.name}", tuple(atom.args[n] for n in places), atom.span)


def _names(items: Iterable[terms.Term]) -> set[str]:
    return {variable.name for variable in terms.variables_in(items)}
