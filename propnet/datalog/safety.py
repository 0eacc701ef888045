"""Finds unsafe variables of rules, and normalizes rules for evaluation.

What a user reads about them is written by `propnet/checks/variables.py`.
"""

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Iterator

from gdlx.propnet.syntax import diagnostics, terms

_ROLE_HEADS = ("legal", "goal", "sees")
_FEW_ALTERNATIVES = 256
_MOST_ALTERNATIVES = 2**12
_MOST_LITERALS = 200_000


def _names(items: Iterable[terms.Term]) -> set[str]:
    return {variable.name for variable in terms.variables_in(items)}


class _Scope:
    """The body of a rule or a disjunct of an `or`, and the scopes to update when a variable is bound in it."""

    def __init__(self, body: terms.Body, choice: "_Choice | None" = None) -> None:
        self.body = body
        self.choice = choice
        self.known: set[str] = set()
        self.names: set[str] = set()  # of all its variables
        self.binds: list[str] = []  # bound by its own literals
        self.sides: dict[str, list[_Side]] = {}
        self.inner: list[_Scope] = []  # the disjuncts of all its `or`, in order
        self.users: dict[str, list[_Scope]] = {}  # disjuncts that a variable occurs in
        for literal in body:
            if isinstance(literal, terms.Or):
                inside = _Choice(self, len(literal.disjuncts))
                self.inner += [_Scope(option, inside) for option in literal.disjuncts]
                continue
            self.names |= _names(terms.literal_terms(literal))
            if isinstance(literal, terms.Atom):
                self.binds += _names(literal.args)
            elif isinstance(literal, terms.Distinct) and literal.equal:
                self._equate(_names([literal.left]), _names([literal.right]))
        for option in self.inner:
            self.names |= option.names
            for name in option.names:
                self.users.setdefault(name, []).append(option)

    def _equate(self, left: set[str], right: set[str]) -> None:
        for side, other in ((left, right), (right, left)):
            if not side:
                self.binds += other
            waiting = _Side(len(side), other)
            for name in side:
                self.sides.setdefault(name, []).append(waiting)

    def all_scopes(self) -> "Iterator[_Scope]":
        yield self
        for option in self.inner:
            yield from option.all_scopes()

    def unsafe(self) -> Iterator[terms.Variable]:
        """Yields variables of negative literals that are not bound in the scope of the literal."""
        options = iter(self.inner)
        for literal in self.body:
            if isinstance(literal, terms.Or):
                for option in itertools.islice(options, len(literal.disjuncts)):
                    yield from option.unsafe()
            elif not isinstance(literal, terms.Atom):
                yield from (v for v in terms.variables_in(terms.literal_terms(literal)) if v.name not in self.known)


@dataclasses.dataclass
class _Choice:
    """An `or`: a variable that all its disjuncts bind is bound outside of it."""

    outside: _Scope
    size: int
    votes: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)


@dataclasses.dataclass
class _Side:
    """One side of an equality; when all its variables are bound, those of the other side are too."""

    missing: int
    other: set[str]


def _bind(body: terms.Body, given: frozenset[str] = frozenset()) -> _Scope:
    """Propagates bound variables to all scopes; handles every variable of a scope once, however `or` and `=` nest."""
    root = _Scope(body)
    work = [(root, name) for name in given]
    work += [(scope, name) for scope in root.all_scopes() for name in scope.binds]
    while work:
        scope, name = work.pop()
        if name in scope.known:
            continue
        scope.known.add(name)
        work += [(option, name) for option in scope.users.get(name, ())]
        for side in scope.sides.get(name, ()):
            side.missing -= 1
            if not side.missing:
                work += [(scope, other) for other in side.other]
        if scope.choice:
            scope.choice.votes[name] += 1
            if scope.choice.votes[name] == scope.choice.size:
                work.append((scope.choice.outside, name))
    return root


def bound_variables(body: terms.Body, given: frozenset[str] = frozenset()) -> frozenset[str]:
    """Returns variables that a body binds: those of its positive atoms, and those equal to a bound term."""
    return frozenset(_bind(body, given).known)


def negated_only(rule: terms.Rule) -> frozenset[str]:
    """Returns the variables that occur in a single literal of a rule, which is negated: `not` says there is none."""
    uses: collections.Counter[str] = collections.Counter()
    negated: set[str] = set()
    for literal in terms.literals_in(rule.body):
        names = _names(terms.literal_terms(literal))
        uses.update(names)
        if isinstance(literal, terms.Not):
            negated |= names
    return frozenset(name for name in negated - _names(rule.head.args) if uses[name] == 1)


def unsafe_variables(rule: terms.Rule) -> Iterator[terms.Variable]:
    """Yields the first occurrence of every variable that nothing binds, without those of `negated_only`."""
    scope = _bind(rule.body)
    seen = set(negated_only(rule))
    in_head = (v for v in terms.variables_in(rule.head.args) if v.name not in scope.known)
    for variable in itertools.chain(in_head, scope.unsafe()):
        if variable.name not in seen:
            seen.add(variable.name)
            yield variable


def unbound_role(rule: terms.Rule) -> terms.Variable | None:
    """Returns the role variable of a legal, goal or sees head if the body does not bind it."""
    if rule.is_fact or rule.head.name not in _ROLE_HEADS:
        return None
    role = rule.head.args[0]
    if isinstance(role, terms.Variable) and role.name not in bound_variables(rule.body):
        return role
    return None


