"""Terms, literals and rules, each with its place in the text, and how they print.

Two objects are equal when they mean the same: places do not count.
"""

import dataclasses
from collections.abc import Iterable, Iterator

from gdlx.propnet.syntax import source

# Relations with a meaning of their own, with the number of arguments each takes.
KEYWORD_ARITY = {
    "role": 1,
    "init": 1,
    "true": 1,
    "does": 2,
    "legal": 2,
    "next": 1,
    "sees": 2,
    "goal": 2,
    "terminal": 0,
    "base": 1,
    "input": 2,
}
CONNECTIVES = frozenset({"<=", "not", "or", "and", "distinct"})
RANDOM = "random"

Relation = tuple[str, int]  # name and number of arguments; two arities are two relations

TRUE, DOES = ("true", 1), ("does", 2)  # given: the state and the joint move
ROLE, INIT, LEGAL, NEXT = ("role", 1), ("init", 1), ("legal", 2), ("next", 1)
SEES, GOAL, TERMINAL = ("sees", 2), ("goal", 2), ("terminal", 0)
ROOT_RELATIONS = (ROLE, INIT, LEGAL, NEXT, SEES, GOAL, TERMINAL)  # what a game is made of
STATE_ONLY_RELATIONS = (LEGAL, GOAL, TERMINAL)


@dataclasses.dataclass(frozen=True, slots=True)
class Symbol:
    name: str
    span: source.Span = dataclasses.field(compare=False, repr=False)

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True, slots=True)
class Variable:
    name: str  # without the question mark
    span: source.Span = dataclasses.field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclasses.dataclass(frozen=True, slots=True)
class Compound:
    functor: str
    args: tuple["Term", ...]
    span: source.Span = dataclasses.field(compare=False, repr=False)

    def __str__(self) -> str:
        return f"({self.functor} {' '.join(map(str, self.args))})"


Term = Symbol | Variable | Compound


@dataclasses.dataclass(frozen=True, slots=True)
class Atom:
    name: str
    args: tuple[Term, ...]
    span: source.Span = dataclasses.field(compare=False, repr=False)

    @property
    def relation(self) -> Relation:
        return self.name, len(self.args)

    def __str__(self) -> str:
        return f"({self.name} {' '.join(map(str, self.args))})" if self.args else self.name


@dataclasses.dataclass(frozen=True, slots=True)
class Not:
    atom: Atom

    def __str__(self) -> str:
        return f"(not {self.atom})"


@dataclasses.dataclass(frozen=True, slots=True)
class Distinct:
    """Two terms that differ; `equal` turns it round (the sheet says not distinct)."""

    left: Term
    right: Term
    equal: bool
    span: source.Span = dataclasses.field(compare=False, repr=False)

    def __str__(self) -> str:
        plain = f"(distinct {self.left} {self.right})"
        return f"(not {plain})" if self.equal else plain


@dataclasses.dataclass(frozen=True, slots=True)
class Or:
    disjuncts: tuple["Body", ...]

    def __str__(self) -> str:
        return f"(or {' '.join(_option(option) for option in self.disjuncts)})"


Literal = Atom | Not | Distinct | Or
Body = tuple[Literal, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    head: Atom
    body: Body
    is_fact: bool  # written without `<=`
    span: source.Span = dataclasses.field(compare=False, repr=False)

    def __str__(self) -> str:
        if self.is_fact:
            return str(self.head)
        return "\n    ".join([f"(<= {self.head}", *map(str, self.body)]) + ")"


def _option(body: Body) -> str:
    return str(body[0]) if len(body) == 1 else f"(and {' '.join(map(str, body))})"


def symbols_in(term: Term) -> Iterator[Symbol]:
    if isinstance(term, Symbol):
        yield term
    elif isinstance(term, Compound):
        for arg in term.args:
            yield from symbols_in(arg)


def variables_in(terms: Iterable[Term]) -> Iterator[Variable]:
    """Every occurrence, left to right."""
    for term in terms:
        if isinstance(term, Variable):
            yield term
        elif isinstance(term, Compound):
            yield from variables_in(term.args)


def literals_in(body: Body) -> Iterator[Atom | Not | Distinct]:
    """Every literal of a body, those inside `or` included."""
    for literal in body:
        if isinstance(literal, Or):
            for option in literal.disjuncts:
                yield from literals_in(option)
        else:
            yield literal


def atoms_in(body: Body) -> Iterator[tuple[Atom, bool]]:
    """Every atom of a body with its sign (True: positive)."""
    for literal in literals_in(body):
        if isinstance(literal, Atom):
            yield literal, True
        elif isinstance(literal, Not):
            yield literal.atom, False


def literal_terms(literal: Atom | Not | Distinct) -> tuple[Term, ...]:
    if isinstance(literal, Distinct):
        return literal.left, literal.right
    return literal.atom.args if isinstance(literal, Not) else literal.args


def rule_terms(rule: Rule) -> Iterator[Term]:
    yield from rule.head.args
    for literal in literals_in(rule.body):
        yield from literal_terms(literal)
