"""Evaluates the bodies of rules as joins over tables of facts.

A plan orders the literals so that each can be evaluated; tables build the indexes that the plans look up.
"""

import dataclasses
import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gdlx.propnet.datalog import safety
from gdlx.propnet.syntax import ground_terms, terms

Bindings = list[Any]  # the value of each variable of a rule, by slot
TermBuilder = Callable[[Bindings], Any]  # returns a value, or the name and size of a compound
Path = tuple[int, ...]  # a position in a fact: the argument, then positions inside compounds
Probe = tuple[Path, bool]  # a path, and whether to compare only the name and size of the compound there

MAX_DEPTH = 200  # deeper than the parser allows, so that only growing terms reach it
MAX_SIZE = 10_000  # symbols of a term; (f ?x ?x) doubles it while its depth grows by one
_CLOCK_EVERY = 4096


class LimitError(Exception):
    """Raised if `rule` derives too large a term (`deep`) or too many facts, or takes too long."""

    def __init__(self, rule: terms.Rule, what: str, deep: bool) -> None:
        self.rule, self.what, self.term_too_large = rule, what, deep
        super().__init__(what)


@dataclasses.dataclass
class Budget:
    """The facts and the time that one evaluation may use."""

    facts: int = 5_000_000
    seconds: float = 600.0
    started: float = dataclasses.field(default_factory=time.monotonic)

    def spend(self, rule: terms.Rule) -> None:
        self.facts -= 1
        if self.facts < 0:
            raise LimitError(rule, "too many facts", deep=False)

    def check_deadline(self, rule: terms.Rule) -> None:
        if time.monotonic() - self.started > self.seconds:
            raise LimitError(rule, f"more than {self.seconds:.0f} s of work", deep=False)


class Table:
    """The facts of one relation in the order of their derivation, with an index for each set of probes in use."""

    def __init__(self, rows: Iterable[ground_terms.Fact] = ()) -> None:
        self.rows: list[ground_terms.Fact] = []
        self.known: set[ground_terms.Fact] = set()
        self._indexes: dict[tuple[Probe, ...], dict[tuple[Any, ...], list[ground_terms.Fact]]] = {}
        for row in rows:
            self.add(row)

    def add(self, fact: ground_terms.Fact) -> bool:
        if fact in self.known:
            return False
        self.known.add(fact)
        self.rows.append(fact)
        for probes, index in self._indexes.items():
            index.setdefault(_probe_all(fact, probes), []).append(fact)
        return True

    def find(self, probes: tuple[Probe, ...], key: tuple[Any, ...]) -> Sequence[ground_terms.Fact]:
        if not probes:
            return self.rows
        index = self._indexes.get(probes)
        if index is None:
            index = self._indexes[probes] = {}
            for fact in self.rows:
                index.setdefault(_probe_all(fact, probes), []).append(fact)
        return index.get(key, ())


Tables = dict[terms.Relation, Table]
_EMPTY = Table()


def _probe_all(fact: ground_terms.Fact, probes: tuple[Probe, ...]) -> tuple[Any, ...]:
    return tuple(_probe(fact, path, shape) for path, shape in probes)


def _probe(fact: ground_terms.Fact, path: Path, shape: bool) -> Any:
    value: Any = fact
    for step in path:
        if isinstance(value, str) or step >= len(value):
            return None
        value = value[step]
    if shape:
        return None if isinstance(value, str) else (value[0], len(value))
    return value


def require_small(fact: ground_terms.Fact, rule: terms.Rule) -> None:
    """Raises LimitError for a fact with a huge term; call it before hashing the fact, which takes time in its size."""
    if any(ground_terms.is_huge(value, MAX_DEPTH, MAX_SIZE) for value in fact):
        raise LimitError(
            rule, f"a term nested more than {MAX_DEPTH} deep, or of more than {MAX_SIZE} symbols", deep=True
        )


@dataclasses.dataclass(frozen=True)
class _Pattern:
    """Argument terms to match against facts: what must be equal (probes, key), and which variables get bound."""

    probes: tuple[Probe, ...]
    key: tuple[TermBuilder, ...]
    learned: tuple[tuple[Path, int], ...]
    repeated: tuple[tuple[Path, int], ...]

    def bind(self, fact: ground_terms.Fact, env: Bindings) -> bool:
        for path, slot in self.learned:
            env[slot] = _probe(fact, path, False)
        return all(_probe(fact, path, False) == env[slot] for path, slot in self.repeated)


