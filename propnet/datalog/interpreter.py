"""Evaluates the rules of a game directly, without grounding them or building a propnet.

The tests use the interpreter as the reference for the compiler, so it shares no analysis of the rules with it.
`gdlx show --why` uses it for explanations.
"""

import collections
from collections.abc import Callable, Iterable, Mapping

from gdlx.propnet.common import graphs
from gdlx.propnet.common.text import plurals
from gdlx.propnet.datalog import joins, program, safety
from gdlx.propnet.syntax import diagnostics, ground_terms, rulesheet, terms

State = frozenset[ground_terms.GroundTerm]
JointAction = Mapping[str, ground_terms.GroundTerm]  # role -> its move

_CACHED_MODELS = 64

Uses = Mapping[terms.Relation, set[terms.Relation]]  # from every relation to those its rules use


def _uses(rules: Iterable[terms.Rule]) -> dict[terms.Relation, set[terms.Relation]]:
    uses: dict[terms.Relation, set[terms.Relation]] = collections.defaultdict(set)
    for rule in rules:
        uses[rule.head.relation] |= {atom.relation for atom, _ in terms.atoms_in(rule.body)}
    return dict(uses)


def _needed(uses: Uses, roots: Iterable[terms.Relation]) -> set[terms.Relation]:
    """The roots and everything they depend on: one pass over the components, users first."""
    needed = set(roots)
    for component in reversed(graphs.strongly_connected_components(uses)):
        if not needed.isdisjoint(component):
            needed.update(component, *(uses.get(relation, ()) for relation in component))
    return needed


def _inputs(uses: Uses) -> dict[terms.Relation, set[terms.Relation]]:
    """Which of `true` and `does` each relation depends on: one pass over the components, users last.

    legal, goal and terminal are evaluated in the state, with all `does` false, so a relation that uses them does not
    depend on a move through them.
    """
    inputs = {terms.TRUE: {terms.TRUE}, terms.DOES: {terms.DOES}}
    for component in graphs.strongly_connected_components(uses):
        read = {source for r in component for used in (r, *uses.get(r, ())) for source in inputs.get(used, ())}
        for relation in component:
            is_state_only = relation in terms.STATE_ONLY_RELATIONS
            inputs[relation] = {terms.TRUE} if is_state_only and read else read
    return inputs


