"""Finds which symbols the arguments of relations may have, before grounding.

`(<= (p ?x) (q ?x) (r ?x))` lets the argument of `p` have symbols that those of `q` and of `r` both may have. All
arguments start without any, and rules are applied until nothing is added: the result covers every ground rule.
"""

import collections
from collections.abc import Iterable, Iterator

from gdlx.propnet.syntax import terms

_Path = tuple[object, ...]  # relation, number of an argument, then functor and number for each compound around
_Values = frozenset[object] | None  # symbols, and (functor, arity) of compounds; None for anything

_DEEPEST = 9  # length of a path; terms of a sheet that grow have any depth
_SAME = {terms.INIT: terms.TRUE, terms.NEXT: terms.TRUE, terms.LEGAL: terms.DOES}


class ArgumentValues:
    """What may stand at each place of the atoms of a program."""

    def __init__(self, rules: Iterable[terms.Rule]) -> None:
        self._found: dict[_Path, _Values] = {}
        users: dict[terms.Relation, list[terms.Rule]] = collections.defaultdict(list)
        work = collections.deque(dict.fromkeys(rules))
        for rule in work:
            for atom in _positive(rule.body):
                users[_same(atom.relation)].append(rule)
        waiting = set(work)
        while work:
            rule = work.popleft()
            waiting.discard(rule)
            grew = [self._add((_same(rule.head.relation), n), arg, rule) for n, arg in enumerate(rule.head.args)]
            for user in users[_same(rule.head.relation)] if any(grew) else ():
                if user not in waiting:
                    waiting.add(user)
                    work.append(user)

    def symbols(self, term: terms.Term, body: Iterable[terms.Literal]) -> frozenset[str] | None:
        """Returns the symbols that a term of a body may be; None if it may also be something else."""
        if isinstance(term, terms.Symbol):
            return frozenset([term.name])
        if isinstance(term, terms.Compound):
            return None
        values = self._common(_paths_of(term.name, body))
        symbols = frozenset(value for value in values or () if isinstance(value, str))
        return None if values is None or len(symbols) < len(values) else symbols

    def _common(self, paths: Iterable[_Path]) -> _Values:
        common: _Values = None
        for path in paths:
            of_path = self._at(path)
            if of_path is not None:
                common = of_path if common is None else common & of_path
        return common

    def _at(self, path: _Path) -> _Values:
        if any(self._found.get(path[:end], ()) is None for end in range(2, len(path), 2)):
            return None
        return self._found.get(path, frozenset())

    def _add(self, path: _Path, term: terms.Term, rule: terms.Rule) -> bool:
        """Adds what a term of a head may be; returns whether any of that is new."""
        before = self._found.get(path, frozenset())
        if before is None:
            return False
        new: _Values
        grew = False
        if len(path) > _DEEPEST:
            new = None
        elif isinstance(term, terms.Symbol):
            new = frozenset([term.name])
        elif isinstance(term, terms.Compound):
            kind = (term.functor, len(term.args))
            new = frozenset([kind])
            for number, arg in enumerate(term.args):
                grew |= self._add((*path, kind, number), arg, rule)
        else:
            sources = list(_paths_of(term.name, rule.body))
            if path in sources:
                return False
            new = self._common(sources)
            if new is not None and not all(isinstance(value, str) for value in new):
                new = None  # the arguments of its compounds are not followed
        after = None if new is None else before | new
        self._found[path] = after
        return grew or after != before


def _same(relation: terms.Relation) -> terms.Relation:
    """Returns the relation whose atoms include those of another: `true` those of `init` and `next`."""
    return _SAME.get(relation, relation)


def _positive(body: Iterable[terms.Literal]) -> Iterator[terms.Atom]:
    return (literal for literal in body if isinstance(literal, terms.Atom))


def _paths_of(name: str, body: Iterable[terms.Literal]) -> Iterator[_Path]:
    """Yields the places of a variable in the positive literals of a body."""
    for atom in _positive(body):
        for number, arg in enumerate(atom.args):
            yield from _paths_in(arg, name, (_same(atom.relation), number))


def _paths_in(term: terms.Term, name: str, path: _Path) -> Iterator[_Path]:
    if isinstance(term, terms.Variable) and term.name == name:
        yield path
    elif isinstance(term, terms.Compound):
        for number, arg in enumerate(term.args):
            yield from _paths_in(arg, name, (*path, (term.functor, len(term.args)), number))
