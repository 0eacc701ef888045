"""Dependency analysis for the compiler: which rules a game needs, and which depend on the state or the joint action.

The interpreter has its own analysis, so that comparing it with propnets reveals an error in this one.
"""

import dataclasses
from collections.abc import Iterable

from gdlx.propnet.common import graphs
from gdlx.propnet.datalog import program, safety
from gdlx.propnet.syntax import ground_terms, rulesheet, terms


@dataclasses.dataclass(frozen=True)
class Stages:
    """Rules by what they depend on: nothing, the state, or the state and the joint action.

    Relations that legal, goal and terminal use are evaluated with all `does` false; a relation that `next` uses too is
    therefore evaluated twice.
    """

    static: tuple[terms.Rule, ...]
    state: tuple[terms.Rule, ...]
    move: tuple[terms.Rule, ...]


def _edges(rules: Iterable[terms.Rule]) -> dict[terms.Relation, set[terms.Relation]]:
    """Maps every relation to the relations that its rules use."""
    edges: dict[terms.Relation, set[terms.Relation]] = {}
    for rule in rules:
        edges.setdefault(rule.head.relation, set()).update(atom.relation for atom, _ in terms.atoms_in(rule.body))
    return edges


def split_into_stages(rules: tuple[terms.Rule, ...]) -> Stages:
    """Splits normalized rules into stages; rules that nothing needs are left out."""
    edges = _edges(rules)
    users: dict[terms.Relation, set[terms.Relation]] = {}
    for head, body in edges.items():
        for relation in body:
            users.setdefault(relation, set()).add(head)
    needed = graphs.reachable(edges, terms.ROOT_RELATIONS)
    dynamic = graphs.reachable(users, [terms.TRUE, terms.DOES]) & needed
    users_without_state_only = {relation: heads - set(terms.STATE_ONLY_RELATIONS) for relation, heads in users.items()}
    moved = graphs.reachable(users_without_state_only, [terms.DOES]) & needed
    state_only = graphs.reachable(edges, terms.STATE_ONLY_RELATIONS)
    static, state = needed - dynamic, dynamic & (state_only | (dynamic - moved))
    return Stages(
        static=tuple(r for r in rules if r.head.relation in static),
        state=tuple(r for r in rules if r.head.relation in state),
        move=tuple(r for r in rules if r.head.relation in moved),
    )


def role_names(sheet: rulesheet.Rulesheet) -> tuple[str, ...]:
    """Returns the roles in file order."""
    static = split_into_stages(needed_rules(sheet)).static
    needed = graphs.reachable(_edges(static), [terms.ROLE])
    with program.failures_as_gdl_errors(sheet.name):
        tables = program.DatalogProgram(rule for rule in static if rule.head.relation in needed).evaluate({})
    return (
        tuple(ground_terms.role_name(role, sheet.name) for (role,) in tables[terms.ROLE].rows)
        if terms.ROLE in tables
        else ()
    )


def needed_rules(sheet: rulesheet.Rulesheet) -> tuple[terms.Rule, ...]:
    """Returns the rules that the game depends on, normalized. The others may be unsafe."""
    needed = graphs.reachable(_edges(sheet.rules), terms.ROOT_RELATIONS)
    return safety.normalize_rules(rule for rule in sheet.rules if rule.head.relation in needed)
