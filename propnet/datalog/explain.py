"""Explains why an atom holds (its derivation), or why it does not (where each of its rules fails)."""

from collections.abc import Iterator

from gdlx.propnet.datalog import interpreter, joins, program, safety, transcript
from gdlx.propnet.syntax import diagnostics, ground_terms, terms

_MAX_LINES = 400
_SECONDS = 10.0


def explain_atom(game: interpreter.Interpreter, typed: str, moves: list[str]) -> list[str]:
    """Returns lines of text that explain a typed ground atom after the typed joint actions.

    Atoms that depend on a move (next, sees and what they use) are explained for the last of the joint actions.
    """
    relation, args = atom = _typed_atom(typed)
    steps = list(transcript.replay(game, moves))
    state = game.next(*steps[-1]) if steps else game.initial
    joint = None
    if relation == terms.DOES or game.depends_on_move(relation):
        if not steps:
            raise _no_move(relation)
        state, joint = steps[-1]
    tables, trace = game.evaluate_with_trace(state, joint)
    table = tables.get(relation)
    if table is not None and args in table.known:
        return list(_cut(_derivation(atom, trace, set(), 0)))
    return list(_cut(_failures(game, atom, tables)))


def _no_move(relation: terms.Relation) -> diagnostics.GdlError:
    message = f"`{diagnostics.shorten(relation[0])}` depends on a move, and none was passed"
    problem = diagnostics.Diagnostic("illegal-move", message, None, "pass joint actions with `moves=`")
    return diagnostics.GdlError([problem], "atom")


def _typed_atom(typed: str) -> "GroundAtom":
    parsed = ground_terms.from_text(typed, "atom")
    if len(parsed) != 1:
        problem = diagnostics.Diagnostic(
            "syntax", f"expected one atom, found {len(parsed)}", None, "e.g. (legal x noop)"
        )
        raise diagnostics.GdlError([problem], "atom")
    (value,) = parsed
    name, args = (value, ()) if isinstance(value, str) else (str(value[0]), value[1:])
    return (name.lower() if name.lower() in terms.KEYWORD_ARITY else name, len(args)), args