def _pattern(args: Sequence[terms.Term], slots: Mapping[str, int], bound: set[str]) -> _Pattern:
    probes: list[Probe] = []
    key: list[TermBuilder] = []
    learned: dict[str, tuple[Path, int]] = {}
    repeated: list[tuple[Path, int]] = []

    def visit(term: terms.Term, path: Path) -> None:
        free = [v for v in terms.variables_in([term]) if v.name not in bound]
        if not free:
            probes.append((path, False))
            key.append(_builder(term, slots))
        elif isinstance(term, terms.Variable):
            if term.name in learned:
                repeated.append((path, slots[term.name]))
            else:
                learned[term.name] = (path, slots[term.name])
        elif isinstance(term, terms.Compound):
            shape = (term.functor, len(term.args) + 1)
            probes.append((path, True))
            key.append(lambda env: shape)
            for number, arg in enumerate(term.args):
                visit(arg, (*path, number + 1))

    for number, arg in enumerate(args):
        visit(arg, (number,))
    return _Pattern(tuple(probes), tuple(key), tuple(learned.values()), tuple(repeated))


def _builder(term: terms.Term, slots: Mapping[str, int]) -> TermBuilder:
    if isinstance(term, terms.Variable):
        slot = slots[term.name]
        return lambda env: env[slot]
    if isinstance(term, terms.Symbol):
        name = term.name
        return lambda env: name
    functor, parts = term.functor, [_builder(arg, slots) for arg in term.args]
    return lambda env: (functor, *(part(env) for part in parts))


def _fact_builder(args: Sequence[terms.Term], slots: Mapping[str, int]) -> Callable[[Bindings], ground_terms.Fact]:
    parts = [_builder(arg, slots) for arg in args]
    return lambda env: tuple(part(env) for part in parts)


# A step of a plan: takes bindings and the positive and negative tables, yields once per match.
JoinStep = Callable[[Bindings, Tables, Tables], Iterator[None]]


def _match_step(relation: terms.Relation, pattern: _Pattern) -> JoinStep:
    def step(env: Bindings, positive: Tables, negative: Tables) -> Iterator[None]:
        key = tuple(part(env) for part in pattern.key)
        for fact in positive.get(relation, _EMPTY).find(pattern.probes, key):
            if pattern.bind(fact, env):
                yield

    return step


def _absent_step(relation: terms.Relation, fact: Callable[[Bindings], ground_terms.Fact]) -> JoinStep:
    def step(env: Bindings, positive: Tables, negative: Tables) -> Iterator[None]:
        if fact(env) not in negative.get(relation, _EMPTY).known:
            yield

    return step


def _no_match_step(relation: terms.Relation, pattern: _Pattern) -> JoinStep:
    """A negated literal with variables of its own: no fact may match it, whatever they are."""

    def step(env: Bindings, positive: Tables, negative: Tables) -> Iterator[None]:
        key = tuple(part(env) for part in pattern.key)
        if not any(pattern.bind(fact, env) for fact in negative.get(relation, _EMPTY).find(pattern.probes, key)):
            yield

    return step


def _compare_step(left: TermBuilder, right: TermBuilder, equal: bool) -> JoinStep:
    def step(env: Bindings, positive: Tables, negative: Tables) -> Iterator[None]:
        if (left(env) == right(env)) == equal:
            yield

    return step


def _equal_step(known: TermBuilder, pattern: _Pattern, rule: terms.Rule) -> JoinStep:
    """Binds the variables of one side of an equality from the value of the other."""

    def step(env: Bindings, positive: Tables, negative: Tables) -> Iterator[None]:
        fact = (known(env),)
        require_small(fact, rule)
        key = tuple(part(env) for part in pattern.key)
        if _probe_all(fact, pattern.probes) == key and pattern.bind(fact, env):
            yield

    return step


