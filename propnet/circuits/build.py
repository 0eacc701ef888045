"""Builds a PropNet from ground rules: an atom is the OR of its rules, a rule is the AND of its body."""

import collections
import dataclasses
import functools
from collections.abc import Iterable, Mapping

import numpy as np

from gdlx.propnet.circuits import aig, propnet
from gdlx.propnet.common import deadlines, graphs
from gdlx.propnet.datalog import stratify
from gdlx.propnet.grounding import ground, split_joins
from gdlx.propnet.syntax import diagnostics, ground_terms, rulesheet, terms

_UNROLLED_GATES = 5_000  # recursion that would need more gates than this is iterated instead of unrolled

RuleBodies = Mapping[int, list[tuple[int, ...]]]  # bodies of the ground rules of each atom


def build(sheet: rulesheet.Rulesheet, rules: ground.GroundRules) -> propnet.PropNet:
    """Builds the propnet of a sheet, simplified only by the folding of `aig.Builder`."""
    interface = _Interface.of(sheet, rules)
    bodies = _bodies(rules)
    groups = _components(bodies)
    recursions = {group[0]: _Recursion.plan(group, bodies, rules) for group in groups if len(group) > 1}
    iterated = sum(len(recursion.feedback) for recursion in recursions.values() if not recursion.unrolled)
    builder = aig.Builder(interface.inputs + iterated)
    literal = interface.input_literals()
    sources: list[int] = []
    for group in deadlines.watched(groups):
        recursion = recursions.get(group[0])
        if recursion is None:
            (atom,) = group
            literal[atom] = _atom_literal(builder, bodies[atom], literal)
        elif recursion.unrolled:
            recursion.build_unrolled(builder, bodies, literal)
        else:
            sources += recursion.build_iterated(builder, bodies, literal, interface.inputs + len(sources))
    return interface.to_propnet(builder, literal, sources)


def _atom_literal(builder: aig.Builder, bodies: list[tuple[int, ...]], literal: Mapping[int, int]) -> int:
    """Returns the OR of an atom's rules; an atom without a literal has no rule, so it is false."""
    rules = []
    for body in bodies:
        literals = [literal.get(lit, aig.FALSE) if lit > 0 else literal.get(-lit, aig.FALSE) ^ 1 for lit in body]
        rules.append(literals[0] if len(literals) == 1 else builder.conjunction(literals))
    return rules[0] if len(rules) == 1 else builder.disjunction(rules)


def _bodies(rules: ground.GroundRules) -> dict[int, list[tuple[int, ...]]]:
    """Groups rule bodies by head; drops domain literals, which always hold, and rules that depend on their own head."""
    domain = np.array([name.startswith(split_joins.DOMAIN) for name, _ in rules.relations] + [False], bool)
    is_domain = domain[rules.relation]  # relation -1 (none) picks the False at the end
    owner = np.repeat(np.arange(len(rules.heads)), np.diff(rules.starts))
    refuted = np.flatnonzero(rules.body == -rules.heads[owner])
    if len(refuted):
        atom = int(rules.heads[owner[refuted[0]]])
        raise _negative_cycle(rules, atom, atom)
    is_redundant = is_domain[rules.heads]
    is_redundant[owner[rules.body == rules.heads[owner]]] = True
    is_body = ~is_domain[np.abs(rules.body)]
    bounds = np.concatenate([[0], np.cumsum(np.bincount(owner[is_body], minlength=len(rules.heads)))]).tolist()
    literals = rules.body[is_body].tolist()
    bodies: dict[int, list[tuple[int, ...]]] = {atom: [] for atom in rules.heads[~is_domain[rules.heads]].tolist()}
    heads = rules.heads.tolist()
    for number in deadlines.watched(np.flatnonzero(~is_redundant).tolist()):
        bodies[heads[number]].append(tuple(literals[bounds[number] : bounds[number + 1]]))
    return bodies


def _components(bodies: RuleBodies) -> list[list[int]]:
    edges = {head: [abs(lit) for body in rules for lit in body] for head, rules in bodies.items()}
    return [group for group in graphs.strongly_connected_components(edges) if group[0] in bodies]


