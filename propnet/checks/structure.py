"""Checks dependencies: no cycle through negation, and no legal, goal or terminal that depends on a move."""

import dataclasses
from collections.abc import Iterable

from gdlx.propnet.checks import overview
from gdlx.propnet.common import graphs
from gdlx.propnet.datalog import joins, safety
from gdlx.propnet.syntax import diagnostics, ground_terms, kif, terms

GroundAtom = tuple[terms.Relation, ground_terms.Fact]
_DOES = ("does", 2)
_SHOWN = 6
_MOST_PAIRS = 100_000  # of literals and rules that are compared
_TRIED = 50  # ground atoms examined to find all wrong rules
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
    """legal, goal and terminal are properties of a state; an error only if ground rules depend on `does`."""
    state_only = graphs.reachable(facts.edges, _STATE_ONLY_RELATIONS)
    relations: set[terms.Relation] = graphs.reachable(facts.users, [_DOES])
    relations &= state_only
    keywords = [keyword for keyword in _STATE_ONLY_RELATIONS if keyword in relations]
    if not keywords:
        return
    edges = _ground_edges(facts, relations - {_DOES})
    users: dict[GroundAtom, list[GroundAtom]] = {}
    for head, body in (edges or {}).items():
        for atom in body:
            users.setdefault(atom, []).append(head)
    moves = {atom for atom in users if atom[0] == _DOES}
    depends_on_move = graphs.reachable(users, moves)
    ordered = {head: sorted(body, key=str) for head, body in (edges or {}).items()}  # the same message in every run
    for keyword in keywords:
        span = facts.rules_by_head[keyword][0].span
        if edges is None:
            message = (
                f"`{keyword[0]}` may depend on `does`: {_chain(graphs.shortest_path(facts.edges, keyword, {_DOES}))}"
            )
            log.add("undecided", message, span, "the game is too large to decide this here; compile it to find out")
            continue
        blamed = sorted((atom for atom in edges if atom[0] == keyword and atom in depends_on_move), key=str)
        reported = set()
        for atom in blamed[:_TRIED]:
            path = graphs.shortest_path(ordered, atom, moves)
            rule = _find_deriving_rule(facts, atom, path[1])
            if rule.span not in reported:
                reported.add(rule.span)
                steps = " <- ".join(diagnostics.shorten(ground_terms.atom_text(r[0], f)) for r, f in path[:_SHOWN])
                message = f"`{keyword[0]}` depends on the move being made: {steps}"
                log.add("depends-on-does", message, rule.span, "use (true ..) of a fluent that a `next` rule sets")
            if len(reported) == len(facts.rules_by_head[keyword]):
                break


def _find_deriving_rule(facts: overview.SheetAnalysis, head: GroundAtom, used: GroundAtom) -> terms.Rule:
    """Returns the rule with an instance that derives one ground atom from another."""
    for rule in facts.rules_by_head[head[0]]:
        uses = any(atom.relation == used[0] for atom, _ in terms.atoms_in(rule.body))
        fits = all(map(_fits, rule.head.args, head[1]))
        if uses and fits:
            return rule
    return facts.rules_by_head[head[0]][0]


def _fits(term: terms.Term, value: ground_terms.GroundTerm) -> bool:
    """Whether a term matches a value; variables match anything."""
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
            log.add("undecided", message, atom.span, "remove the rules; their ground rules are not checked")
            continue
        negative: set[tuple[GroundAtom, GroundAtom]] = set()
        edges = {} if _excluded_by_constants(facts, group) else _ground_edges(facts, group, negative)
        if edges is None:
            message = f"{names} {depend}"
            log.add(
                "undecided",
                message,
                atom.span,
                "too large to decide here whether ground rules do; compile it to find out",
            )
            continue
        cycle = _find_negative_cycle(edges, negative)
        if cycle is None:
            message = f"{names} {depend}, though no ground atom does"
            log.add(
                "ground-stratified",
                message,
                atom.span,
                "other systems may refuse it; split the relation in two",
            )
        else:
            atoms = ", ".join(diagnostics.shorten(ground_terms.atom_text(r[0], f)) for r, f in cycle[:_SHOWN])
            one = len(cycle) == 1
            who = "a ground atom depends on its" if one else "ground atoms depend on their"
            message = f"{who} own negation: {atoms}"
            log.add("negative-cycle", message, atom.span, "break the cycle of rules through `not`")


