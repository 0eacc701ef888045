"""Circuits as programs for clingo's solver, for questions about all states at once: node k is the atom n(k)."""

from collections.abc import Iterable, Iterator

import clingo

from gdlx.propnet.circuits import aig

_MAX_CONFLICTS = 20_000  # work, not time, so that the answer is the same on every machine


def literal_to_asp(lit: aig.Literal) -> str:
    if lit <= aig.TRUE:
        return "#true" if lit else "#false"
    return f"{'not ' * (lit & 1)}n({lit >> 1})"


def gates_to_asp(whole: aig.Circuit) -> Iterator[str]:
    """The rules of the gates; the inputs are the caller's to choose."""
    for node, gate in enumerate(whole.gates, whole.inputs + 1):
        yield f"n({node}) :- {', '.join(map(literal_to_asp, gate))}."


def is_unsatisfiable(lines: Iterable[str]) -> bool:
    """Whether a program is proved to have no solution within the limit of work."""
    control = clingo.Control(["--warn=none", f"--solve-limit={_MAX_CONFLICTS}"], logger=lambda code, message: None)
    control.add("base", [], "\n".join(lines))
    control.ground([("base", [])])
    return bool(control.solve().unsatisfiable)