class JoinPlan:
    """One rule with its literals in an order in which each can be evaluated.

    With `first` (the number of a positive literal) that literal leads and reads the table of new facts.
    """

    def __init__(self, rule: terms.Rule, first: int | None = None) -> None:
        self.rule = rule
        names = sorted({v.name for term in terms.rule_terms(rule) for v in terms.variables_in([term])})
        self.slots = {name: slot for slot, name in enumerate(names)}
        self.head = _fact_builder(rule.head.args, self.slots)
        self.may_grow = any(
            isinstance(term, terms.Compound) and any(terms.variables_in([term])) for term in _constructed_terms(rule)
        )
        self.steps: list[JoinStep] = []
        self._negated_only = safety.negated_only(rule)
        self._plan(rule.body, first)

    def _plan(self, body: terms.Body, first: int | None) -> None:
        """Orders literals greedily by cost; each makes those that share its variables cheaper."""
        bound: set[str] = set()
        names = []
        users: dict[str, list[int]] = {}
        for number, literal in enumerate(body):
            assert not isinstance(literal, terms.Or)
            names.append({v.name for v in terms.variables_in(terms.literal_terms(literal))})
            for name in names[-1]:
                users.setdefault(name, []).append(number)
        costs: dict[int, tuple[int, int]] = {n: self._cost(literal, bound) for n, literal in enumerate(body)}
        if first is not None:
            costs[first] = (-1, 0)
        queue = [(cost, number) for number, cost in costs.items()]
        heapq.heapify(queue)
        while queue:
            cost, number = heapq.heappop(queue)
            if costs.get(number) != cost:
                continue  # taken, or cheaper by now
            del costs[number]
            literal = body[number]
            assert not isinstance(literal, terms.Or)
            self.steps.append(self._step(literal, bound, new=number == first))
            fresh = names[number] - bound
            bound |= fresh
            for other in {user for name in fresh for user in users[name] if user in costs}:
                costs[other] = self._cost(body[other], bound)
                heapq.heappush(queue, (costs[other], other))

    def _cost(self, literal: terms.Literal, bound: set[str]) -> tuple[int, int]:
        """Cost of a literal: filters as soon as they can run, then atoms with a known part, then by unknowns."""
        assert not isinstance(literal, terms.Or)
        unknown = len({v.name for v in terms.variables_in(terms.literal_terms(literal))} - bound - self._negated_only)
        if isinstance(literal, terms.Atom):
            known_parts = sum(not self._free(arg, bound) for arg in _leaves(literal.args))
            return (0, 0) if not unknown else (1, 0) if known_parts else (2, unknown)
        if isinstance(literal, terms.Distinct) and literal.equal:
            known_side = not self._free(literal.left, bound) or not self._free(literal.right, bound)
            return (0, 0) if known_side else (3, 0)
        return (0, 0) if not unknown else (3, 0)

    @staticmethod
    def _free(term: terms.Term, bound: set[str]) -> bool:
        return any(v.name not in bound for v in terms.variables_in([term]))

    def _step(self, literal: terms.Atom | terms.Not | terms.Distinct, bound: set[str], new: bool) -> JoinStep:
        slots = self.slots
        if isinstance(literal, terms.Atom):
            name, arity = literal.relation
            return _match_step((f"new {name}" if new else name, arity), _pattern(literal.args, slots, bound))
        if isinstance(literal, terms.Not):
            if any(v.name in self._negated_only for v in terms.variables_in(literal.atom.args)):
                return _no_match_step(literal.atom.relation, _pattern(literal.atom.args, slots, bound))
            return _absent_step(literal.atom.relation, _fact_builder(literal.atom.args, slots))
        left, right = literal.left, literal.right
        if self._free(left, bound):
            left, right = right, left
        if literal.equal and self._free(right, bound):
            return _equal_step(_builder(left, slots), _pattern([right], slots, bound), self.rule)
        return _compare_step(_builder(left, slots), _builder(right, slots), literal.equal)

    def solutions(self, positive: Tables, negative: Tables, budget: Budget) -> Iterator[Bindings]:
        """Yields all bindings that satisfy the body; the list is reused, so read it before the next."""
        env: Bindings = [None] * len(self.slots)
        if not self.steps:
            yield env
            return
        running = [self.steps[0](env, positive, negative)]
        work = 0
        while running:
            work += 1
            if work % _CLOCK_EVERY == 0:  # a join may run for hours without a single result
                budget.check_deadline(self.rule)
            try:
                next(running[-1])
            except StopIteration:
                running.pop()
                continue
            if len(running) == len(self.steps):
                yield env
            else:
                running.append(self.steps[len(running)](env, positive, negative))


def _constructed_terms(rule: terms.Rule) -> Iterator[terms.Term]:
    """Yields terms that a rule may construct: those of its head, and those of its equalities."""
    yield from rule.head.args
    for literal in rule.body:
        if isinstance(literal, terms.Distinct) and literal.equal:
            yield from terms.literal_terms(literal)


def _leaves(args: Sequence[terms.Term]) -> Iterator[terms.Term]:
    for arg in args:
        if isinstance(arg, terms.Compound):
            yield from _leaves(arg.args)
        else:
            yield arg
