"""Checks for terms that grow from step to step, `(next (count (s ?n)))`: such a game has no finite propnet."""

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import NamedTuple

from gdlx.propnet.checks import overview
from gdlx.propnet.common import graphs
from gdlx.propnet.datalog import joins
from gdlx.propnet.syntax import kif, terms

# The position of a term: relation, fluent or move, its name, the argument. `*` is a bare variable: any of them.
Place = tuple[str, str, int]
_KIND = {"init": "fluent", "next": "fluent", "true": "fluent", "legal": "move", "does": "move"}


def check(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    """Finds suspect rules in the text, then decides by evaluating all facts that could ever hold."""
    suspect = _growing_rule(facts)
    if suspect is None:
        return
    if not isinstance(facts.relaxed_model, joins.LimitError):
        return
    hint = "bound the term, e.g. count with (succ 1 2) facts instead of (s ?n)"
    if facts.relaxed_model.term_too_large:
        rule = facts.relaxed_model.rule
        log.add("unbounded-term", "the terms this rule makes grow without bound", rule.span, hint)
    else:
        log.add("growing-term", "the terms this rule makes may grow without bound", suspect.span, hint)


Edges = dict[Place, dict[Place, int]]  # how much deeper a term gets along the edge, at most
Depths = dict[Place, tuple[int, int]]  # of a variable: its least and greatest depth at a position
_MAX_STEPS = 1_000_000


class _Use(NamedTuple):
    """A variable of a rule: its depths at the positions where the body binds it and where the head has it."""

    rule: terms.Rule
    sources: Depths
    targets: Depths


def _growing_rule(facts: overview.SheetAnalysis) -> terms.Rule | None:
    """Returns a rule that nests a variable deeper, on a cycle of positions along which terms grow."""
    edges: Edges = {}
    uses: list[_Use] = []
    for number, rule in enumerate(facts.safe_rules):
        if any(isinstance(literal, terms.Distinct) and _builds(literal) for literal in rule.body):
            return rule  # terms built by an equality are not tracked
        uses += _add_rule(edges, rule, number)
    for kind in ("fluent", "move"):
        _connect_bare_variables(edges, kind)
    group_of = {
        place: number for number, group in enumerate(graphs.strongly_connected_components(edges)) for place in group
    }
    growing = {number for number, group in _within_groups(edges, group_of).items() if _grows(group)}
    return next((use.rule for use in uses if _is_deeper(use, group_of, growing)), None)


def _add_rule(edges: Edges, rule: terms.Rule, number: int) -> list[_Use]:
    """Adds the edges of a rule; returns the variables of its head."""
    uses = []
    bound = _depth_by_place(atom for atom, positive in terms.atoms_in(rule.body) if positive)
    for name, targets in _depth_by_place([rule.head]).items():
        # The variable is a node: edges from every position to every other would be too many.
        variable = ("variable", name, number)
        sources = bound.get(name, {})
        for place, (least, _) in sources.items():
            _add_edge(edges, place, variable, -least)
        for place, (_, most) in targets.items():
            _add_edge(edges, variable, place, most)
        uses.append(_Use(rule, sources, targets))
    return uses


def _connect_bare_variables(edges: Edges, kind: str) -> None:
    """Connects bare variables, which match every fluent or every move."""
    anything = (kind, "*", 0)
    if anything not in edges:
        return
    for place in [place for place in edges if place[0] == kind and place != anything]:
        _add_edge(edges, place, anything, 0)
        _add_edge(edges, anything, place, 0)


def _within_groups(edges: Edges, group_of: Mapping[Place, int]) -> dict[int, Edges]:
    """Returns the edges within each component."""
    inner: dict[int, Edges] = {}
    for place, steps in edges.items():
        group = group_of[place]
        inner.setdefault(group, {})[place] = {to: more for to, more in steps.items() if group_of[to] == group}
    return inner


def _is_deeper(use: _Use, group_of: Mapping[Place, int], growing: Set[int]) -> bool:
    """Whether the variable is deeper in the head than in the body, within one of the growing components."""
    shallowest: dict[int, int] = {}
    for place, (least, _) in use.sources.items():
        shallowest[group_of[place]] = min(least, shallowest.get(group_of[place], least))
    return any(
        group_of[place] in growing and most > shallowest.get(group_of[place], most)
        for place, (_, most) in use.targets.items()
    )


def _builds(literal: terms.Distinct) -> bool:
    """Whether an equality may build a term: (not (distinct ?y (s ?x)))."""
    sides = (literal.left, literal.right)
    return literal.equal and any(isinstance(side, terms.Compound) and any(terms.variables_in([side])) for side in sides)


def _depth_by_place(atoms: Iterable[terms.Atom]) -> dict[str, Depths]:
    """Returns the positions of every variable, with its least and greatest depth there."""
    depths_of: dict[str, Depths] = {}
    for atom in atoms:
        for name, place, depth in _places(atom):
            least, most = depths_of.setdefault(name, {}).get(place, (depth, depth))
            depths_of[name][place] = (min(least, depth), max(most, depth))
    return depths_of


def _add_edge(edges: Edges, start: Place, end: Place, deeper: int) -> None:
    edges.setdefault(end, {})
    steps = edges.setdefault(start, {})
    steps[end] = max(deeper, steps.get(end, deeper))


def _grows(edges: Edges) -> bool:
    """Whether some cycle has a positive sum: then longest paths do not converge (Bellman and Ford)."""
    depth = dict.fromkeys(edges, 0)
    size = sum(map(len, edges.values()))
    for done in range(len(edges) + 1):
        changed = False
        for place, steps in edges.items():
            for to, deeper in steps.items():
                if depth[place] + deeper > depth[to]:
                    depth[to] = depth[place] + deeper
                    changed = True
        if not changed:
            return False
        if done * size > _MAX_STEPS:
            break  # a suspicion is enough; evaluation decides
    return True


def _places(atom: terms.Atom) -> Iterator[tuple[str, Place, int]]:
    """Yields the variables of an atom: name, position, and depth below it."""
    kind = _KIND.get(atom.name)
    if kind is None:
        for number, arg in enumerate(atom.args):
            yield from ((name, ("relation", atom.name, number), depth) for name, depth in _depths(arg, 0))
        return
    inner = atom.args[-1]
    if isinstance(inner, terms.Variable):
        yield inner.name, (kind, "*", 0), -1  # an entire fluent: nesting it inside another one makes it deeper
    elif isinstance(inner, terms.Compound):
        for number, arg in enumerate(inner.args):
            yield from ((name, (kind, inner.functor, number), depth) for name, depth in _depths(arg, 0))


def _depths(term: terms.Term, depth: int) -> Iterator[tuple[str, int]]:
    if isinstance(term, terms.Variable):
        yield term.name, depth
    elif isinstance(term, terms.Compound):
        for arg in term.args:
            yield from _depths(arg, depth + 1)
