"""Terms, literals and rules with their positions in the text; `str` gives their KIF text.

Equality ignores positions.
"""

import dataclasses
from collections.abc import Iterable, Iterator

from gdlx.propnet.syntax import source

# The keyword relations of GDL and their arities.
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

TRUE, DOES = ("true", 1), ("does", 2)  # inputs of the rules: the state and the joint action
ROLE, INIT, LEGAL, NEXT = ("role", 1), ("init", 1), ("legal", 2), ("next", 1)
SEES, GOAL, TERMINAL = ("sees", 2), ("goal", 2), ("terminal", 0)
ROOT_RELATIONS = (ROLE, INIT, LEGAL, NEXT, SEES, GOAL, TERMINAL)  # the relations that define a game
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
    """Two terms that differ, or with `equal` two terms that are equal (`not (distinct ..)` in the sheet)."""

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
        return f"(or {' '.join(_disjunct_text(disjunct) for disjunct in self.disjuncts)})"


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


def _disjunct_text(body: Body) -> str:
    return str(body[0]) if len(body) == 1 else f"(and {' '.join(map(str, body))})"


def symbols_in(term: Term) -> Iterator[Symbol]:
    if isinstance(term, Symbol):
        yield term
    elif isinstance(term, Compound):
        for arg in term.args:
            yield from symbols_in(arg)


def variables_in(terms: Iterable[Term]) -> Iterator[Variable]:
    """Yields every occurrence of a variable, left to right."""
    for term in terms:
        if isinstance(term, Variable):
            yield term
        elif isinstance(term, Compound):
            yield from variables_in(term.args)


def literals_in(body: Body) -> Iterator[Atom | Not | Distinct]:
    """Yields every literal of a body, including those inside `or`."""
    for literal in body:
        if isinstance(literal, Or):
            for disjunct in literal.disjuncts:
                yield from literals_in(disjunct)
        else:
            yield literal


def atoms_in(body: Body) -> Iterator[tuple[Atom, bool]]:
    """Yields every atom of a body with its sign (True: positive)."""
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
