"""The rules of a game evaluated as they stand: no grounding, no network. The oracle of every test, and the
explainer of `gdlx show --why`.
"""

import collections
import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from gdlx.propnet import datalog, diagnostics, graphs, joins, rulesheet, safety, terms, values

State = frozenset[values.Value]
Joint = Mapping[str, values.Value]  # a move for every role

TRUE, DOES = ("true", 1), ("does", 2)
ROLE, INIT, LEGAL, NEXT = ("role", 1), ("init", 1), ("legal", 2), ("next", 1)
SEES, GOAL, TERMINAL = ("sees", 2), ("goal", 2), ("terminal", 0)
ROOTS = (ROLE, INIT, LEGAL, NEXT, SEES, GOAL, TERMINAL)
_JUDGED_BEFORE_THE_MOVE = (LEGAL, GOAL, TERMINAL)
_KEPT_MODELS = 64
_INTEGER = re.compile("-?[0-9]+")
_MOST_DIGITS = 9  # networks hold goals in 32 bits


@dataclasses.dataclass(frozen=True)
class Stages:
    """Rules by what they need: nothing, the state, or the state and a joint move.

    What legal, goal and terminal use is judged with all `does` false; a relation that both they and `next`
    use is therefore evaluated twice.
    """

    static: tuple[terms.Rule, ...]
    state: tuple[terms.Rule, ...]
    move: tuple[terms.Rule, ...]


def _edges(rules: Iterable[terms.Rule]) -> dict[terms.Relation, set[terms.Relation]]:
    """From every relation to those its rules use."""
    edges: dict[terms.Relation, set[terms.Relation]] = {}
    for rule in rules:
        edges.setdefault(rule.head.relation, set()).update(atom.relation for atom, _ in terms.atoms_in(rule.body))
    return edges


def stages(rules: tuple[terms.Rule, ...]) -> Stages:
    """Sort evaluable rules into stages; rules that nothing needs are left out."""
    edges = _edges(rules)
    users: dict[terms.Relation, set[terms.Relation]] = {}
    for head, body in edges.items():
        for relation in body:
            users.setdefault(relation, set()).add(head)
    needed = graphs.reachable(edges, ROOTS)
    dynamic = graphs.reachable(users, [TRUE, DOES]) & needed
    past_judges = {relation: heads - set(_JUDGED_BEFORE_THE_MOVE) for relation, heads in users.items()}
    moved = graphs.reachable(past_judges, [DOES]) & needed
    judged = graphs.reachable(edges, _JUDGED_BEFORE_THE_MOVE)
    static, state = needed - dynamic, dynamic & (judged | (dynamic - moved))
    return Stages(
        static=tuple(r for r in rules if r.head.relation in static),
        state=tuple(r for r in rules if r.head.relation in state),
        move=tuple(r for r in rules if r.head.relation in moved),
    )


def roles(sheet: rulesheet.Rulesheet) -> tuple[str, ...]:
    """The roles in file order."""
    static = stages(needed_rules(sheet)).static
    needed = graphs.reachable(_edges(static), [ROLE])
    with _explained_failures(sheet.name):
        tables = datalog.Program(rule for rule in static if rule.head.relation in needed).evaluate({})
    return _role_names(tables, sheet.name)


def needed_rules(sheet: rulesheet.Rulesheet) -> tuple[terms.Rule, ...]:
    """The rules that the game's meaning depends on, evaluable. The others may be unsafe."""
    needed = graphs.reachable(_edges(sheet.rules), ROOTS)
    return safety.evaluable(rule for rule in sheet.rules if rule.head.relation in needed)


def _role_names(tables: joins.Tables, sheet_name: str) -> tuple[str, ...]:
    names = []
    for (role,) in tables[ROLE].rows if ROLE in tables else ():
        if not isinstance(role, str):
            message = f"role {diagnostics.shorten(values.text(role))} is not a name"
            problem = diagnostics.Diagnostic("compound-role", message, None, "give every role a name of its own")
            raise diagnostics.GdlError([problem], sheet_name)
        names.append(role)
    return tuple(names)


def goal_value(value: values.Value, sheet_name: str) -> int:
    """The integer that a goal value stands for."""
    # int() alone would also take underscores, blanks and the digits of other scripts.
    is_integer = isinstance(value, str) and _INTEGER.fullmatch(value) is not None
    if isinstance(value, str) and is_integer and len(value.lstrip("-").lstrip("0")) <= _MOST_DIGITS:
        return int(value)
    shown = diagnostics.shorten(values.text(value))
    message = f"goal value {shown} {f'has more than {_MOST_DIGITS} digits' if is_integer else 'is not an integer'}"
    problem = diagnostics.Diagnostic("goal-not-integer", message, None, "goals are integers from 0 to 100")
    raise diagnostics.GdlError([problem], sheet_name)


