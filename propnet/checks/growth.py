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


Edges = dict[Place, dict[Place, tuple[int, terms.Rule | None]]]  # how much deeper a term gets on the way, at most


def _growing_rule(facts: overview.Overview) -> terms.Rule | None:
    """A rule that puts a variable deeper than it found it, on a circle of places that makes terms deeper in all."""
    edges: Edges = {}
    for rule in facts.safe_rules:
        sources: dict[str, list[tuple[Place, int]]] = {}
        for atom, positive in terms.atoms_in(rule.body):
            if positive:
                for name, place, depth in _places(atom):
                    sources.setdefault(name, []).append((place, depth))
        for name, target, depth in _places(rule.head):
            for place, before in sources.get(name, []):
                _add_edge(edges, place, target, depth - before, rule)
    for kind in ("fluent", "move"):
        anything = (kind, "*", 0)
        if anything in edges:
            for place in [place for place in edges if place[0] == kind and place != anything]:
                _add_edge(edges, place, anything, 0, None)
                _add_edge(edges, anything, place, 0, None)
    for group in graphs.components(edges):
        inner = {place: {to: step for to, step in edges[place].items() if to in set(group)} for place in group}
        growing = [rule for steps in inner.values() for weight, rule in steps.values() if weight > 0 and rule]
        if growing and _grows(inner):
            return growing[0]
    return None


def _add_edge(edges: Edges, start: Place, end: Place, weight: int, rule: terms.Rule | None) -> None:
    edges.setdefault(end, {})
    steps = edges.setdefault(start, {})
    if end not in steps or steps[end][0] < weight:
        steps[end] = (weight, rule)


def _grows(edges: Edges) -> bool:
    """Whether some circle has a positive sum: longest paths then never settle (Bellman and Ford)."""
    depth = dict.fromkeys(edges, 0)
    for _ in range(len(edges) + 1):
        changed = False
        for place, steps in edges.items():
            for to, (weight, _) in steps.items():
                if depth[place] + weight > depth[to]:
                    depth[to] = depth[place] + weight
                    changed = True
        if not changed:
            return False
    return True


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
