"""What may depend on what: no circle through negation, nothing that looks into a future it decides."""

from collections.abc import Iterable

from gdlx.propnet.checks import overview
from gdlx.propnet.common import graphs
from gdlx.propnet.datalog import joins
from gdlx.propnet.syntax import diagnostics, ground_terms, kif, terms

GroundAtom = tuple[terms.Relation, ground_terms.Fact]
_DOES = ("does", 2)
_SHOWN = 6
_TRIED = 50  # ground atoms looked at to find all rules that are wrong
_STATE_ONLY_RELATIONS: tuple[terms.Relation, ...] = (("legal", 2), ("goal", 2), ("terminal", 0))


def check(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    _check_static(facts, log)
    _check_does(facts, log)
    _check_negation(facts, log)
    _check_recursion(facts, log)


def _check_static(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    for root in (("role", 1), ("init", 1)):
        chain = graphs.shortest_path(facts.edges, root, set(overview.INPUT_RELATIONS))
        if chain:
            message = f"`{root[0]}` depends on the state: {_chain(chain)}"
            span = facts.rules_by_head[root][0].span
            log.add(
                "static-depends-on-state",
                message,
                span,
                "roles and the first state are fixed before any state",
            )


def _check_does(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    """legal, goal and terminal are judged before a move; an error only where ground rules lead to `does`."""
    judged = graphs.reachable(facts.edges, _STATE_ONLY_RELATIONS)
    relations: set[terms.Relation] = graphs.reachable(facts.users, [_DOES])
    relations &= judged
    judges = [judge for judge in _STATE_ONLY_RELATIONS if judge in relations]
    if not judges:
        return
    edges = _ground_edges(facts, relations - {_DOES})
    users: dict[GroundAtom, list[GroundAtom]] = {}
    for head, body in (edges or {}).items():
        for atom in body:
            users.setdefault(atom, []).append(head)
    moves = {atom for atom in users if atom[0] == _DOES}
    too_late = graphs.reachable(users, moves)
    ordered = {head: sorted(body, key=str) for head, body in (edges or {}).items()}  # the same words in every run
    for judge in judges:
        span = facts.rules_by_head[judge][0].span
        if edges is None:
            message = f"`{judge[0]}` may depend on `does`: {_chain(graphs.shortest_path(facts.edges, judge, {_DOES}))}"
            log.add("undecided", message, span, "the game is too big to decide this here; compiling it will tell")
            continue
        blamed = sorted((atom for atom in edges if atom[0] == judge and atom in too_late), key=str)
        told = set()
        for atom in blamed[:_TRIED]:
            path = graphs.shortest_path(ordered, atom, moves)
            rule = _find_deriving_rule(facts, atom, path[1])
            if rule.span not in told:
                told.add(rule.span)
                steps = " <- ".join(diagnostics.shorten(ground_terms.atom_text(r[0], f)) for r, f in path[:_SHOWN])
                message = f"`{judge[0]}` depends on the move being made: {steps}"
                log.add("depends-on-does", message, rule.span, "use (true ..) of a fluent that a `next` rule sets")
            if len(told) == len(facts.rules_by_head[judge]):
                break


def _find_deriving_rule(facts: overview.SheetAnalysis, head: GroundAtom, used: GroundAtom) -> terms.Rule:
    """The rule whose instance concludes one ground atom from another."""
    for rule in facts.rules_by_head[head[0]]:
        uses = any(atom.relation == used[0] for atom, _ in terms.atoms_in(rule.body))
        fits = all(map(_fits, rule.head.args, head[1]))
        if uses and fits:
            return rule
    return facts.rules_by_head[head[0]][0]


def _fits(term: terms.Term, value: ground_terms.GroundTerm) -> bool:
    """Whether a term could be a value, variables being anything."""
    if isinstance(term, terms.Variable):
        return True
    if isinstance(term, terms.Symbol) or isinstance(value, str):
        return isinstance(term, terms.Symbol) and term.name == value
    return (term.functor, len(term.args) + 1) == (value[0], len(value)) and all(map(_fits, term.args, value[1:]))


def _check_negation(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    done = set()
    for relation, atom in facts.negative_cycles.items():
        group = facts.component[relation]
        if group in done:
            continue
        done.add(group)
        names = _chain(sorted(group))
        depend = "depend on their own negation" if len(group) > 1 else "depends on its own negation"
        if relation not in facts.needed:
            message = f"{names}, which nothing uses, {depend}"
            log.add("undecided", message, atom.span, "remove the rules; no ground rules are looked at")
            continue
        negative: set[tuple[GroundAtom, GroundAtom]] = set()
        edges = _ground_edges(facts, group, negative)
        if edges is None:
            message = f"{names} {depend}"
            log.add(
                "undecided",
                message,
                atom.span,
                "too big to decide here whether ground rules do; compiling will tell",
            )
            continue
        circle = _find_negative_cycle(edges, negative)
        if circle is None:
            message = f"{names} {depend}, though no ground atom does"
            log.add(
                "ground-stratified",
                message,
                atom.span,
                "other systems may refuse it; split the relation in two",
            )
        else:
            atoms = ", ".join(diagnostics.shorten(ground_terms.atom_text(r[0], f)) for r, f in circle[:_SHOWN])
            one = len(circle) == 1
            who = "a ground atom depends on its" if one else "ground atoms depend on their"
            message = f"{who} own negation: {atoms}"
            log.add("negative-cycle", message, atom.span, "break the circle of rules through `not`")


def _check_recursion(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    """The recursion restriction of GDL: a recursive call only passes on terms that something else bounds."""
    for rule in facts.rules:
        loose = _find_unbounded_argument(rule, facts.component.get(rule.head.relation, frozenset()))
        if loose:
            what, name = (diagnostics.shorten(term) for term in loose)
            message = f"recursive call passes {what}, which nothing outside the recursion bounds"
            hint = f"add a literal that binds {name}, e.g. (index {name})"
            log.add("recursion-restriction", message, loose[0].span, hint)


def _find_unbounded_argument(
    rule: terms.Rule, group: frozenset[terms.Relation]
) -> tuple[terms.Term, terms.Variable] | None:
    """The first argument of a recursive call that breaks the restriction, and its variable."""
    positive = [atom for atom, sign in terms.atoms_in(rule.body) if sign]
    calls = [atom for atom in positive if atom.relation in group]
    if not calls:
        return None
    others = (atom for atom in positive if atom.relation not in group)
    outside = {variable.name for atom in others for variable in terms.variables_in(atom.args)}
    passed_on = set(rule.head.args)
    for arg in (arg for atom in calls for arg in atom.args if arg not in passed_on):
        for variable in terms.variables_in([arg]):
            if variable.name not in outside:
                return arg, variable
    return None


def _ground_edges(
    facts: overview.SheetAnalysis,
    relations: Iterable[terms.Relation],
    signs: set[tuple[GroundAtom, GroundAtom]] | None = None,
) -> dict[GroundAtom, set[GroundAtom]] | None:
    """From ground heads of some relations to the atoms their instances use; `signs` collects the negative.

    None if that is too much for a check.
    """
    tables = facts.relaxed_model
    if isinstance(tables, joins.LimitError):
        return None
    edges: dict[GroundAtom, set[GroundAtom]] = {}
    try:
        for full, relaxed in (pair for relation in sorted(relations) for pair in facts.relaxed_rules.get(relation, ())):
            plan = joins.JoinPlan(relaxed)
            for env in plan.solutions(tables, tables, facts.budget):
                facts.budget.spend(relaxed)
                bindings = dict(zip(plan.slots, env, strict=True))
                head = _ground(full.head, bindings)
                for atom, positive in terms.atoms_in(full.body):
                    body = _ground(atom, bindings)
                    if atom.relation not in tables or body[1] not in tables[atom.relation].known:
                        continue  # negated, and false whatever happens
                    edges.setdefault(head, set()).add(body)
                    if not positive and signs is not None:
                        signs.add((head, body))
    except joins.LimitError:
        return None
    return edges


def _ground(atom: terms.Atom, bindings: dict[str, ground_terms.GroundTerm]) -> GroundAtom:
    return atom.relation, tuple(ground_terms.from_term(arg, bindings) for arg in atom.args)


def _find_negative_cycle(
    edges: dict[GroundAtom, set[GroundAtom]], negative: set[tuple[GroundAtom, GroundAtom]]
) -> list[GroundAtom] | None:
    """The atoms of a circle with a negative edge in it."""
    member = {
        atom: number for number, group in enumerate(graphs.strongly_connected_components(edges)) for atom in group
    }
    circles = [(head, body) for head, body in negative if member[head] == member[body]]
    if not circles:
        return None
    head, body = min(circles, key=str)
    return [head, *(atom for atom in graphs.shortest_path(edges, body, {head}) if atom != head)]


def _chain(relations: Iterable[terms.Relation]) -> str:
    names = [f"`{diagnostics.shorten(name, 30)}`" for name, _ in relations]
    return " <- ".join([*names[:_SHOWN], *([".."] if len(names) > _SHOWN else [])])
