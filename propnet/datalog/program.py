"""Bottom-up evaluation of rules: slow, simple, and correct for every stratified sheet.

Relations are evaluated one strongly connected component of their dependency graph at a time, each semi-naively to its
least fixpoint. A component that depends negatively on itself is evaluated by the alternating fixpoint (Van Gelder
1989): it computes the unique model of sheets that are stratified only after grounding, and finds undefined atoms.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from gdlx.propnet.common import graphs
from gdlx.propnet.datalog import joins
from gdlx.propnet.syntax import diagnostics, ground_terms, terms


class UndefinedError(Exception):
    """Raised for atoms that depend on their own negation, so that they are neither true nor false."""

    def __init__(self, atoms: Sequence[tuple[terms.Relation, ground_terms.Fact]]) -> None:
        self.atoms = tuple(atoms)
        super().__init__(ground_terms.atom_text(atoms[0][0][0], atoms[0][1]))


Trace = dict[tuple[terms.Relation, ground_terms.Fact], tuple[terms.Rule, dict[str, ground_terms.GroundTerm]]]


class _Component:
    """Relations that depend on each other, and their rules."""

    def __init__(self, relations: Iterable[terms.Relation], rules: Sequence[terms.Rule]) -> None:
        self.relations = frozenset(relations)
        self.rules = rules
        self.recursive = [
            (literal.relation, number, place)
            for number, rule in enumerate(rules)
            for place, literal in enumerate(rule.body)
            if isinstance(literal, terms.Atom) and literal.relation in self.relations
        ]
        self._plans: dict[tuple[int, int | None], joins.JoinPlan] = {}
        self.negative = any(
            not positive and atom.relation in self.relations
            for rule in rules
            for atom, positive in terms.atoms_in(rule.body)
        )

    def least_fixpoint(
        self, tables: joins.Tables, negative: joins.Tables, budget: joins.Budget, trace: Trace | None
    ) -> joins.Tables:
        """Returns the component's tables and adds them to `tables`; negative literals are evaluated in `negative`."""
        component_tables = {relation: joins.Table() for relation in self.relations}
        tables.update(component_tables)
        plans = (self._plan(number, None, budget) for number in range(len(self.rules)))
        fresh = self._derive(plans, tables, negative, component_tables, budget, trace)
        while fresh:
            budget.check_deadline(self.rules[0])
            news: joins.Tables = {(f"new {name}", arity): joins.Table(rows) for (name, arity), rows in fresh.items()}
            tables.update(news)
            plans = (self._plan(n, place, budget) for relation, n, place in self.recursive if relation in fresh)
            fresh = self._derive(plans, tables, negative, component_tables, budget, trace)
            for relation in news:
                del tables[relation]
        return component_tables

    def _plan(self, number: int, first: int | None, budget: joins.Budget) -> joins.JoinPlan:
        """Creates plans on first use: a rule has a plan for each of its recursive literals."""
        plan = self._plans.get((number, first))
        if plan is None:
            budget.check_deadline(self.rules[number])
            plan = self._plans[number, first] = joins.JoinPlan(self.rules[number], first)
        return plan

    def _derive(
        self,
        plans: Iterable[joins.JoinPlan],
        tables: joins.Tables,
        negative: joins.Tables,
        component_tables: joins.Tables,
        budget: joins.Budget,
        trace: Trace | None,
    ) -> dict[terms.Relation, list[ground_terms.Fact]]:
        fresh: dict[terms.Relation, list[ground_terms.Fact]] = {}
        for plan in plans:
            relation = plan.rule.head.relation
            known, derived = component_tables[relation].known, {}
            for env in plan.solutions(tables, negative, budget):
                fact = plan.head(env)
                if plan.may_grow:
                    joins.require_small(fact, plan.rule)
                if fact in known or fact in derived:
                    continue
                budget.spend(plan.rule)
                derived[fact] = dict(zip(plan.slots, env, strict=True)) if trace is not None else None
            for fact, bindings in derived.items():
                component_tables[relation].add(fact)
                fresh.setdefault(relation, []).append(fact)
                if trace is not None and bindings is not None:
                    trace.setdefault((relation, fact), (plan.rule, bindings))
        return fresh

    def evaluate(self, tables: joins.Tables, budget: joins.Budget, trace: Trace | None) -> None:
        """Adds the component's relations to the tables."""
        if not self.negative:
            self.least_fixpoint(tables, tables, budget, trace)
            return
        certain: joins.Tables = {relation: joins.Table() for relation in self.relations}
        while True:
            possible = self.least_fixpoint(tables, tables | certain, budget, None)
            following = self.least_fixpoint(tables, tables | possible, budget, None)
            if all(following[r].known == certain[r].known for r in self.relations):
                break
            certain = following
        undefined = [(r, f) for r in sorted(self.relations) for f in possible[r].rows if f not in certain[r].known]
        if undefined:
            raise UndefinedError(undefined)
        self.least_fixpoint(tables, tables | possible, budget, trace)


class DatalogProgram:
    """Rules without `or`, as components in the order of their dependencies."""

    def __init__(self, rules: Iterable[terms.Rule]) -> None:
        by_head: dict[terms.Relation, list[terms.Rule]] = {}
        for rule in rules:
            by_head.setdefault(rule.head.relation, []).append(rule)
        edges = {
            relation: [
                atom.relation for rule in heads for atom, _ in terms.atoms_in(rule.body) if atom.relation in by_head
            ]
            for relation, heads in by_head.items()
        }
        self.components = [
            _Component(group, [rule for relation in sorted(group) for rule in by_head[relation]])
            for group in graphs.strongly_connected_components(edges)
        ]

    def evaluate(
        self, given: joins.Tables, budget: joins.Budget | None = None, trace: Trace | None = None
    ) -> joins.Tables:
        """Returns the tables of `given`, with the tables of all relations of the program added or replaced."""
        tables = dict(given)
        budget = budget or joins.Budget()
        for component in self.components:
            component.evaluate(tables, budget, trace)
        return tables


@contextlib.contextmanager
def failures_as_gdl_errors(sheet_name: str) -> Iterator[None]:
    """Converts failures of an evaluation to a GdlError of the sheet."""
    try:
        yield
    except (joins.LimitError, UndefinedError) as failure:
        raise diagnostics.GdlError([failure_to_diagnostic(failure)], sheet_name) from None


def failure_to_diagnostic(failure: joins.LimitError | UndefinedError) -> diagnostics.Diagnostic:
    if isinstance(failure, UndefinedError):
        message = f"{diagnostics.shorten(failure)} depends on its own negation, so it is neither true nor false"
        return diagnostics.Diagnostic("negative-cycle", message, None, "break the cycle of rules through `not`")
    code = "unbounded-term" if failure.term_too_large else "evaluation-limit"
    hint = (
        "bound the term, e.g. count with (succ 1 2) facts instead of (s ?n)"
        if failure.term_too_large
        else "the rule joins too much; split it into smaller relations"
    )
    return diagnostics.Diagnostic(code, f"evaluation of this rule stopped: {failure.what}", failure.rule.span, hint)
