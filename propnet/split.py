"""Rules with many joined variables -> several rules with few, through auxiliary relations.

Grounding costs the number of instances of a rule's variables taken together. Eliminating a variable replaces the
literals that speak of it by one auxiliary literal over their other variables; done in order of growing cost, this is
a tree decomposition of the rule's join graph. `p(x,z) <- a(x,y), b(y,z), c(u)` becomes `p(x,z) <- a(x,y), b(y,z), t`
and `t <- c(u)`.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

from gdlx.propnet import terms

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


def split(rules: Iterable[terms.Rule]) -> tuple[terms.Rule, ...]:
    """Rules that conclude the same, each over as few variables as elimination gets."""
    fresh = itertools.count()
    return tuple(part for rule in rules for part in _split(rule, fresh))


def _split(rule: terms.Rule, fresh: Iterator[int]) -> list[terms.Rule]:
    if any(isinstance(literal, terms.Distinct) and literal.equal for literal in rule.body):
        return [rule]  # an equality binds in a direction that elimination might break
    kept = {v.name for v in terms.variables_in(rule.head.args)}
    body = [_wrap(literal) for literal in rule.body]
    made: list[terms.Rule] = []
    while True:
        everything = frozenset(kept).union(*(part.names for part in body))
        bucket = _cheapest_bucket(body, everything, everything - kept)
        if bucket is None:
            break
        rest = [part for part in body if part not in bucket]
        outside = frozenset(kept).union(*(part.names for part in rest))
        inside = frozenset().union(*(part.names for part in bucket))
        head = _atom(f"{_PART} {next(fresh)}", inside & outside, rule)
        domains = _domains(bucket, body, rule, fresh)
        made += [domain for domain, _ in domains]
        literals = (*(part.literal for part in bucket), *(atom for _, atom in domains))
        made.append(terms.Rule(head, literals, False, rule.span))
        body = [*rest, _wrap(head)]
    return [*made, dataclasses.replace(rule, body=tuple(part.literal for part in body))]


def _wrap(literal: terms.Literal) -> _Literal:
    assert not isinstance(literal, terms.Or)
    return _Literal(literal, frozenset(v.name for v in terms.variables_in(terms.terms_of(literal))))


def _cheapest_bucket(body: list[_Literal], everything: frozenset[str], free: frozenset[str]) -> list[_Literal] | None:
    """The literals of the variable that is cheapest to eliminate, if that leaves two rules smaller than this one."""
    best: tuple[int, int, str] | None = None
    chosen = None
    for name in free:
        bucket = [part for part in body if name in part.names]
        cost = len(frozenset().union(*(part.names for part in bucket)))
        useful = cost < len(everything) and len(bucket) < len(body)
        if useful and (best is None or (cost, len(bucket), name) < best):
            best, chosen = (cost, len(bucket), name), bucket
    return chosen


def _domains(
    bucket: Sequence[_Literal], body: Sequence[_Literal], rule: terms.Rule, fresh: Iterator[int]
) -> list[tuple[terms.Rule, terms.Atom]]:
    """A domain for every variable that only negative literals of a bucket speak of, taken from the whole body."""
    bound = frozenset().union(*(part.names for part in bucket if part.binds))
    found = []
    for name in sorted(frozenset().union(*(part.names for part in bucket)) - bound):
        source = min((part for part in body if part.binds and name in part.names), key=lambda part: len(part.names))
        head = _atom(f"{DOMAIN}{next(fresh)}", [name], rule)
        found.append((terms.Rule(head, (source.literal,), False, rule.span), head))
    return found


def _atom(name: str, variables: Iterable[str], rule: terms.Rule) -> terms.Atom:
    return terms.Atom(name, tuple(terms.Variable(v, rule.span) for v in sorted(variables)), rule.span)