def _excluded_by_constants(facts: overview.SheetAnalysis, group: frozenset[terms.Relation]) -> bool:
    """Whether the constants of the rules exclude a cycle through `not`: (goal ?r 0) may depend on (not (goal ?r 100)).

    A rule may depend on another only if an atom of its body unifies with the head of the other.
    """
    rules = [rule for relation in sorted(group) for rule in facts.rules_by_head.get(relation, ())]
    calls = [
        (number, atom, positive)
        for number, rule in enumerate(rules)
        for atom, positive in terms.atoms_in(rule.body)
        if atom.relation in group
    ]
    if len(calls) * len(rules) > _MOST_PAIRS:
        return False
    edges: dict[int, set[int]] = {number: set() for number in range(len(rules))}
    negative = set()
    for number, atom, positive in calls:
        for other, rule in enumerate(rules):
            if rule.head.relation == atom.relation and all(map(_may_be_equal, atom.args, rule.head.args)):
                edges[number].add(other)
                if not positive:
                    negative.add((number, other))
    member = {rule: n for n, component in enumerate(graphs.strongly_connected_components(edges)) for rule in component}
    return all(member[number] != member[other] for number, other in negative)


def _may_be_equal(left: terms.Term, right: terms.Term) -> bool:
    """Whether two terms of different rules have a common instance, as far as their constants tell."""
    if isinstance(left, terms.Variable) or isinstance(right, terms.Variable):
        return True
    if isinstance(left, terms.Symbol) or isinstance(right, terms.Symbol):
        return left == right
    same = (left.functor, len(left.args)) == (right.functor, len(right.args))
    return same and all(map(_may_be_equal, left.args, right.args))


def _check_recursion(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    """The recursion restriction of GDL: arguments of a recursive call must be bounded by something else."""
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
    """Returns the first argument of a recursive call that violates the restriction, and its variable."""
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
    """Maps ground heads of some relations to the atoms that their instances use; `signs` collects the negative edges.

    Returns None if that exceeds the budget of the checks.
    """
    tables = facts.relaxed_model
    if isinstance(tables, joins.LimitError):
        return None
    edges: dict[GroundAtom, set[GroundAtom]] = {}

    def add_edge(head: GroundAtom, body: GroundAtom, positive: bool) -> None:
        if body[0] not in tables or body[1] not in tables[body[0]].known:
            return  # negated, and never true
        edges.setdefault(head, set()).add(body)
        if not positive and signs is not None:
            signs.add((head, body))

    try:
        for full, relaxed in (pair for relation in sorted(relations) for pair in facts.relaxed_rules.get(relation, ())):
            free = safety.negated_only(full)
            plan = joins.JoinPlan(relaxed)
            for env in plan.solutions(tables, tables, facts.budget):
                facts.budget.spend(relaxed)
                bindings = dict(zip(plan.slots, env, strict=True))
                head = _ground(full.head, bindings)
                for atom, positive in terms.atoms_in(full.body):
                    if _variables([atom]).isdisjoint(free):
                        add_edge(head, _ground(atom, bindings), positive)
            for atom in (atom for atom, _ in terms.atoms_in(full.body) if not _variables([atom]).isdisjoint(free)):
                plan = joins.JoinPlan(dataclasses.replace(relaxed, body=(*relaxed.body, atom)))
                for env in plan.solutions(tables, tables, facts.budget):
                    facts.budget.spend(relaxed)
                    bindings = dict(zip(plan.slots, env, strict=True))
                    add_edge(_ground(full.head, bindings), _ground(atom, bindings), False)
    except joins.LimitError:
        return None
    return edges


def _variables(atoms: Iterable[terms.Atom]) -> set[str]:
    return {variable.name for atom in atoms for variable in terms.variables_in(atom.args)}


def _ground(atom: terms.Atom, bindings: dict[str, ground_terms.GroundTerm]) -> GroundAtom:
    return atom.relation, tuple(ground_terms.from_term(arg, bindings) for arg in atom.args)


def _find_negative_cycle(
    edges: dict[GroundAtom, set[GroundAtom]], negative: set[tuple[GroundAtom, GroundAtom]]
) -> list[GroundAtom] | None:
    """Returns the atoms of a cycle with a negative edge."""
    member = {
        atom: number for number, group in enumerate(graphs.strongly_connected_components(edges)) for atom in group
    }
    inner = [(head, body) for head, body in negative if member[head] == member[body]]
    if not inner:
        return None
    head, body = min(inner, key=str)
    return [head, *(atom for atom in graphs.shortest_path(edges, body, {head}) if atom != head)]


def _chain(relations: Iterable[terms.Relation]) -> str:
    names = [f"`{diagnostics.shorten(name, 30)}`" for name, _ in relations]
    return " <- ".join([*names[:_SHOWN], *([".."] if len(names) > _SHOWN else [])])
