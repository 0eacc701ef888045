"""Checks names: missing, undefined, unused, or spelled in two ways."""

from collections.abc import Iterable, Iterator, Mapping

from gdlx.propnet.checks import keywords, overview
from gdlx.propnet.common import graphs
from gdlx.propnet.syntax import diagnostics, kif, rulesheet, source, terms

_REQUIRED = {  # what is missing without it, and what to write
    "role": ("", "declare the players, e.g. (role white)"),
    "legal": ("", "say which moves are legal, e.g. (legal white noop)"),
    "goal": ("", "say what each role gets, e.g. (goal white 100)"),
    "terminal": (", so the game never ends", "say when the game ends, e.g. (<= terminal (true over))"),
}
_shorten = diagnostics.shorten


def check(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    _check_required(facts, log)
    _check_arities(facts, log)
    _check_case(facts, log)
    _check_undefined(facts, log)
    _check_unused(facts, log)
    _check_fluents_and_moves(facts, log)
    _check_roles(facts, log)
    _check_goal_values(facts, log)
    _check_keywords_in_bodies(facts, log)
    _check_constant_distinct(facts, log)


def _check_required(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    heads = {rule.head.name for rule in facts.rules}
    for name, (consequence, hint) in _REQUIRED.items():
        if name not in heads and name not in facts.sheet.unparsed_names:
            log.add(f"missing-{name}", f"the sheet has no `{name}` rule{consequence}", None, hint)


def _atoms(facts: overview.SheetAnalysis) -> Iterator[terms.Atom]:
    for rule in facts.rules:
        yield rule.head
        yield from (atom for atom, _ in terms.atoms_in(rule.body))


def _compounds(items: Iterable[terms.Term]) -> Iterator[terms.Compound]:
    for term in items:
        if isinstance(term, terms.Compound):
            yield term
            yield from _compounds(term.args)


def _check_arities(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    relations = ((a.name, len(a.args), a.span) for a in _atoms(facts) if a.name not in terms.KEYWORD_ARITY)
    functions = ((c.functor, len(c.args), c.span) for rule in facts.rules for c in _compounds(terms.rule_terms(rule)))
    for what, uses in (("relation", relations), ("function", functions)):
        first: dict[str, tuple[int, source.Span]] = {}
        reported: set[tuple[str, int]] = set()
        for name, arity, span in uses:
            known, place = first.setdefault(name, (arity, span))
            if arity != known and (name, arity) not in reported:
                reported.add((name, arity))
                message = f"{what} `{_shorten(name)}` has {arity} arguments here and {known} in line {place.line}"
                log.add("two-arities", message, span, "they are two different ones; give them two names")


def _check_case(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    seen: dict[str, dict[str, source.Span]] = {}
    for rule in facts.rules:
        variables: dict[str, dict[str, source.Span]] = {}
        for atom in (rule.head, *(atom for atom, _ in terms.atoms_in(rule.body))):
            if atom.name not in terms.KEYWORD_ARITY:
                _note_spelling(seen, atom.name, atom.span, log)
        for term in terms.rule_terms(rule):
            for symbol in terms.symbols_in(term):
                _note_spelling(seen, symbol.name, symbol.span, log)
            for compound in _compounds([term]):
                _note_spelling(seen, compound.functor, compound.span, log)
            for variable in terms.variables_in([term]):
                _note_spelling(variables, str(variable), variable.span, log)


def _note_spelling(
    seen: dict[str, dict[str, source.Span]], name: str, span: source.Span, log: kif.DiagnosticLog
) -> None:
    spellings = seen.setdefault(name.lower(), {})
    if name not in spellings:
        if spellings:
            other, place = next(iter(spellings.items()))
            message = f"`{_shorten(name)}` differs from `{_shorten(other)}` in line {place.line} only by case"
            log.add(
                "case-variants",
                message,
                span,
                "they are different names; use one spelling, or read with `fold_case=True`",
            )
        spellings[name] = span


def _check_undefined(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    fluents = _functors(rule.head for rule in facts.rules if rule.head.name in ("init", "next"))
    reported = set()
    for rule in facts.rules:
        for atom, _ in terms.atoms_in(rule.body):
            relation = atom.relation
            if relation in facts.rules_by_head or relation in overview.INPUT_RELATIONS or relation in reported:
                continue
            reported.add(relation)
            if atom.name in facts.sheet.unparsed_names or atom.name in _REQUIRED:  # reported as missing
                continue
            meant_fluent = fluents is not None and relation in fluents
            hint = f"did you mean (true {_shorten(atom)})?" if meant_fluent else "define it, or correct its spelling"
            if keyword := keywords.closest(relation):
                hint = f"did you mean `{keyword}`?"
            message = f"nothing concludes `{_shorten(atom.name)}`, so it is always false"
            log.add("undefined-relation", message, atom.span, hint)


def _check_unused(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    for relation, rules in facts.rules_by_head.items():
        name, _ = relation
        component = facts.component.get(relation, frozenset((relation,)))
        used = any(not facts.users.get(member, set()) <= component for member in component)
        if name in terms.KEYWORD_ARITY or used or name in facts.sheet.unparsed_names:
            continue
        hint = "remove it, or use it; for a fluent write (next ..)"
        if keyword := keywords.closest(relation, in_head=True):
            hint = f"did you mean `{keyword}`? otherwise remove it, or use it"
        log.add("unused-relation", f"nothing uses `{_shorten(name)}`", rules[0].head.span, hint)


def _functors(atoms: Iterable[terms.Atom]) -> set[terms.Relation] | None:
    """Returns names and arities of the last arguments; None if one is a variable, which matches anything."""
    functors = set()
    for atom in atoms:
        inner = atom.args[-1]
        if isinstance(inner, terms.Variable):
            return None
        functors.add((inner.name, 0) if isinstance(inner, terms.Symbol) else (inner.functor, len(inner.args)))
    return functors


def _check_fluents_and_moves(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    for code, what, used, makers in (
        ("undefined-fluent", "fluent", "true", ("init", "next")),
        ("undefined-move", "move", "does", ("legal",)),
    ):
        known = _functors(rule.head for rule in facts.rules if rule.head.name in makers)
        if known is None:
            continue
        for rule in facts.rules:
            for atom, _ in terms.atoms_in(rule.body):
                names = _functors([atom]) if atom.name == used else None
                if names and not names <= known:
                    known |= names
                    name = next(iter(names))[0]
                    if name in facts.sheet.unparsed_names:
                        continue
                    message = f"{what} `{_shorten(name)}` is never made by {' or '.join(f'`{m}`' for m in makers)}"
                    log.add(
                        code,
                        message,
                        atom.span,
                        "it can never hold; correct its spelling or number of arguments",
                    )


def _check_roles(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    declared: dict[str, source.Span] = {}
    complete = True
    for rule in facts.rules_by_head.get(("role", 1), []):
        role = rule.head.args[0]
        if isinstance(role, terms.Compound):
            log.add(
                "compound-role",
                f"role {_shorten(role)} is not a name",
                role.span,
                "give every role a name of its own",
            )
        complete &= isinstance(role, terms.Symbol) and rule.is_fact
        declared.setdefault(str(role), rule.head.span)
    if complete and list(declared) == [terms.RANDOM]:
        message = f"the only role is `{terms.RANDOM}`, which is chance, not a player"
        log.add("missing-role", message, declared[terms.RANDOM], _REQUIRED["role"][1])
    if not declared or not complete:
        return  # roles derived by rules cannot be determined from the text alone
    _check_percepts(facts, log, declared)
    known = {*declared, *facts.sheet.unparsed_names}
    for atom in _atoms(facts):
        if atom.name in ("legal", "does", "goal", "sees"):
            role = atom.args[0]
            if not isinstance(role, terms.Variable) and str(role) not in known:
                known.add(str(role))
                log.add("unknown-role", f"`{_shorten(role)}` is not a role", role.span,
                        f"the roles are {_shorten(', '.join(declared), 200)}")  # fmt: skip
    by_chance = "" if terms.RANDOM in declared else "; a role whose moves are drawn by chance is called random"
    for code, name in (("role-without-legal", "legal"), ("role-without-goal", "goal")):
        heads = [rule.head.args[0] for rule in facts.rules_by_head.get((name, 2), [])]
        if not heads or name in facts.sheet.unparsed_names or any(isinstance(role, terms.Variable) for role in heads):
            continue
        named = set(map(str, heads))
        for role_name, span in declared.items():
            ignored = name == "goal" and role_name == terms.RANDOM
            if not ignored and role_name not in named:
                log.add(
                    code,
                    f"role `{_shorten(role_name)}` has no `{name}` rule",
                    span,
                    f"add a ({name} {_shorten(role_name)} ..) rule" + by_chance * (name == "goal"),
                )


def _check_percepts(facts: overview.SheetAnalysis, log: kif.DiagnosticLog, roles: Mapping[str, source.Span]) -> None:
    """Warns where a role `random` alone makes the sheet GDL-II, whose players perceive only what `sees` rules say."""
    sheet = facts.sheet
    if sheet.language == 1 or terms.RANDOM not in roles or rulesheet.stated_language(sheet.source) == 2:
        return
    if ("sees", 2) not in facts.rules_by_head and "sees" not in sheet.unparsed_names:
        message = "the players perceive nothing: there is no `sees` rule, and a role `random` makes this GDL-II"
        hint = "write (sees ..) rules, or read it as GDL, where everybody sees all moves: --gdl 1, or ; gdlx: gdl-i"
        log.add("no-percepts", message, roles[terms.RANDOM], hint)


def _check_goal_values(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    for rule in facts.rules_by_head.get(("goal", 2), []):
        value = rule.head.args[1]
        if isinstance(value, terms.Variable):
            continue
        # int() would also accept underscores and the digits of other scripts.
        digits = str(value).removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 10 and 0 <= int(str(value)) <= 100):
            message = f"goal value `{_shorten(value)}` is not an integer from 0 to 100"
            log.add("goal-value", message, value.span, "goals are integers from 0 (lost) to 100 (won)")


def _check_keywords_in_bodies(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    """`next` is allowed in bodies only for percepts; `init` only for declarations."""
    used_for = {root: _used_for(facts, root) for root in _ROOTS}
    everything_but_percepts = set[terms.Relation]().union(*(used_for[root] for root in _ROOTS if root != ("sees", 2)))
    everything = everything_but_percepts | used_for["sees", 2]
    wrong = {"next": everything_but_percepts, "init": everything, "base": everything, "input": everything}
    for rule in facts.rules:
        for atom, _ in terms.atoms_in(rule.body):
            if atom.name not in wrong or atom.relation != (atom.name, terms.KEYWORD_ARITY[atom.name]):
                continue
            if rule.head.relation in wrong[atom.name]:
                hint = "write (true ..) for what holds now" if atom.name in ("next", "init") else "it is only a hint"
                log.add("keyword-in-body", f"`{atom.name}` stands in the body of a rule", atom.span, hint)


def _check_constant_distinct(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    for rule in facts.rules:
        for literal in terms.literals_in(rule.body):
            if not isinstance(literal, terms.Distinct) or literal.equal:  # an equality is reported by the parser
                continue
            if not any(terms.variables_in((literal.left, literal.right))):
                holds = literal.left != literal.right
                message = f"{_shorten(literal)} compares two constants, so it {'always' if holds else 'never'} holds"
                log.add("constant-distinct", message, literal.span, "is the `?` of a variable missing?")


_ROOTS = tuple((name, terms.KEYWORD_ARITY[name]) for name in overview.ROOT_NAMES)


def _used_for(facts: overview.SheetAnalysis, root: terms.Relation) -> set[terms.Relation]:
    """Relations that a keyword is derived from, including itself, but not through another keyword."""
    past_keywords = {head: body for head, body in facts.edges.items() if head == root or head not in _ROOTS}
    return graphs.reachable(past_keywords, [root]) - (set(_ROOTS) - {root})
