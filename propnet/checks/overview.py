"""What every check wants to know of a sheet: who concludes and uses each relation, who depends on whom."""

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
    sheet: rulesheet.Rulesheet

    @property
    def rules(self) -> tuple[terms.Rule, ...]:
        return self.sheet.rules

    @functools.cached_property
    def rules_by_head(self) -> dict[terms.Relation, list[terms.Rule]]:
        found: dict[terms.Relation, list[terms.Rule]] = {}
        for rule in self.rules:
            found.setdefault(rule.head.relation, []).append(rule)
        return found

    @functools.cached_property
    def edges(self) -> dict[terms.Relation, set[terms.Relation]]:
        """From a relation to those its rules use."""
        return {
            relation: {atom.relation for rule in rules for atom, _ in terms.atoms_in(rule.body)}
            for relation, rules in self.rules_by_head.items()
        }

    @functools.cached_property
    def users(self) -> dict[terms.Relation, set[terms.Relation]]:
        found: dict[terms.Relation, set[terms.Relation]] = {}
        for head, body in self.edges.items():
            for relation in body:
                found.setdefault(relation, set()).add(head)
        return found

    @functools.cached_property
    def needed(self) -> set[terms.Relation]:
        """Relations that the game's meaning depends on."""
        return graphs.reachable(self.edges, [(name, terms.KEYWORD_ARITY[name]) for name in ROOT_NAMES])

    @functools.cached_property
    def component(self) -> dict[terms.Relation, frozenset[terms.Relation]]:
        """The relations that depend on each other, for every relation that is part of a circle."""
        found = {}
        for group in graphs.strongly_connected_components(self.edges):
            if len(group) > 1 or group[0] in self.edges.get(group[0], ()):
                found.update(dict.fromkeys(group, frozenset(group)))
        return found

    @functools.cached_property
    def negative_cycles(self) -> dict[terms.Relation, terms.Atom]:
        """Relations that depend on their own negation, with the first atom negated on their circle."""
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
        """Needed rules that can be evaluated, role variables bound and `or` multiplied out."""
        return tuple(rule for pairs in self.relaxed_rules.values() for rule, _ in pairs)

    @functools.cached_property
    def relaxed_rules(self) -> dict[terms.Relation, list[tuple[terms.Rule, terms.Rule]]]:
        """The safe rules made from those of each relation, beside what could ever make them apply.

        Negation of what changes, or may not be defined, is dropped there.
        """
        dynamic = graphs.reachable(self.users, [*INPUT_RELATIONS, *self.negative_cycles])
        found: dict[terms.Relation, list[tuple[terms.Rule, terms.Rule]]] = {}
        for origin, rule in safety.expand_rules(rule for rule in self.rules if rule.head.relation in self.needed):
            if not any(safety.unsafe_variables(rule)):
                relaxed = dataclasses.replace(rule, body=tuple(_keep(rule.body, dynamic)))
                found.setdefault(origin.head.relation, []).append((rule, relaxed))
        return found

    @functools.cached_property
    def budget(self) -> joins.Budget:
        """What all checks together may spend on ground rules."""
        return joins.Budget(facts=500_000, seconds=_SECONDS)

    @functools.cached_property
    def relaxed_model(self) -> joins.Tables | joins.LimitError:
        """Everything that could ever hold, every legal move made, or why a check cannot work that out."""
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
