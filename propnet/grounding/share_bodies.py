"""Merges rules of one relation that differ only in part into one rule, with an auxiliary relation for the part.

`p(x,z) <- a(x,y), c(y,z)` and `p(x,z) <- b(x,y), c(y,z)` become `p(x,z) <- e(x,y), c(y,z)` with `e(x,y) <- a(x,y)` and
`e(x,y) <- b(x,y)`: the rest is joined once. Published sheets have such rules, and expanding `or` creates them.
"""

import dataclasses
import functools
from collections.abc import Iterable, Iterator

from gdlx.propnet.syntax import terms

_NAME = "either"  # with a space and a number: symbols of a sheet have no spaces, so the names are unused
_MOST_RULES = 64  # of one head: the search takes quadratic time
_LONGEST_BODY = 32
_LEAST_VARIABLES = 6  # rules with fewer have few instances, and simplification shares their parts

_Names = frozenset[str]


def merge_shared_bodies(rules: Iterable[terms.Rule], fresh: Iterator[int]) -> tuple[terms.Rule, ...]:
    """Returns equivalent rules; `fresh` numbers the auxiliary relations."""
    groups: dict[terms.Atom, list[terms.Rule]] = {}
    for rule in rules:
        groups.setdefault(rule.head, []).append(rule)
    merged_rules: list[terms.Rule] = []
    name_of: dict[frozenset[terms.Body], str] = {}  # several relations may share the same part
    work = list(reversed(groups.values()))
    while work:
        group = work.pop()
        while 1 < len(group) <= _MOST_RULES and (shared := _largest_shared(group)):
            is_new = frozenset(shared.inside) not in name_of
            name = name_of.setdefault(frozenset(shared.inside), f"{_NAME} {next(fresh)}")
            first = shared.rules[0]
            inner = terms.Atom(name, tuple(terms.Variable(v, first.span) for v in sorted(shared.names)), first.span)
            if is_new:
                work.append([terms.Rule(inner, body, False, rule.span) for body, rule in shared.inside.items()])
            merged = dataclasses.replace(first, body=(inner, *shared.outside))
            group = [merged, *(rule for rule in group if rule not in shared.rules)]
        merged_rules += group
    return tuple(merged_rules)


@dataclasses.dataclass(frozen=True)
class _Shared:
    """Rules that differ only in the literals over some variables."""

    names: _Names
    rules: list[terms.Rule]

    @functools.cached_property
    def outside(self) -> terms.Body:
        """The common literals; includes those over the inner variables, unless they are needed to bind them."""
        first, *others = (_inside(rule, self.names) for rule in self.rules)
        common = [part for part in first if all(part in other for other in others)]
        if not all(
            _binds([part for part in _inside(rule, self.names) if part not in common], self.names)
            for rule in self.rules
        ):
            common = []
        return tuple(part for part in self.rules[0].body if part in common or part not in first)

    @property
    def inside(self) -> dict[terms.Body, terms.Rule]:
        return {tuple(part for part in rule.body if part not in self.outside): rule for rule in self.rules}


def _largest_shared(group: list[terms.Rule]) -> _Shared | None:
    """Selects the most rules, then the fewest variables, then the first in the order of the sheet."""
    short = [rule for rule in group if 1 < len(rule.body) <= _LONGEST_BODY and _width(rule) >= _LEAST_VARIABLES]
    candidates = dict.fromkeys(_names(part) for rule in short for part in rule.body if isinstance(part, terms.Atom))
    best: _Shared | None = None
    for names in filter(None, candidates):
        alike: dict[frozenset[terms.Literal], list[terms.Rule]] = {}
        for rule in short:
            inside = _inside(rule, names)
            if len(inside) < len(rule.body) and _binds(inside, names):
                alike.setdefault(frozenset(rule.body) - frozenset(inside), []).append(rule)
        for rules in alike.values():
            if len(rules) > 1 and (best is None or (len(rules), -len(names)) > (len(best.rules), -len(best.names))):
                best = _Shared(names, rules)
    return best


def _inside(rule: terms.Rule, names: _Names) -> terms.Body:
    """Returns the literals that have no other variables than these."""
    return tuple(literal for literal in rule.body if _names(literal) <= names)


def _binds(body: Iterable[terms.Literal], names: _Names) -> bool:
    return names == frozenset().union(*(_names(part) for part in body if isinstance(part, terms.Atom)))


def _width(rule: terms.Rule) -> int:
    return len({variable.name for variable in terms.variables_in(terms.rule_terms(rule))})


def _names(literal: terms.Literal) -> _Names:
    assert not isinstance(literal, terms.Or)
    return frozenset(v.name for v in terms.variables_in(terms.literal_terms(literal)))
