"""Terms that grow from step to step, `(next (count (s ?n)))`: a game that has them has no finite network."""

from collections.abc import Iterator

from gdlx.propnet import datalog, graphs, nodes, terms
from gdlx.propnet.checks import overview

# Where a term stands: relation, fluent or move, its name, the argument. `*` is a bare variable, any of them.
Place = tuple[str, str, int]
_KIND = {"init": "fluent", "next": "fluent", "true": "fluent", "legal": "move", "does": "move"}


def check(facts: overview.Overview, log: nodes.Log) -> None:
    """Suspect rules are found on the text; evaluation of everything that could hold then decides."""
    suspect = _growing_rule(facts)
    if suspect is None:
        return
    if not isinstance(facts.relaxed, datalog.LimitError):
        return
    hint = "bound the term, e.g. count with (succ 1 2) facts instead of (s ?n)"
    if facts.relaxed.deep:
        rule = facts.relaxed.rule
        log.add("unbounded-term", "the terms this rule makes grow without bound", rule.span, hint)
    else:
        log.add("growing-term", "the terms this rule makes may grow without bound", suspect.span, hint)


def _growing_rule(facts: overview.Overview) -> terms.Rule | None:
    """A rule that puts a variable deeper than it found it, on a circle of places."""
    edges: dict[Place, set[Place]] = {}
    uses = []
    for number, rule in enumerate(facts.safe_rules):
        if any(isinstance(literal, terms.Distinct) and _builds(literal) for literal in rule.body):
            return rule
        found: dict[str, list[tuple[Place, int]]] = {}
        for atom, positive in terms.atoms_in(rule.body):
            if positive:
                for name, place, depth in _places(atom):
                    found.setdefault(name, []).append((place, depth))
        put: dict[str, list[tuple[Place, int]]] = {}
        for name, place, depth in _places(rule.head):
            put.setdefault(name, []).append((place, depth))
        for name, targets in put.items():
            # The variable is a node of its own between where it is found and where it is put.
            variable = ("variable", name, number)
            edges.setdefault(variable, set()).update(place for place, _ in targets)
            for place, _ in [*found.get(name, ()), *targets]:
                edges.setdefault(place, set())
            for place, _ in found.get(name, ()):
                edges[place].add(variable)
            uses.append((rule, found.get(name, []), targets))
    for kind in ("fluent", "move"):
        anything = (kind, "*", 0)
        if anything in edges:
            for place in list(edges):
                if place[0] == kind:
                    edges[place].add(anything)
                    edges[anything].add(place)
    member = {place: number for number, group in enumerate(graphs.components(edges)) for place in group}
    for rule, sources, targets in uses:
        before: dict[int, int] = {}
        for place, depth in sources:
            before[member[place]] = min(depth, before.get(member[place], depth))
        if any(depth > before.get(member[place], depth) for place, depth in targets):
            return rule
    return None


def _builds(literal: terms.Distinct) -> bool:
    """Whether an equality may make a term: (not (distinct ?y (s ?x)))."""
    sides = (literal.left, literal.right)
    return literal.equal and any(isinstance(side, terms.Compound) and any(terms.variables_in([side])) for side in sides)


def _places(atom: terms.Atom) -> Iterator[tuple[str, Place, int]]:
    """Variables of an atom: name, place, and how deep below it."""
    kind = _KIND.get(atom.name)
    if kind is None:
        for number, arg in enumerate(atom.args):
            yield from ((name, ("relation", atom.name, number), depth) for name, depth in _depths(arg, 0))
        return
    inner = atom.args[-1]
    if isinstance(inner, terms.Variable):
        yield inner.name, (kind, "*", 0), -1  # a whole fluent: putting it inside another one makes it deeper
    elif isinstance(inner, terms.Compound):
        for number, arg in enumerate(inner.args):
            yield from ((name, (kind, inner.functor, number), depth) for name, depth in _depths(arg, 0))


def _depths(term: terms.Term, depth: int) -> Iterator[tuple[str, int]]:
    if isinstance(term, terms.Variable):
        yield term.name, depth
    elif isinstance(term, terms.Compound):
        for arg in term.args:
            yield from _depths(arg, depth + 1)
