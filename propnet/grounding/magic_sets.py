"""Rules guarded by what can be asked for, so that the grounder leaves out the rest (magic sets).

`(<= (threatened ?x ?y ?ignored) (attack ?x ?y) (square ?ignored))` holds of every square that might be ignored, asked
for or not: `?ignored` is a parameter, which nothing but the caller restricts. For every relation with parameters this
adds a relation `domain of calls of ..`, concluded from what stands beside the calls, and guards its rules with it.

Such a relation is like a domain of `split`: it is grounded in a world where every fluent may hold, without the
negative literals of the caller, so it covers every call that can be made; a guard then holds wherever the guarded atom
is asked for, and is dropped when the network is built. So guards change no meaning and close no circle through `not`.
"""

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from gdlx.propnet.common import graphs
from gdlx.propnet.grounding import split_joins
from gdlx.propnet.syntax import terms

_LEAST_ARGUMENTS = 4  # narrower relations have few instances
_NAME = f"{split_joins.DOMAIN}calls of "  # a blank cannot be part of a symbol in a sheet, so the names are free

_Place = tuple[terms.Relation, int]  # an argument of a relation
_Guards = Mapping[terms.Relation, tuple[int, ...]]  # the arguments of every guarded relation that its callers tell


def apply_magic_sets(rules: Iterable[terms.Rule], static: frozenset[terms.Relation]) -> tuple[terms.Rule, ...]:
    """Rules that conclude everything that is asked for; `static` are relations that depend on nothing that changes."""
    rules = tuple(rules)
    guards = _guards(rules, static)
    demands = [demand for rule in rules for demand in _demands(rule, guards)]
    return tuple(dict.fromkeys((*(_guarded(rule, guards) for rule in rules), *demands)))


def _guards(rules: tuple[terms.Rule, ...], static: frozenset[terms.Relation]) -> _Guards:
    """Of every relation the parameters that are known at every call: fewer and fewer, until all calls agree."""
    parameters = _parameters(rules, static)
    guards = {
        relation: own
        for relation in dict.fromkeys(rule.head.relation for rule in rules)
        if _may_be_guarded(relation) and (own := tuple(n for n in range(relation[1]) if (relation, n) in parameters))
    }
    concluding: dict[terms.Relation, list[terms.Rule]] = {}
    for rule in rules:
        concluding.setdefault(rule.head.relation, []).append(rule)
    work = collections.deque(rules)
    while work:
        for call in list(_calls(work.popleft(), guards)):
            relation = call.atom.relation
            own = guards.get(relation, ())
            kept = tuple(n for n in own if _names([call.atom.args[n]]) <= call.known)
            if kept != own:
                guards[relation] = kept
                if not kept:
                    del guards[relation]
                work += concluding[relation]  # they know less now
    return guards


def _may_be_guarded(relation: terms.Relation) -> bool:
    name, arity = relation
    return arity >= _LEAST_ARGUMENTS and name not in terms.KEYWORD_ARITY and not name.startswith(split_joins.DOMAIN)


def _parameters(rules: tuple[terms.Rule, ...], static: frozenset[terms.Relation]) -> set[_Place]:
    """Arguments that every rule binds by nothing but a static relation of one variable, or a parameter it passes on.

    Rules that call their own relation are not asked: they may bind a parameter in a step of the recursion.
    """
    recursive = _recursion(rules)
    missing: dict[_Place, set[_Place]] = {}  # the places that an argument is passed on to and that are not known yet
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
    found: set[_Place] = set()
    work = [place for place, others in missing.items() if not others and place not in refuted]
    while work:
        place = work.pop()
        found.add(place)
        for user in users.get(place, ()):
            missing[user].discard(place)
            if not missing[user] and user not in refuted:
                work.append(user)
    return found


def _recursion(rules: Iterable[terms.Rule]) -> dict[terms.Relation, frozenset[terms.Relation]]:
    """Of every relation those that call it and are called by it."""
    edges: dict[terms.Relation, set[terms.Relation]] = {}
    for rule in rules:
        edges.setdefault(rule.head.relation, set()).update(atom.relation for atom, _ in terms.atoms_in(rule.body))
    return {relation: frozenset(group) for group in graphs.strongly_connected_components(edges) for relation in group}


def _passed_on(name: str, body: Iterable[terms.Atom], static: frozenset[terms.Relation]) -> set[_Place] | None:
    """The arguments of relations that a variable is passed on to; None where it is part of something else."""
    found = set()
    for atom in body:
        names = _names(atom.args)
        if name not in names or (atom.relation in static and len(names) == 1):
            continue
        for number, arg in enumerate(atom.args):
            if isinstance(arg, terms.Variable) and arg.name == name:
                found.add((atom.relation, number))
            elif name in _names([arg]):
                return None
    return found


@dataclasses.dataclass(frozen=True)
class _Call:
    atom: terms.Atom
    before: tuple[terms.Atom, ...]  # literals that are known when it is made
    known: frozenset[str]  # and their variables


def _calls(rule: terms.Rule, guards: _Guards) -> Iterator[_Call]:
    """The calls of guarded relations in a body, each with what the others may tell it.

    Two calls must not wait for each other, so they have an order: literals without a guard tell all others, guarded
    ones those after them, negative ones nobody.
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
    """Few literals that bind the variables: all of them together might be a join larger than what it guards."""
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