def bind_role(rule: terms.Rule) -> terms.Rule:
    """Adds (role ?r) to a rule whose role variable is unbound."""
    role = unbound_role(rule)
    if role is None:
        return rule
    return dataclasses.replace(rule, body=(terms.Atom("role", (role,), role.span), *rule.body))


def eliminate_disjunctions(rule: terms.Rule) -> list[terms.Rule]:
    """Returns equivalent rules without `or`.

    Few alternatives are expanded to disjunctive normal form. Many (ten `or` of ten disjuncts each) get one auxiliary
    relation per `or` instead; it repeats the rest of the body, because a disjunct may use variables bound outside.
    """
    return _eliminate_disjunctions(rule, f"or {rule.span.start}")


def _eliminate_disjunctions(rule: terms.Rule, prefix: str) -> list[terms.Rule]:
    choices = [literal for literal in rule.body if isinstance(literal, terms.Or)]
    if not choices:
        return [rule]
    alternatives = _alternatives(rule.body, _FEW_ALTERNATIVES)
    if alternatives is None:
        links = _links(rule, choices)
        if links is not None:
            return _with_relations(rule, choices, links, prefix)
        size = sum(1 for _ in terms.literals_in(rule.body))
        alternatives = _alternatives(rule.body, min(_MOST_ALTERNATIVES, _MOST_LITERALS // size))
    if alternatives is None:
        raise _too_many(rule, f"{_MOST_ALTERNATIVES} alternatives of this rule")
    return [dataclasses.replace(rule, body=body) for body in alternatives]


def _with_relations(
    rule: terms.Rule, choices: list[terms.Or], links: list[tuple[terms.Variable, ...]], prefix: str
) -> list[terms.Rule]:
    plain = tuple(literal for literal in rule.body if not isinstance(literal, terms.Or))
    rules = []
    body: list[terms.Literal] = list(plain)
    for number, (choice, link) in enumerate(zip(choices, links, strict=True)):
        # Symbols of a sheet have no spaces, so the name is unused.
        head = terms.Atom(f"{prefix} {number}", link, rule.span)
        body.append(head)
        for inner, option in enumerate(choice.disjuncts):
            rules += _eliminate_disjunctions(
                terms.Rule(head, (*plain, *option), False, rule.span), f"{head.name} {inner}"
            )
    return [*rules, dataclasses.replace(rule, body=tuple(body))]


def _links(rule: terms.Rule, choices: list[terms.Or]) -> list[tuple[terms.Variable, ...]] | None:
    """Returns the variables that each `or` shares with the rest of its rule; None if a disjunct leaves one unbound."""
    uses = collections.Counter(_names(rule.head.args))
    for literal in rule.body:
        uses.update(_all_names((literal,)))
    plain = tuple(literal for literal in rule.body if not isinstance(literal, terms.Or))
    equalities = tuple(literal for literal in plain if isinstance(literal, terms.Distinct) and literal.equal)
    known = bound_variables(plain)
    links = []
    for choice in choices:
        shared = {name for name in _all_names((choice,)) if uses[name] > 1}
        if not all(shared <= bound_variables((*equalities, *option), known) for option in choice.disjuncts):
            return None
        links.append(tuple(terms.Variable(name, rule.span) for name in sorted(shared)))
    return links


def _all_names(body: terms.Body) -> set[str]:
    return {name for part in terms.literals_in(body) for name in _names(terms.literal_terms(part))}


def _alternatives(body: terms.Body, limit: int) -> list[terms.Body] | None:
    """Returns the disjunctive normal form of a body, or None if it has more than `limit` disjuncts."""
    choices: list[list[terms.Body]] = []
    count = 1
    for literal in body:
        options: list[terms.Body] = [(literal,)]
        if isinstance(literal, terms.Or):
            options = []
            for option in literal.disjuncts:
                inner = _alternatives(option, limit)
                if inner is None:
                    return None
                options += inner
        count *= len(options)
        if count > limit:
            return None
        choices.append(options)
    return [tuple(itertools.chain.from_iterable(chosen)) for chosen in itertools.product(*choices)]


def expand_rules(rules: Iterable[terms.Rule]) -> Iterator[tuple[terms.Rule, terms.Rule]]:
    """Yields pairs of a rule and a normalized rule derived from it, with role variables bound and without `or`."""
    size = 0
    for rule in rules:
        for plain in eliminate_disjunctions(bind_role(rule)):
            size += len(plain.body) if plain.body != rule.body else 0
            if size > _MOST_LITERALS:
                raise _too_many(rule, f"{_MOST_LITERALS} literals in this sheet")
            yield rule, plain


def normalize_rules(rules: Iterable[terms.Rule]) -> tuple[terms.Rule, ...]:
    """Binds the role variables of rules and eliminates `or`."""
    return tuple(plain for _, plain in expand_rules(rules))


def _too_many(rule: terms.Rule, what: str) -> diagnostics.GdlError:
    message = f"multiplied out, the `or` parts make more than {what}"
    hint = "give each `or` a relation of its own"
    return diagnostics.GdlError([diagnostics.Diagnostic("evaluation-limit", message, rule.span, hint)])