@dataclasses.dataclass(frozen=True)
class _Recursion:
    """Atoms that depend on each other, and those of them whose values are fed back."""

    order: list[int]  # the atoms in topological order, with feedbacks as inputs
    feedback: list[int]
    unrolled: bool

    @classmethod
    def plan(cls, group: list[int], bodies: RuleBodies, rules: ground.GroundRules) -> "_Recursion":
        members = set(group)
        for atom in group:
            for body in bodies[atom]:
                for literal in body:
                    if literal < 0 and -literal in members:
                        raise _negative_cycle(rules, atom, -literal)
        inner = {atom: {lit for body in bodies[atom] for lit in body if lit in members} for atom in group}
        feedback = _feedback_atoms(inner)
        fed = set(feedback)
        order = [a for g in graphs.strongly_connected_components({a: inner[a] - fed for a in sorted(group)}) for a in g]
        size = sum(1 + len(bodies[atom]) for atom in group)
        return cls(order, feedback, (len(feedback) + 1) * size <= _UNROLLED_GATES)

    def build_unrolled(self, builder: aig.Builder, bodies: RuleBodies, literal: dict[int, int]) -> None:
        """Unrolls k + 1 rounds: k monotone feedbacks settle after k rounds, and one more computes the other atoms."""
        literal.update(dict.fromkeys(self.feedback, aig.FALSE))
        for _ in deadlines.watched(range(len(self.feedback))):
            literal.update(self._round(builder, bodies, literal))
        self._round(builder, bodies, literal)

    def build_iterated(
        self, builder: aig.Builder, bodies: RuleBodies, literal: dict[int, int], first_feedback: int
    ) -> list[int]:
        """Returns the literals of the next values of the feedback inputs, which are numbered from `first_feedback`."""
        literal.update({atom: builder.input(first_feedback + n) for n, atom in enumerate(self.feedback)})
        computed = self._round(builder, bodies, literal)
        return [computed[atom] for atom in self.feedback]

    def _round(self, builder: aig.Builder, bodies: RuleBodies, literal: dict[int, int]) -> dict[int, int]:
        """Computes every atom once from the feedbacks; returns the new values of the feedbacks."""
        fed = set(self.feedback)
        computed: dict[int, int] = {}
        for atom in deadlines.watched(self.order):
            (computed if atom in fed else literal)[atom] = _atom_literal(builder, bodies[atom], literal)
        return computed


def _feedback_atoms(inner: Mapping[int, set[int]]) -> list[int]:
    """Finds a feedback vertex set greedily: each step removes the atom with the most connections."""
    feedback = []
    work = [{atom: set(used) for atom, used in inner.items()}]
    while work:
        deadlines.check()
        edges = work.pop()
        users = collections.Counter(atom for used in edges.values() for atom in used)
        worst = max(edges, key=lambda atom: (len(edges[atom]) * users[atom], -atom))
        feedback.append(worst)
        rest = {atom: used - {worst} for atom, used in edges.items() if atom != worst}
        for group in graphs.strongly_connected_components(rest):
            if len(group) > 1:
                members = set(group)
                work.append({atom: rest[atom] & members for atom in group})
    return sorted(feedback)


def _negative_cycle(rules: ground.GroundRules, head: int, negated: int) -> diagnostics.GdlError:
    names = [rules.relations[rules.relation[atom]][0] for atom in (head, negated)]
    shown = " and ".join(f"`{diagnostics.shorten(name)}`" for name in dict.fromkeys(names))
    message = f"ground atoms of {shown} depend on their own negation"
    hint = "break the cycle of rules through `not`; gdlx check names the atoms"
    return diagnostics.GdlError([diagnostics.Diagnostic("negative-cycle", message, None, hint)])


