"""Rules with many joined variables -> several rules with few, through auxiliary relations.

Grounding costs the number of instances of a rule's variables taken together. Eliminating a variable replaces the
literals that speak of it by one auxiliary literal over their other variables; done in order of growing cost, this is
a tree decomposition of the rule's join graph. `p(x,z) <- a(x,y), b(y,z), c(u)` becomes `p(x,z) <- a(x,y), b(y,z), t`
and `t <- c(u)`.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

from gdlx.propnet.syntax import terms

# Blanks cannot be part of a symbol in a sheet, so the names are free.
_PART = "part"
DOMAIN = "domain of "  # relations that only say where a variable may range; true wherever they are used


@dataclasses.dataclass(frozen=True)
class _Literal:
    literal: terms.Atom | terms.Not | terms.Distinct
    names: frozenset[str]

    @property
    def binds(self) -> bool:
        return isinstance(self.literal, terms.Atom)


def split_rules(rules: Iterable[terms.Rule]) -> tuple[terms.Rule, ...]:
    """Rules that conclude the same, each over as few variables as elimination gets."""
    fresh = itertools.count()
    return tuple(part for rule in rules for part in _split(rule, fresh))


def _split(rule: terms.Rule, fresh: Iterator[int]) -> list[terms.Rule]:
    if any(isinstance(literal, terms.Distinct) and literal.equal for literal in rule.body):
        return [rule]  # an equality binds in a direction that elimination might break
    join = _Join(rule)
    made: list[terms.Rule] = []
    while (name := join.cheapest()) is not None:
        bucket = join.literals_of(name)
        label = f"{_PART} {next(fresh)}"
        domains = _domains(bucket, join, rule, fresh)
        join.remove(bucket)
        inside = frozenset().union(*(part.names for part in bucket))
        head = _atom(label, filter(join.mentions, inside), rule)
        join.add(head)
        body = (*(part.literal for part in bucket), *(atom for _, atom in domains))
        made += [*(domain for domain, _ in domains), terms.Rule(head, body, False, rule.span)]
    return [*made, dataclasses.replace(rule, body=tuple(part.literal for part in join.body))]


class _Join:
    """The body of a rule while variables are eliminated from it; knows what each of them costs."""

    def __init__(self, rule: terms.Rule) -> None:
        self._kept = {v.name for v in terms.variables_in(rule.head.args)}
        self._body: dict[_Literal, None] = {}  # a set that keeps its order, as the next
        self._users: dict[str, dict[_Literal, None]] = {}
        self._cost: dict[str, tuple[int, int, str]] = {}  # variables of its literals, literals, name
        for literal in rule.body:
            self._insert(_wrap(literal))
        self._price(self._users)

    @property
    def body(self) -> Iterable[_Literal]:
        return self._body

    def mentions(self, name: str) -> bool:
        return name in self._kept or name in self._users

    def literals_of(self, name: str) -> list[_Literal]:
        return list(self._users[name])

    def cheapest(self) -> str | None:
        """The variable that is cheapest to eliminate, if that leaves two rules smaller than this one."""
        variables = len(self._kept | self._users.keys())
        useful = (cost for cost in self._cost.values() if cost[0] < variables and cost[1] < len(self._body))
        return min(useful, default=(0, 0, None))[2]

    def remove(self, bucket: Iterable[_Literal]) -> None:
        for part in bucket:
            del self._body[part]
            for name in part.names:
                del self._users[name][part]
                if not self._users[name]:
                    del self._users[name]
                    self._cost.pop(name, None)

    def add(self, literal: terms.Atom) -> None:
        part = _wrap(literal)
        self._insert(part)
        self._price(part.names)

    def _insert(self, part: _Literal) -> None:
        self._body[part] = None
        for name in part.names:
            self._users.setdefault(name, {})[part] = None

    def _price(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._kept:
                bucket = self._users[name]
                self._cost[name] = (len(frozenset().union(*(part.names for part in bucket))), len(bucket), name)


def _wrap(literal: terms.Literal) -> _Literal:
    assert not isinstance(literal, terms.Or)
    return _Literal(literal, frozenset(v.name for v in terms.variables_in(terms.literal_terms(literal))))


def _domains(
    bucket: Sequence[_Literal], join: _Join, rule: terms.Rule, fresh: Iterator[int]
) -> list[tuple[terms.Rule, terms.Atom]]:
    """Domains for the variables that only negative literals of a bucket speak of, taken from the whole body.

    A literal that speaks of several of them says more than one for each.
    """
    inside = frozenset().union(*(part.names for part in bucket))
    missing = inside - frozenset().union(*(part.names for part in bucket if part.binds))
    found = []
    while missing:
        sources = {part: None for name in sorted(missing) for part in join.literals_of(name) if part.binds}
        source = min(sources, key=lambda part: (-len(part.names & missing), len(part.names)))
        head = _atom(f"{DOMAIN}{next(fresh)}", source.names & inside, rule)
        found.append((terms.Rule(head, (source.literal,), False, rule.span), head))
        missing -= source.names
    return found


def _atom(name: str, variables: Iterable[str], rule: terms.Rule) -> terms.Atom:
    return terms.Atom(name, tuple(terms.Variable(v, rule.span) for v in sorted(variables)), rule.span)