class Interpreter:
    """Plays a rulesheet by its rules.

    >>> from gdlx.propnet import source
    >>> sheet, _ = rulesheet.read(source.Source("toss.gdl", '''
    ...     (role guesser) (role random) (legal guesser heads) (legal guesser tails) (legal random toss)
    ...     (<= (next done) (does guesser ?x)) (<= terminal (true done)) (goal guesser 50)'''))
    >>> game = Interpreter(sheet)
    >>> game.legal(game.initial)["guesser"]
    ('heads', 'tails')
    """

    def __init__(self, sheet: rulesheet.Rulesheet, budget: Callable[[], joins.Budget] = joins.Budget) -> None:
        """`budget` makes what a single evaluation may use."""
        self.sheet = sheet
        self._budget = budget
        parts = stages(needed_rules(sheet))
        self._state_program = datalog.Program(parts.state)
        self._move_program = datalog.Program(parts.move)
        self._moved_relations = {rule.head.relation for rule in parts.move}
        self._static_trace: datalog.Trace = {}
        with _explained_failures(sheet.name):
            self._static = datalog.Program(parts.static).evaluate({}, budget(), trace=self._static_trace)
        self.roles = _role_names(self._static, sheet.name)
        self.players = tuple(role for role in self.roles if role != terms.RANDOM)
        self.initial: State = frozenset(fact[0] for fact in self._rows(self._static, INIT))
        self._models: collections.OrderedDict[State, joins.Tables] = collections.OrderedDict()

    def legal(self, state: State) -> dict[str, tuple[values.Value, ...]]:
        """Every role's legal moves, sorted by their text."""
        found: dict[str, list[values.Value]] = {role: [] for role in self.roles}
        for role, move in self._rows(self._model(state), LEGAL):
            if role in found:
                found[str(role)].append(move)
        return {role: tuple(sorted(moves, key=values.text)) for role, moves in found.items()}

    def next(self, state: State, joint: Joint) -> State:
        return frozenset(fact[0] for fact in self._rows(self._moved(state, joint), NEXT))

    def percepts(self, state: State, joint: Joint) -> dict[str, frozenset[values.Value]]:
        """What every player perceives of a joint move made in a state."""
        if self.sheet.language == 1:
            everything: frozenset[values.Value] = frozenset(("does", role, joint[role]) for role in self.roles)
            return dict.fromkeys(self.players, everything)
        seen: dict[str, set[values.Value]] = {role: set() for role in self.players}
        for role, percept in self._rows(self._moved(state, joint), SEES):
            if role in seen:
                seen[str(role)].add(percept)
        return {role: frozenset(percepts) for role, percepts in seen.items()}

    def is_terminal(self, state: State) -> bool:
        return bool(self._rows(self._model(state), TERMINAL))

    def goals(self, state: State) -> dict[str, tuple[int, ...]]:
        """Every player's goal values, sorted; a well-formed sheet gives one in every terminal state."""
        found: dict[str, set[int]] = {role: set() for role in self.players}
        for role, value in self._rows(self._model(state), GOAL):
            if role in found:
                found[str(role)].add(goal_value(value, self.sheet.name))
        return {role: tuple(sorted(goals)) for role, goals in found.items()}

    def tables(self, state: State, joint: Joint | None = None) -> joins.Tables:
        """Everything that holds in a state, or in a state with a joint move."""
        return self._model(state) if joint is None else self._moved(state, joint)

    def depends_on_move(self, relation: terms.Relation) -> bool:
        """Whether a relation holds of a joint move rather than of a state."""
        return relation in self._moved_relations

    def traced(self, state: State, joint: Joint | None = None) -> tuple[joins.Tables, datalog.Trace]:
        """The same, with the rule instance that first concluded each fact."""
        trace = dict(self._static_trace)
        with _explained_failures(self.sheet.name):
            tables = self._state_program.evaluate(self._given(state), self._budget(), trace)
            if joint is not None:
                trace = {key: origin for key, origin in trace.items() if key[0] not in self._moved_relations}
                tables = self._move_program.evaluate(tables | self._does(joint), self._budget(), trace)
        return tables, trace

    def _model(self, state: State) -> joins.Tables:
        model = self._models.get(state)
        if model is None:
            with _explained_failures(self.sheet.name):
                model = self._state_program.evaluate(self._given(state), self._budget())
            self._models[state] = model
            if len(self._models) > _KEPT_MODELS:
                self._models.popitem(last=False)
        return model

    def _moved(self, state: State, joint: Joint) -> joins.Tables:
        with _explained_failures(self.sheet.name):
            return self._move_program.evaluate(self._model(state) | self._does(joint), self._budget())

    def _given(self, state: State) -> joins.Tables:
        ordered = sorted(state, key=values.text)  # so that derivations are the same in every run
        return self._static | {TRUE: joins.Table((fluent,) for fluent in ordered)} | self._does({})

    def _does(self, joint: Joint) -> joins.Tables:
        return {DOES: joins.Table((role, joint[role]) for role in self.roles if role in joint)}

    @staticmethod
    def _rows(tables: joins.Tables, relation: terms.Relation) -> list[values.Fact]:
        return tables[relation].rows if relation in tables else []


@contextlib.contextmanager
def _explained_failures(sheet_name: str) -> Iterator[None]:
    try:
        yield
    except (joins.LimitError, datalog.UndefinedError) as failure:
        raise diagnostics.GdlError([explain_failure(failure)], sheet_name) from None


def explain_failure(failure: joins.LimitError | datalog.UndefinedError) -> diagnostics.Diagnostic:
    if isinstance(failure, datalog.UndefinedError):
        message = f"{diagnostics.shorten(failure)} depends on its own negation, so it is neither true nor false"
        return diagnostics.Diagnostic("negative-cycle", message, None, "break the circle of rules through `not`")
    code = "unbounded-term" if failure.deep else "evaluation-limit"
    hint = (
        "bound the term, e.g. count with (succ 1 2) facts instead of (s ?n)"
        if failure.deep
        else "the rule joins too much; split it into smaller relations"
    )
    return diagnostics.Diagnostic(code, f"evaluation of this rule stopped: {failure.what}", failure.rule.span, hint)
