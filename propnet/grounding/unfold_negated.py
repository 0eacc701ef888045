"""Replaces negated calls of wide relations by their rules, each with the arguments that it uses.

`(not (attacked ?owner ?x ?y ?from ?to))` with `(<= (attacked ?owner ?x ?y ?from ?to) (near ?x ?y ?from) (square ?to))`
and one more rule becomes two negated literals of fewer arguments, the first of `(near ?x ?y ?from)`, if all calls imply
`(square ?to)`. The wide relation, which has an instance for each combination of arguments, need not be ground.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from gdlx.propnet.datalog import safety
from gdlx.propnet.grounding import argument_values, drop_arguments
from gdlx.propnet.syntax import terms

_NAME = "option"  # with a space and a number: symbols of a sheet have no spaces, so the names are unused
_LEAST_ARGUMENTS = 6  # narrower relations have few instances
_MOST_RULES = 8  # negated literals that one may become

_Values = list[frozenset[str] | None]  # of each argument; None for anything


@dataclasses.dataclass(frozen=True)
class _Narrow:
    """What replaces a rule of a wide relation: an atom with some arguments of the call, and its rule if it is new."""

    atom: terms.Atom
    places: tuple[int, ...]  # of the call; one for each argument of the atom
    rules: tuple[terms.Rule, ...]

    def negated(self, call: terms.Atom) -> terms.Not:
        return terms.Not(dataclasses.replace(self.atom, args=tuple(call.args[n] for n in self.places)))


def unfold(rules: Iterable[terms.Rule], fresh: Iterator[int]) -> tuple[terms.Rule, ...]:
    """Returns equivalent rules; `fresh` numbers the auxiliary relations."""
    rules = tuple(rules)
    definitions = _definitions(rules)
    if not definitions:
        return rules
    lists = drop_arguments.lists_of_values(rules)
    narrow: dict[terms.Relation, list[_Narrow]] = {}
    for relation, values in _values_at_calls(rules, definitions.keys()).items():
        options = [_narrowed(rule, values, lists, f"{_NAME} {next(fresh)}") for rule in definitions[relation]]
        if all(len(option.places) < relation[1] for option in options):
            narrow[relation] = options
    added = (rule for options in narrow.values() for option in options for rule in option.rules)
    replaced = [_with_narrow_calls(rule, narrow) for rule in (*rules, *added)]
    called = {atom.relation for rule in replaced for atom, _ in terms.atoms_in(rule.body)}
    return tuple(rule for rule in replaced if rule.head.relation not in narrow.keys() - called)


def _definitions(rules: tuple[terms.Rule, ...]) -> dict[terms.Relation, list[terms.Rule]]:
    """Returns the rules of the wide relations that are negated somewhere."""
    definitions: dict[terms.Relation, list[terms.Rule]] = {
        atom.relation: []
        for rule in rules
        for atom, positive in terms.atoms_in(rule.body)
        if not positive and len(atom.args) >= _LEAST_ARGUMENTS
    }
    for rule in rules:
        if rule.head.relation in definitions:
            definitions[rule.head.relation].append(rule)
    return {
        relation: definition
        for relation, definition in definitions.items()
        if len(definition) <= _MOST_RULES and all(rule.body for rule in definition)
    }


def _values_at_calls(
    rules: tuple[terms.Rule, ...], relations: Iterable[terms.Relation]
) -> Mapping[terms.Relation, _Values]:
    """Returns the symbols that the arguments of negated calls may be."""
    values = argument_values.ArgumentValues(rules)
    at_calls_of: dict[terms.Relation, _Values] = {relation: [frozenset()] * relation[1] for relation in relations}
    for rule in rules:
        for atom, positive in terms.atoms_in(rule.body):
            if not positive and atom.relation in at_calls_of:
                at_calls = at_calls_of[atom.relation]
                for number, arg in enumerate(atom.args):
                    before, new = at_calls[number], values.symbols(arg, rule.body)
                    at_calls[number] = None if before is None or new is None else before | new
    return at_calls_of


def _narrowed(rule: terms.Rule, values: _Values, lists: drop_arguments.Lists, name: str) -> _Narrow:
    """Omits what every call implies from a rule, and the arguments that this leaves without a use."""
    args = rule.head.args
    implied = {
        literal
        for n, symbols in enumerate(values)
        if symbols is not None and not _is_fixed(args, n)
        for literal in rule.body
        if drop_arguments.listed(literal, lists) in _names([args[n]]) and symbols <= _symbols(literal, lists)
    }
    used = _used(part for part in rule.body if part not in implied)
    bound = safety.bound_variables(tuple(part for part in rule.body if part not in implied))
    # An implied literal may be what binds a variable of negated ones.
    body = tuple(part for part in rule.body if part not in implied or _used([part]) & used - bound)
    place_of: dict[terms.Term, int] = {arg: n for n, arg in enumerate(args) if isinstance(arg, terms.Variable)}
    atom = body[0] if len(body) == 1 and len(place_of) == len(args) else None
    if isinstance(atom, terms.Atom) and place_of.keys() >= set(atom.args):
        return _Narrow(atom, tuple(place_of[arg] for arg in atom.args), ())
    used = _used(body)
    places = tuple(n for n, arg in enumerate(args) if _is_fixed(args, n) or _names([arg]) & used)
    head = terms.Atom(name, tuple(args[n] for n in places), rule.head.span)
    return _Narrow(head, places, (dataclasses.replace(rule, head=head, body=body, is_fact=not body),))


def _is_fixed(args: tuple[terms.Term, ...], number: int) -> bool:
    """Whether an argument of a head is no variable, or one that other arguments have too."""
    arg = args[number]
    return not isinstance(arg, terms.Variable) or arg.name in _names([*args[:number], *args[number + 1 :]])


def _symbols(literal: terms.Literal, lists: drop_arguments.Lists) -> frozenset[str]:
    assert isinstance(literal, terms.Atom)
    return frozenset(value.name for value in lists[literal.relation] if isinstance(value, terms.Symbol))


def _with_narrow_calls(rule: terms.Rule, narrow: Mapping[terms.Relation, list[_Narrow]]) -> terms.Rule:
    body: list[terms.Literal] = []
    for literal in rule.body:
        if isinstance(literal, terms.Not) and literal.atom.relation in narrow:
            body += [option.negated(literal.atom) for option in narrow[literal.atom.relation]]
        else:
            body.append(literal)
    return dataclasses.replace(rule, body=tuple(dict.fromkeys(body)))


def _used(body: Iterable[terms.Literal]) -> set[str]:
    return {name for part in terms.literals_in(tuple(body)) for name in _names(terms.literal_terms(part))}


def _names(items: Iterable[terms.Term]) -> set[str]:
    return {variable.name for variable in terms.variables_in(items)}