def _cut(lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number == _MAX_LINES:
            yield "..."
            return
        yield line


GroundAtom = tuple[terms.Relation, ground_terms.Fact]


def _derivation(atom: GroundAtom, trace: program.Trace, shown: set[GroundAtom], depth: int) -> Iterator[str]:
    text = "  " * depth + ground_terms.atom_text(atom[0][0], atom[1])
    if atom not in trace:
        yield f"{text}  {_GIVEN.get(atom[0], '(given)')}"
        return
    rule, bindings = trace[atom]
    place = f"line {rule.span.line}"
    if not rule.body:
        yield f"{text}  (fact, {place})"
        return
    if atom in shown:
        yield f"{text}  (see above)"
        return
    shown.add(atom)
    yield f"{text}  ({place})"
    for literal in rule.body:
        if isinstance(literal, terms.Atom):
            yield from _derivation(_ground(literal, bindings), trace, shown, depth + 1)
        else:
            free = {name: f"?{name}" for name in safety.negated_only(rule)}
            yield "  " * (depth + 1) + _literal_text(literal, bindings | free)


_GIVEN = {("true", 1): "(holds in the state)", ("does", 2): "(the move made)"}


def _ground(atom: terms.Atom, bindings: dict[str, ground_terms.GroundTerm]) -> GroundAtom:
    return atom.relation, tuple(ground_terms.from_term(arg, bindings) for arg in atom.args)


def _literal_text(literal: terms.Literal, bindings: dict[str, ground_terms.GroundTerm]) -> str:
    if isinstance(literal, terms.Not):
        relation, args = _ground(literal.atom, bindings)
        return f"(not {ground_terms.atom_text(relation[0], args)})  (does not hold)"
    assert isinstance(literal, terms.Distinct)
    left, right = (
        ground_terms.to_text(ground_terms.from_term(term, bindings)) for term in (literal.left, literal.right)
    )
    return f"{left} {'=' if literal.equal else '!='} {right}"


def _failures(game: interpreter.Interpreter, atom: GroundAtom, tables: joins.Tables) -> Iterator[str]:
    """For every rule whose head matches: the longest prefix of its body that can hold, and the literal that fails."""
    (name, _), args = atom
    yield f"{ground_terms.atom_text(name, args)} does not hold"
    rules = [rule for rule in game.rules if rule.head.relation == atom[0]]
    if not rules and any(rule.head.relation == atom[0] for rule in game.sheet.rules):
        yield f"  the game does not depend on `{name}`, so its rules are not evaluated"
        return
    fits = ((rule, _fit(rule.head, args)) for rule in rules)
    fitting = [(rule, fit) for rule, fit in fits if fit is not None and _satisfiable((), fit, rule, tables)]
    if atom[0] == terms.TRUE:
        yield "  it is not in the state; ask for the (next ..) of the move before, or for the (init ..)"
    elif atom[0] == terms.DOES:
        yield "  it is not the move that was made; ask for the (legal ..) to see whether it could be"
    elif not fitting:
        yield (
            f"  no rule concludes it ({len(rules)} rules conclude other `{name}`)"
            if rules
            else f"  no rule concludes `{name}`"
        )
    for rule, fit in fitting:
        yield f"  rule in line {rule.span.line}: {diagnostics.shorten(rule.head)}"
        reached: tuple[terms.Literal, ...] = ()
        for length in range(len(rule.body) + 1):
            if not _satisfiable(rule.body[:length], fit, rule, tables):
                break
            reached = rule.body[:length]
        for literal in reached:
            yield f"    can hold: {diagnostics.shorten(literal, 100)}"
        if len(reached) < len(rule.body):
            yield f"    fails at: {diagnostics.shorten(rule.body[len(reached)], 100)}"


def _fit(head: terms.Atom, args: ground_terms.Fact) -> list[terms.Literal] | None:
    """Returns equalities that unify a head with ground arguments; None if they do not unify."""
    equalities: list[terms.Literal] = []
    for pattern, value in zip(head.args, args, strict=True):
        if isinstance(pattern, terms.Symbol) and pattern.name != value:
            return None
        if isinstance(pattern, terms.Compound) and (
            isinstance(value, str) or (pattern.functor, len(pattern.args) + 1) != (value[0], len(value))
        ):
            return None
        equalities.append(terms.Distinct(pattern, _term(value, pattern), True, pattern.span))
    return equalities


def _term(value: ground_terms.GroundTerm, near: terms.Term) -> terms.Term:
    if isinstance(value, str):
        return terms.Symbol(value, near.span)
    return terms.Compound(str(value[0]), tuple(_term(arg, near) for arg in value[1:]), near.span)


def _satisfiable(prefix: terms.Body, fit: list[terms.Literal], rule: terms.Rule, tables: joins.Tables) -> bool:
    """Whether some bindings satisfy a prefix of a body; literals with unbound variables are ignored."""
    known = safety.bound_variables((*fit, *prefix)) | safety.negated_only(rule)
    usable = tuple(
        literal
        for literal in prefix
        if isinstance(literal, terms.Atom) or all(v.name in known for v in _variables(literal))
    )
    probe = terms.Rule(terms.Atom("probe", (), rule.span), (*fit, *usable), False, rule.span)
    try:
        return any(True for _ in joins.JoinPlan(probe).solutions(tables, tables, joins.Budget(seconds=_SECONDS)))
    except joins.LimitError as limit:
        raise diagnostics.GdlError([program.failure_to_diagnostic(limit)], rule.span.source.name) from None


def _variables(literal: terms.Literal) -> list[terms.Variable]:
    assert not isinstance(literal, terms.Or)
    return list(terms.variables_in(terms.literal_terms(literal)))
