"""Every variable must be bound by a positive literal of its rule's body, or occur in a single `not`."""

from gdlx.propnet.checks import overview
from gdlx.propnet.datalog import safety
from gdlx.propnet.grounding import project_negated
from gdlx.propnet.syntax import diagnostics, kif, terms

_ROLE_FIRST = ("role", "does", "legal", "goal", "sees", "input")  # relations whose first argument is a role


def check(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    for rule in facts.rules:
        is_needed = rule.head.relation in facts.needed
        if rule.is_fact:
            _check_fact(rule, is_needed, log)
            continue
        role = safety.unbound_role(rule)
        if role is not None:
            message = f"variable {_show(role)} is not bound by the body; it is taken to be any role"
            log.add("unbound-role", message, role.span, f"add (role {_show(role)}) to the body")
        _check_negated_only(rule, facts, log)
        for variable in safety.unsafe_variables(safety.bind_role(rule)):
            message = f"unsafe rule: no positive literal of the body binds variable {_show(variable)}"
            if is_needed:
                log.add("unsafe-variable", message, variable.span, _binding_hint(rule, variable, facts))
            else:
                hint = "nothing uses this rule; remove it, or bind the variable"
                log.add("unsafe-unused-rule", message, variable.span, hint)


def _check_fact(rule: terms.Rule, is_needed: bool, log: kif.DiagnosticLog) -> None:
    seen = set()
    head = ""
    for variable in terms.variables_in(rule.head.args):
        if variable.name not in seen:
            seen.add(variable.name)
            message = f"variable {_show(variable)} in a fact"
            if not is_needed:
                hint = "nothing uses this fact; remove it, or write a rule that binds the variable"
                log.add("unsafe-unused-rule", message, variable.span, hint)
                continue
            head = head or diagnostics.shorten(rule.head)  # once: it may be long, and have many variables
            hint = f"write a rule that binds it: (<= {head} (.. {_show(variable)} ..))"
            log.add("variable-in-fact", message, variable.span, hint)


def _check_negated_only(rule: terms.Rule, facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    """Warns about a negated literal with variables of its own: not every system reads it as gdlx does."""
    free = safety.negated_only(rule)
    if not free:
        return
    for atom, positive in terms.atoms_in(rule.body):
        not_bound = list(dict.fromkeys(v for v in terms.variables_in(atom.args) if v.name in free))
        if positive or not not_bound:
            continue
        names = " and ".join(map(_show, not_bound[:3])) + (" .." if len(not_bound) > 3 else "")
        occur = "occurs" if len(not_bound) == 1 else "occur"
        message = (
            f"variable{'s' * (len(not_bound) > 1)} {names} {occur} only in this `not`, which is read as `there is none`"
        )
        hint = f"other systems may refuse it; write {_helper(atom, free, facts)}"
        log.add("negated-variable", message, not_bound[0].span, hint)


def _helper(atom: terms.Atom, free: frozenset[str], facts: overview.SheetAnalysis, more: str = "") -> str:
    """Describes the helper relation that replaces a negated literal with variables of its own."""
    inner = atom.args[0] if atom.relation == terms.TRUE else atom
    meant = inner.functor if isinstance(inner, terms.Compound) else atom.name
    name = f"some_{meant[:30]}"
    while any(relation[0] == name for relation in facts.rules_by_head):
        name += "_"
    head = diagnostics.shorten(project_negated.helper_rule(name, atom, free).head)
    return f"(<= {head} {diagnostics.shorten(atom)}{more}) and (not {head})"


def _binding_hint(rule: terms.Rule, variable: terms.Variable, facts: overview.SheetAnalysis) -> str:
    shown = _show(variable)
    if _is_role(rule, variable):
        return f"bind it in the body, e.g. (role {shown})"
    negated = [atom for atom, positive in terms.atoms_in(rule.body) if not positive and _occurs(variable, atom.args)]
    if _occurs(variable, rule.head.args) or not negated:
        return f"bind it in the body by a relation that lists its values, e.g. (value {shown}) with facts (value 1) .."
    helper = _helper(negated[0], frozenset([variable.name]), facts, more=" .." if len(negated) == 1 else "")
    what = f"the literals with {shown}" if len(negated) == 1 else "each `not`"
    return f"if there must be none, use a helper relation for {what}: {helper}; otherwise bind {shown} in the body"


def _is_role(rule: terms.Rule, variable: terms.Variable) -> bool:
    """Whether a variable stands where only roles can stand."""
    atoms = (rule.head, *(atom for atom, _ in terms.atoms_in(rule.body)))
    return any(atom.name in _ROLE_FIRST and atom.args and atom.args[0] == variable for atom in atoms)


def _occurs(variable: terms.Variable, items: tuple[terms.Term, ...]) -> bool:
    return any(other == variable for other in terms.variables_in(items))


def _show(variable: terms.Variable) -> str:
    return diagnostics.shorten(variable, 30)