@dataclasses.dataclass(frozen=True)
class _Interface:
    """The inputs and outputs of the propnet, by atom."""

    sheet: rulesheet.Rulesheet
    roles: tuple[str, ...]
    registers: dict[ground_terms.GroundTerm, int]  # fluent -> atom of (true fluent)
    moves: tuple[dict[ground_terms.GroundTerm, int], ...]  # per role: move -> atom of (does role move)
    atoms: Mapping[terms.Relation, Mapping[ground_terms.Fact, int]]

    @classmethod
    def of(cls, sheet: rulesheet.Rulesheet, rules: ground.GroundRules) -> "_Interface":
        atoms = collections.defaultdict(dict, rules.atoms)
        roles = stratify.role_names(sheet)
        fluents = {fact[0]: atom for fact, atom in atoms[terms.TRUE].items()}
        moves: dict[str, dict[ground_terms.GroundTerm, int]] = {role: {} for role in roles}
        for (role, move), atom in atoms[terms.DOES].items():
            if role in moves:
                moves[str(role)][move] = atom
        return cls(sheet, roles, _sorted(fluents), tuple(_sorted(moves[role]) for role in roles), atoms)

    @property
    def inputs(self) -> int:
        return len(self.registers) + sum(map(len, self.moves))

    def input_literals(self) -> dict[int, int]:
        """Numbers the inputs: registers first, then the moves of the roles in order."""
        groups = (self.registers, *self.moves)
        return {atom: aig.Builder.input(n) for n, atom in enumerate(a for g in groups for a in g.values())}

    def to_propnet(self, builder: aig.Builder, literal: Mapping[int, int], feedback: list[int]) -> propnet.PropNet:
        init, following = self.atoms[terms.INIT], self.atoms[terms.NEXT]
        roles = tuple(self._role(number, builder, literal) for number in range(len(self.roles)))
        unconnected = propnet.PropNet(
            name=self.sheet.name,
            roles=roles,
            fluents=tuple(map(ground_terms.to_text, self.registers)),
            fluent_literals=np.arange(2, 2 * len(self.registers) + 2, 2, dtype=np.int32),
            # Not just (fluent,) in init: it has too many atoms if negation is stratified only after grounding.
            initial=_literals((init.get((fluent,)) for fluent in self.registers), literal) == aig.TRUE,
            next=_literals((following.get((fluent,)) for fluent in self.registers), literal),
            terminal=int(_literals([self.atoms[terms.TERMINAL].get(())], literal)[0]),
            feedback=np.array(feedback, np.int32),
            gate_starts=np.zeros(1, np.int32),
            gate_inputs=np.zeros(0, np.int32),
        )
        return unconnected.with_circuit(builder.circuit(unconnected.as_circuit().outputs))

    def _role(self, number: int, builder: aig.Builder, literal: Mapping[int, int]) -> propnet.Role:
        name = self.roles[number]
        legal = self.atoms[terms.LEGAL]
        percepts = {} if name == terms.RANDOM else self._percepts(name)
        goals: dict[int, list[int]] = {} if name == terms.RANDOM else self._goals(name)
        return propnet.Role(
            name=name,
            moves=tuple(map(ground_terms.to_text, self.moves[number])),
            legal=_literals((legal.get((name, move)) for move in self.moves[number]), literal),
            percepts=tuple(map(ground_terms.to_text, deadlines.watched(percepts))),
            sees=_literals(percepts.values(), literal),
            goal_values=tuple(goals),
            goal=np.array(
                [builder.disjunction(_literals(atoms, literal).tolist()) for atoms in goals.values()], np.int32
            ),
        )

    def _percepts(self, name: str) -> dict[ground_terms.GroundTerm, int]:
        """Returns the percepts of a role; in GDL (not GDL-II) every player perceives the joint action."""
        if self.sheet.language == 2:
            return _sorted({p: atom for (role, p), atom in self.atoms[terms.SEES].items() if role == name})
        return self._joint_action

    @functools.cached_property
    def _joint_action(self) -> dict[ground_terms.GroundTerm, int]:
        does = zip(self.roles, self.moves, strict=True)
        return _sorted({("does", role, move): atom for role, moves in does for move, atom in moves.items()})

    def _goals(self, name: str) -> dict[int, list[int]]:
        """Groups goal atoms by value: (goal x 50) and (goal x 050) are the same goal."""
        atoms_of: dict[int, list[int]] = {}
        for (role, value), atom in self.atoms[terms.GOAL].items():
            if role == name:
                atoms_of.setdefault(ground_terms.goal_value(value, self.sheet.name), []).append(atom)
        return dict(sorted(atoms_of.items()))


def _sorted(atoms: Mapping[ground_terms.GroundTerm, int]) -> dict[ground_terms.GroundTerm, int]:
    return dict(sorted(atoms.items(), key=lambda item: ground_terms.to_text(item[0])))


def _literals(atoms: Iterable[int | None], literal: Mapping[int, int]) -> propnet.Ints:
    return np.array([aig.FALSE if a is None else literal.get(a, aig.FALSE) for a in atoms], np.int32)
