"""Splits rules with many joined variables into rules with few, through auxiliary relations.

The cost of grounding a rule is the number of instances of all its variables. Eliminating a variable replaces the
literals that contain it by one auxiliary literal over their other variables; done in order of increasing cost, this is
a tree decomposition of the rule's join graph. `p(x,z) <- a(x,y), b(y,z), c(u)` becomes `p(x,z) <- a(x,y), b(y,z), t`
and `t <- c(u)`.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

from gdlx.propnet.syntax import terms

# Symbols of a sheet have no spaces, so the names are unused.
_PART = "part"
DOMAIN = "domain of "  # relations that only state the range of a variable; true wherever they are used


@dataclasses.dataclass(frozen=True)
class _Literal:
    literal: terms.Atom | terms.Not | terms.Distinct
    names: frozenset[str]

    @property
    def binds(self) -> bool:
        return isinstance(self.literal, terms.Atom)


def split_rules(rules: Iterable[terms.Rule], fresh: Iterator[int] | None = None) -> tuple[terms.Rule, ...]:
    """Returns equivalent rules, each over as few variables as elimination achieves; `fresh` numbers new relations."""
    fresh = itertools.count() if fresh is None else fresh
    return tuple(part for rule in rules for part in _split(rule, fresh))


def _split(rule: terms.Rule, fresh: Iterator[int]) -> list[terms.Rule]:
    if any(isinstance(literal, terms.Distinct) and literal.equal for literal in rule.body):
        return [rule]  # an equality binds in a direction that elimination might break
    join = _Join(rule)
    prefix = DOMAIN if rule.head.name.startswith(DOMAIN) else ""  # parts of a domain are domains
    new_rules: list[terms.Rule] = []
    while (name := join.cheapest()) is not None:
        bucket = join.literals_of(name)
        label = f"{prefix}{_PART} {next(fresh)}"
        domains = _domains(bucket, join, rule, fresh)
        join.remove(bucket)
        inside = frozenset().union(*(part.names for part in bucket))
        head = _atom(label, filter(join.mentions, inside), rule)
        join.add(head)
        body = (*(part.literal for part in bucket), *(atom for _, atom in domains))
        new_rules += [*(domain for domain, _ in domains), terms.Rule(head, body, False, rule.span)]
    return [*new_rules, dataclasses.replace(rule, body=tuple(part.literal for part in join.body))]


class _Join:
    """The body of a rule during elimination, with the cost of eliminating each variable."""

    def __init__(self, rule: terms.Rule) -> None:
        self._head_names = {v.name for v in terms.variables_in(rule.head.args)}
        self._body: dict[_Literal, None] = {}  # an ordered set, like the next
        self._users: dict[str, dict[_Literal, None]] = {}
        self._cost: dict[str, tuple[int, int, str]] = {}  # variables of its literals, literals, name
        for literal in rule.body:
            self._insert(_wrap(literal))
        self._price(self._users)

    @property
    def body(self) -> Iterable[_Literal]:
        return self._body

    def mentions(self, name: str) -> bool:
        return name in self._head_names or name in self._users

    def literals_of(self, name: str) -> list[_Literal]:
        return list(self._users[name])

    def cheapest(self) -> str | None:
        """Returns the cheapest variable to eliminate, if that gives two rules smaller than this one."""
        variables = len(self._head_names | self._users.keys())
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
            if name not in self._head_names:
                bucket = self._users[name]
                self._cost[name] = (len(frozenset().union(*(part.names for part in bucket))), len(bucket), name)


def _wrap(literal: terms.Literal) -> _Literal:
    assert not isinstance(literal, terms.Or)
    return _Literal(literal, frozenset(v.name for v in terms.variables_in(terms.literal_terms(literal))))


def _domains(
    bucket: Sequence[_Literal], join: _Join, rule: terms.Rule, fresh: Iterator[int]
) -> list[tuple[terms.Rule, terms.Atom]]:
    """Returns domains for the variables that only negative literals of a bucket contain, from the entire body.

    A literal with several of them is preferred: it is more restrictive than one for each.
    """
    inside = frozenset().union(*(part.names for part in bucket))
    missing = inside - frozenset().union(*(part.names for part in bucket if part.binds))
    domains = []
    while missing:
        sources = {part: None for name in sorted(missing) for part in join.literals_of(name) if part.binds}
        source = min(sources, key=lambda part: (-len(part.names & missing), len(part.names)))
        head = _atom(f"{DOMAIN}{next(fresh)}", source.names & inside, rule)
        domains.append((terms.Rule(head, (source.literal,), False, rule.span), head))
        missing -= source.names
    return domains


def _atom(name: str, variables: Iterable[str], rule: terms.Rule) -> terms.Atom:
    return terms.Atom(name, tuple(terms.Variable(v, rule.span) for v in sorted(variables)), rule.span)
