"""Analysis of a rulesheet that the checks share: rules by head, users of relations, dependencies."""

import dataclasses
import functools
from collections.abc import Iterable

from gdlx.propnet.common import graphs
from gdlx.propnet.datalog import joins, program, safety
from gdlx.propnet.syntax import rulesheet, terms

ROOT_NAMES = ("role", "init", "legal", "next", "sees", "goal", "terminal")
_SECONDS = 2.0
INPUT_RELATIONS = (("true", 1), ("does", 2))


@dataclasses.dataclass(frozen=True)
class SheetAnalysis:
    """A rulesheet with the analysis of its rules, each part computed on first use."""

    sheet: rulesheet.Rulesheet

    @property
    def rules(self) -> tuple[terms.Rule, ...]:
        return self.sheet.rules

    @functools.cached_property
    def rules_by_head(self) -> dict[terms.Relation, list[terms.Rule]]:
        by_head: dict[terms.Relation, list[terms.Rule]] = {}
        for rule in self.rules:
            by_head.setdefault(rule.head.relation, []).append(rule)
        return by_head

    @functools.cached_property
    def edges(self) -> dict[terms.Relation, set[terms.Relation]]:
        """Maps a relation to the relations that its rules use."""
        return {
            relation: {atom.relation for rule in rules for atom, _ in terms.atoms_in(rule.body)}
            for relation, rules in self.rules_by_head.items()
        }

    @functools.cached_property
    def users(self) -> dict[terms.Relation, set[terms.Relation]]:
        users: dict[terms.Relation, set[terms.Relation]] = {}
        for head, body in self.edges.items():
            for relation in body:
                users.setdefault(relation, set()).add(head)
        return users

    @functools.cached_property
    def needed(self) -> set[terms.Relation]:
        """Relations that the game depends on."""
        return graphs.reachable(self.edges, [(name, terms.KEYWORD_ARITY[name]) for name in ROOT_NAMES])

    @functools.cached_property
    def component(self) -> dict[terms.Relation, frozenset[terms.Relation]]:
        """Maps every recursive relation to its strongly connected component."""
        component_of = {}
        for group in graphs.strongly_connected_components(self.edges):
            if len(group) > 1 or group[0] in self.edges.get(group[0], ()):
                component_of.update(dict.fromkeys(group, frozenset(group)))
        return component_of

    @functools.cached_property
    def negative_cycles(self) -> dict[terms.Relation, terms.Atom]:
        """Relations that depend on their own negation, with the first negated atom of their component."""
        first: dict[frozenset[terms.Relation], terms.Atom] = {}
        for rule in self.rules:
            group = self.component.get(rule.head.relation)
            if group is None or group in first:
                continue
            for atom, positive in terms.atoms_in(rule.body):
                if not positive and atom.relation in group:
                    first[group] = atom
                    break
        return {relation: atom for group, atom in first.items() for relation in group}

    @functools.cached_property
    def safe_rules(self) -> tuple[terms.Rule, ...]:
        """Needed rules that can be evaluated, with role variables bound and `or` expanded."""
        return tuple(rule for pairs in self.relaxed_rules.values() for rule, _ in pairs)

    @functools.cached_property
    def relaxed_rules(self) -> dict[terms.Relation, list[tuple[terms.Rule, terms.Rule]]]:
        """For each relation, pairs of a safe rule and its relaxation, which holds whenever the rule could ever apply.

        A relaxation drops negative literals of relations that change or may be undefined.
        """
        dynamic = graphs.reachable(self.users, [*INPUT_RELATIONS, *self.negative_cycles])
        pairs_of: dict[terms.Relation, list[tuple[terms.Rule, terms.Rule]]] = {}
        for origin, rule in safety.expand_rules(rule for rule in self.rules if rule.head.relation in self.needed):
            if not any(safety.unsafe_variables(rule)):
                relaxed = dataclasses.replace(rule, body=tuple(_keep(rule.body, dynamic)))
                pairs_of.setdefault(origin.head.relation, []).append((rule, relaxed))
        return pairs_of

    @functools.cached_property
    def budget(self) -> joins.Budget:
        """The budget for ground rules of all checks together."""
        return joins.Budget(facts=500_000, seconds=_SECONDS)

    @functools.cached_property
    def relaxed_model(self) -> joins.Tables | joins.LimitError:
        """All facts that could ever hold if every legal move is made, or the limit that stopped the evaluation."""
        rules = [relaxed for pairs in self.relaxed_rules.values() for _, relaxed in pairs]
        if rules:
            fluent, role, move = (terms.Variable(name, rules[0].span) for name in ("f", "r", "m"))
            for head, body in (
                (("true", fluent), ("init", fluent)),
                (("true", fluent), ("next", fluent)),
                (("does", role, move), ("legal", role, move)),
            ):
                rules.append(terms.Rule(_atom(*head), (_atom(*body),), False, rules[0].span))
        try:
            return program.DatalogProgram(rules).evaluate({}, joins.Budget(facts=50_000, seconds=_SECONDS))
        except joins.LimitError as limit:
            return limit


def _atom(name: str, *args: terms.Term) -> terms.Atom:
    return terms.Atom(name, args, args[0].span)


def _keep(body: terms.Body, dynamic: set[terms.Relation]) -> Iterable[terms.Literal]:
    return (lit for lit in body if not (isinstance(lit, terms.Not) and lit.atom.relation in dynamic))
