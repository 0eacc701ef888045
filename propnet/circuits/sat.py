"""Translates circuits to answer set programs for clingo, to prove properties of all states: node k is atom n(k)."""

from collections.abc import Iterable, Iterator

import clingo

from gdlx.propnet.circuits import aig

_MAX_CONFLICTS = 20_000  # a limit on work, not time, so that the answer is the same on every machine
_WIDEST = 500  # literals of a rule; the grounder takes time with their square


def literal_to_asp(lit: aig.Literal) -> str:
    if lit <= aig.TRUE:
        return "#true" if lit else "#false"
    return f"{'not ' * (lit & 1)}n({lit >> 1})"


def gates_to_asp(circuit: aig.Circuit) -> Iterator[str]:
    """Yields the rules of the gates; the caller adds rules for the inputs."""
    for node, gate in enumerate(circuit.gates, circuit.inputs + 1):
        body = [literal_to_asp(literal) for literal in gate]
        if len(body) > _WIDEST:
            parts = [body[start : start + _WIDEST] for start in range(0, len(body), _WIDEST)]
            body = [f"part({node},{number})" for number in range(len(parts))]
            yield from (f"{head} :- {', '.join(part)}." for head, part in zip(body, parts, strict=True))
        yield f"n({node}) :- {', '.join(body)}."


def is_unsatisfiable(lines: Iterable[str]) -> bool:
    """Whether clingo proves within the work limit that a program has no solution."""
    control = clingo.Control(["--warn=none", f"--solve-limit={_MAX_CONFLICTS}"], logger=lambda code, message: None)
    control.add("base", [], "\n".join(lines))
    control.ground([("base", [])])
    return bool(control.solve().unsatisfiable)
