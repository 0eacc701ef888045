"""Every variable must be bound by a positive literal of its rule's body."""

from gdlx.propnet.checks import overview
from gdlx.propnet.datalog import safety
from gdlx.propnet.syntax import diagnostics, kif, terms


def check(facts: overview.SheetAnalysis, log: kif.DiagnosticLog) -> None:
    for rule in facts.rules:
        if rule.is_fact:
            _check_fact(rule, log)
            continue
        role = safety.unbound_role(rule)
        if role is not None:
            message = f"variable {_show(role)} is not bound by the body; it is taken to be any role"
            log.add("unbound-role", message, role.span, f"add (role {_show(role)}) to the body")
        for variable in safety.unsafe_variables(safety.bind_role(rule)):
            message = f"unsafe rule: no positive literal of the body binds variable {_show(variable)}"
            if facts.needed.isdisjoint({rule.head.relation}):
                hint = "nothing uses this rule; remove it, or bind the variable"
                log.add("unsafe-unused-rule", message, variable.span, hint)
            else:
                hint = f"bind it in the body, e.g. (role {_show(variable)}) or (index {_show(variable)})"
                log.add("unsafe-variable", message, variable.span, hint)


def _check_fact(rule: terms.Rule, log: kif.DiagnosticLog) -> None:
    seen = set()
    head = ""
    for variable in terms.variables_in(rule.head.args):
        if variable.name not in seen:
            seen.add(variable.name)
            head = head or diagnostics.shorten(rule.head)  # once: it may be long, and have many variables
            hint = f"write a rule that binds it: (<= {head} (.. {_show(variable)} ..))"
            log.add("variable-in-fact", f"variable {_show(variable)} in a fact", variable.span, hint)


def _show(variable: terms.Variable) -> str:
    return diagnostics.shorten(variable, 30)