class Interpreter:
    """Plays a game by evaluating its rules directly.

    A state is the frozenset of the fluents that hold in it, a joint action maps every role to its move.

    Attributes:
      sheet: the rulesheet.
      rules: the rules that the game depends on, normalized.
      roles: all roles in file order, with `random`.
      players: the roles without `random`.
      initial: the initial state.

    >>> from gdlx.propnet.syntax import source
    >>> sheet, _ = rulesheet.parse_rulesheet(source.Source("toss.gdl", '''
    ...     (role guesser) (role random) (legal guesser heads) (legal guesser tails) (legal random toss)
    ...     (<= (next done) (does guesser ?x)) (<= terminal (true done)) (goal guesser 50)'''))
    >>> game = Interpreter(sheet)
    >>> game
    Interpreter(toss.gdl: 1 player, 8 rules)
    >>> game.legal(game.initial)["guesser"]
    ('heads', 'tails')
    """

    def __init__(self, sheet: rulesheet.Rulesheet, budget: Callable[[], joins.Budget] = joins.Budget) -> None:
        """`budget` returns the budget of a single evaluation."""
        self.sheet = sheet
        self._budget = budget
        needed = _needed(_uses(sheet.rules), terms.ROOT_RELATIONS)
        self.rules = safety.normalize_rules(rule for rule in sheet.rules if rule.head.relation in needed)
        uses = _uses(self.rules)
        inputs, state_only = _inputs(uses), _needed(uses, terms.STATE_ONLY_RELATIONS)
        static = [rule for rule in self.rules if not inputs[rule.head.relation]]
        self._moved_relations = {relation for relation in uses if terms.DOES in inputs[relation]}
        # Relations that both `next` and legal, goal or terminal use are in both programs: here all `does` are false.
        self._state_program = program.DatalogProgram(
            rule
            for rule in self.rules
            if inputs[rule.head.relation]
            and (rule.head.relation in state_only or rule.head.relation not in self._moved_relations)
        )
        self._move_program = program.DatalogProgram(r for r in self.rules if r.head.relation in self._moved_relations)
        self._static_trace: program.Trace = {}
        with program.failures_as_gdl_errors(sheet.name):
            self._static = program.DatalogProgram(static).evaluate({}, budget(), trace=self._static_trace)
        self.roles = tuple(ground_terms.role_name(fact[0], sheet.name) for fact in self._rows(self._static, terms.ROLE))
        self.players = tuple(role for role in self.roles if role != terms.RANDOM)
        self.initial: State = frozenset(fact[0] for fact in self._rows(self._static, terms.INIT))
        self._models: collections.OrderedDict[State, joins.Tables] = collections.OrderedDict()

    def __repr__(self) -> str:
        counts = ((len(self.players), "player"), (len(self.rules), "rule"))
        shown = ", ".join(plurals.count(count, noun) for count, noun in counts)
        return f"Interpreter({diagnostics.shorten(self.sheet.name)}: {shown})"

    def legal(self, state: State) -> dict[str, tuple[ground_terms.GroundTerm, ...]]:
        """Returns the legal moves of every role, sorted by their text."""
        moves_of: dict[str, list[ground_terms.GroundTerm]] = {role: [] for role in self.roles}
        for role, move in self._rows(self._model(state), terms.LEGAL):
            if role in moves_of:
                moves_of[str(role)].append(move)
        return {role: tuple(sorted(moves, key=ground_terms.to_text)) for role, moves in moves_of.items()}

    def next(self, state: State, joint: JointAction) -> State:
        """Returns the successor of a state under a joint action."""
        return frozenset(fact[0] for fact in self._rows(self._moved(state, joint), terms.NEXT))

    def percepts(self, state: State, joint: JointAction) -> dict[str, frozenset[ground_terms.GroundTerm]]:
        """Returns the percepts of every player for a joint action in a state."""
        if self.sheet.language == 1:
            everything: frozenset[ground_terms.GroundTerm] = frozenset(
                ("does", role, joint[role]) for role in self.roles
            )
            return dict.fromkeys(self.players, everything)
        seen: dict[str, set[ground_terms.GroundTerm]] = {role: set() for role in self.players}
        for role, percept in self._rows(self._moved(state, joint), terms.SEES):
            if role in seen:
                seen[str(role)].add(percept)
        return {role: frozenset(percepts) for role, percepts in seen.items()}

    def is_terminal(self, state: State) -> bool:
        """Whether the game is over in a state."""
        return bool(self._rows(self._model(state), terms.TERMINAL))

    def goals(self, state: State) -> dict[str, tuple[int, ...]]:
        """Returns the sorted goal values of every player: exactly one in every terminal state of a well-formed game."""
        values_of: dict[str, set[int]] = {role: set() for role in self.players}
        for role, value in self._rows(self._model(state), terms.GOAL):
            if role in values_of:
                values_of[str(role)].add(ground_terms.goal_value(value, self.sheet.name))
        return {role: tuple(sorted(goals)) for role, goals in values_of.items()}

    def tables(self, state: State, joint: JointAction | None = None) -> joins.Tables:
        """Returns all facts that hold in a state, or in a state with a joint action."""
        return self._model(state) if joint is None else self._moved(state, joint)

    def depends_on_move(self, relation: terms.Relation) -> bool:
        """Whether a relation depends on the joint action, not only on the state."""
        return relation in self._moved_relations

    def evaluate_with_trace(self, state: State, joint: JointAction | None = None) -> tuple[joins.Tables, program.Trace]:
        """Same as `tables`, with the rule instance that first derived each fact."""
        trace = dict(self._static_trace)
        with program.failures_as_gdl_errors(self.sheet.name):
            tables = self._state_program.evaluate(self._state_tables(state), self._budget(), trace)
            if joint is not None:
                trace = {key: origin for key, origin in trace.items() if key[0] not in self._moved_relations}
                tables = self._move_program.evaluate(tables | self._does(joint), self._budget(), trace)
        return tables, trace

    def _model(self, state: State) -> joins.Tables:
        model = self._models.get(state)
        if model is None:
            with program.failures_as_gdl_errors(self.sheet.name):
                model = self._state_program.evaluate(self._state_tables(state), self._budget())
            self._models[state] = model
            if len(self._models) > _CACHED_MODELS:
                self._models.popitem(last=False)
        return model

    def _moved(self, state: State, joint: JointAction) -> joins.Tables:
        with program.failures_as_gdl_errors(self.sheet.name):
            return self._move_program.evaluate(self._model(state) | self._does(joint), self._budget())

    def _state_tables(self, state: State) -> joins.Tables:
        ordered = sorted(state, key=ground_terms.to_text)  # so that derivations are the same in every run
        return self._static | {terms.TRUE: joins.Table((fluent,) for fluent in ordered)} | self._does({})

    def _does(self, joint: JointAction) -> joins.Tables:
        return {terms.DOES: joins.Table((role, joint[role]) for role in self.roles if role in joint)}

    @staticmethod
    def _rows(tables: joins.Tables, relation: terms.Relation) -> list[ground_terms.Fact]:
        return tables[relation].rows if relation in tables else []
