"""Grounds rules with clingo in a child process with limits.

Grounding covers everything that could ever hold: `true` ranges over the heads of `init` and `next`, `does` over those
of `legal`. Names are replaced by integers, so that no text of a sheet reaches the grounder.
"""

import contextlib
import dataclasses
import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from gdlx.propnet.common import deadlines, limits
from gdlx.propnet.datalog import stratify
from gdlx.propnet.grounding import (
    drop_arguments,
    inline_static,
    magic_sets,
    project_negated,
    share_bodies,
    split_joins,
    unfold_negated,
)
from gdlx.propnet.syntax import diagnostics, ground_terms, rulesheet, terms

Ints = npt.NDArray[np.int32]
_GRACE_SECONDS = 8.0  # the child stops at its limits and reports which, unless a single join takes longer


@dataclasses.dataclass(frozen=True)
class GroundRules:
    """Axes: N ground rules, L literals of all bodies.

    Atoms are numbered from 1; a body literal is an atom, or minus the atom if it is negated.
    """

    heads: Ints  # [N]
    starts: npt.NDArray[np.int64]  # [N + 1] where each body starts in `body`
    body: Ints  # [L]
    relation: Ints  # [atoms + 1] number of the relation of each atom, -1 for none
    relations: tuple[terms.Relation, ...]
    atoms: Mapping[terms.Relation, Mapping[ground_terms.Fact, int]]  # of the keyword relations
    peak_mb: float
    seconds: float


class _Names:
    """Numbers symbols and relations."""

    def __init__(self) -> None:
        self.symbols: dict[str, int] = {}
        self.relations: dict[terms.Relation, int] = {}

    def symbol(self, name: str) -> int:
        return self.symbols.setdefault(name, len(self.symbols))

    def relation(self, relation: terms.Relation) -> int:
        return self.relations.setdefault(relation, len(self.relations))


def _term(term: terms.Term, names: _Names, variables: dict[str, int]) -> str:
    if isinstance(term, terms.Variable):
        return f"V{variables.setdefault(term.name, len(variables))}"
    if isinstance(term, terms.Symbol):
        return str(names.symbol(term.name))
    args = ",".join(_term(arg, names, variables) for arg in term.args)
    return f"f({names.symbol(term.functor)},{args})"


def _atom(atom: terms.Atom, names: _Names, variables: dict[str, int]) -> str:
    args = ",".join(_term(arg, names, variables) for arg in atom.args)
    return f"r{names.relation(atom.relation)}" + (f"({args})" if args else "")


def _rule(rule: terms.Rule, names: _Names) -> str:
    variables: dict[str, int] = {}
    body = []
    for literal in rule.body:
        if isinstance(literal, terms.Atom):
            body.append(_atom(literal, names, variables))
        elif isinstance(literal, terms.Not):
            body.append(f"not {_atom(literal.atom, names, variables)}")
        elif isinstance(literal, terms.Distinct):
            left, right = _term(literal.left, names, variables), _term(literal.right, names, variables)
            body.append(f"{left}{'=' if literal.equal else '!='}{right}")
    head = _atom(rule.head, names, variables)
    return f"{head} :- {', '.join(body)}." if body else f"{head}."


def translate(rules: Iterable[terms.Rule], names: _Names) -> str:
    """Returns the program for the grounder: the rules, and choice rules for `true` and `does`."""
    number = {relation: names.relation(relation) for relation in (*terms.ROOT_RELATIONS, terms.TRUE, terms.DOES)}
    true, does = number[terms.TRUE], number[terms.DOES]
    lines = [_rule(rule, names) for rule in rules]
    lines += [f"{{r{true}(F)}} :- r{number[root]}(F)." for root in (terms.INIT, terms.NEXT)]
    lines.append(f"{{r{does}(R,M)}} :- r{number[terms.LEGAL]}(R,M), r{number[terms.ROLE]}(R).")
    return "\n".join(lines)


def rewrite_rules(rules: Iterable[terms.Rule], static: frozenset[terms.Relation]) -> tuple[terms.Rule, ...]:
    """Returns equivalent rules with fewer ground instances."""
    fresh = itertools.count()
    merged = share_bodies.merge_shared_bodies(drop_arguments.drop_unused_arguments(rules), fresh)
    parts = split_joins.split_rules(inline_static.unfold(merged, static), fresh)
    shared = share_bodies.merge_shared_bodies(parts, fresh)
    return magic_sets.apply_magic_sets(unfold_negated.unfold(shared, fresh), static, fresh)


def ground(sheet: rulesheet.Rulesheet, within: limits.Limits = limits.Limits(), *, rewrite: bool = True) -> GroundRules:
    """Grounds a checked sheet; raises a GdlError that names the rule if a limit is reached."""
    stages = stratify.split_into_stages(project_negated.project(stratify.needed_rules(sheet)))
    rules = tuple(dict.fromkeys((*stages.static, *stages.state, *stages.move)))
    if rewrite:
        rules = rewrite_rules(rules, frozenset(rule.head.relation for rule in stages.static))
    names = _Names()
    program = translate(rules, names)
    request = {
        "program": program,
        "shown": [names.relation(r) for r in (*terms.ROOT_RELATIONS, terms.TRUE, terms.DOES)],
        "max_seconds": min(within.seconds, deadlines.seconds_left()),
        "max_bytes": within.memory_mb * 2**20,
        "max_rules": within.rules,
    }
    started = time.monotonic()
    header, arrays = _run_child(request, within)
    if header["stopped"]:
        raise diagnostics.GdlError([_limit_diagnostic(header, rules, names, within)], sheet.name)
    return _decode(header, arrays, names, time.monotonic() - started)


def _run_child(request: dict[str, Any], within: limits.Limits) -> tuple[dict[str, Any], list[Ints]]:
    """Returns the header and the arrays of the child: heads, body lengths, body literals, relations of atoms."""
    # -P: modules in the current folder must not shadow those of gdlx.
    command = [sys.executable, "-P", "-m", "gdlx.propnet.grounding.worker"]
    # A new process group: Ctrl-C interrupts only this process, which kills the child.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0) as child:
        killer = _KillTimer(child, request["max_seconds"] + max(_GRACE_SECONDS, within.seconds / 4))
        with killer, contextlib.suppress(BrokenPipeError):
            stdin, stdout = cast(BinaryIO, child.stdin), cast(BinaryIO, child.stdout)
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()  # not closed: the child exits when it is, also if this process is killed
            line = stdout.readline()
            if line.endswith(b"\n"):
                header = json.loads(line)
                if header["stopped"]:
                    return header, []
                sizes = [4 * header[key] for key in ("count", "count", "literals", "relations")]
                parts = [stdout.read(size) for size in sizes]
                if [len(part) for part in parts] == sizes:  # otherwise it was killed while writing
                    return header, [np.frombuffer(part, np.int32) for part in parts]
    if child.returncode > 0:  # not killed by a limit: its traceback is on stderr
        raise RuntimeError("the grounder's process failed")
    what = "seconds" if killer.fired else "memory"
    return {"stopped": what, "counts": {}, "count": 0}, []


class _KillTimer(contextlib.AbstractContextManager["_KillTimer"]):
    """Kills a child that is still running after some seconds."""

    def __init__(self, child: "subprocess.Popen[bytes]", seconds: float) -> None:
        self.fired = False
        self._child = child
        self._timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self._fire)
        self._timer.daemon = True
        self._timer.start()

    def _fire(self) -> None:
        self.fired = True
        self._child.kill()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if _[0] is not None:
            self._child.kill()


def _limit_diagnostic(
    header: dict[str, Any], rules: tuple[terms.Rule, ...], names: _Names, within: limits.Limits
) -> diagnostics.Diagnostic:
    """Blames the rule with the most instances so far or, if the grounder reported none, the one that joins most."""
    limit = {
        "rules": f"{within.rules:,} ground rules (`Limits.rules=`)",
        "seconds": f"{within.seconds:g} seconds (`Limits.seconds=`)",
        "memory": f"{within.memory_mb:,} MB of memory (`Limits.memory_mb=`)",
    }[header["stopped"]]
    counts: dict[str, int] = header["counts"]
    candidates = rules
    if any(counts.values()):
        worst = int(max(counts, key=lambda number: counts[number]))
        candidates = tuple(r for r in rules if names.relation(r.head.relation) == worst and r.body) or rules
    rule = max(candidates, key=lambda r: len({v.name for t in terms.rule_terms(r) for v in terms.variables_in([t])}))
    share = counts.get(str(names.relation(rule.head.relation)), 0)
    origin = f"; {share:,} of {header['count']:,} ground rules so far come from it" if share > 1 else ""
    blamed = f"most of it for this rule{origin}" if any(counts.values()) else "perhaps for this rule, which joins most"
    message = f"grounding needs more than {limit}, {blamed}"
    hint = "split the rule into relations with fewer joined variables, or raise the limit"
    return diagnostics.Diagnostic("grounding-limit", message, rule.span, hint)


def _decode(header: dict[str, Any], arrays: list[Ints], names: _Names, seconds: float) -> GroundRules:
    heads, sizes, body, relation_data = arrays
    pairs = relation_data.reshape(-1, 2)
    highest = max((int(part.max()) for part in (pairs[:, 0], heads) if len(part)), default=0)
    relation = np.full(highest + 1, -1, np.int32)
    relation[pairs[:, 0]] = pairs[:, 1]
    by_number = {number: name for name, number in names.relations.items()}
    symbols = list(names.symbols)
    atoms = {
        by_number[int(number)]: {_fact(text, symbols): atom for atom, text in entries}
        for number, entries in header["names"].items()
    }
    return GroundRules(
        heads=heads,
        starts=np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]),
        body=body,
        relation=relation,
        relations=tuple(names.relations),
        atoms=atoms,
        peak_mb=header["peak_bytes"] / 2**20,
        seconds=seconds,
    )


def _fact(text: str, symbols: list[str]) -> ground_terms.Fact:
    """Parses the arguments of an atom as the grounder prints it, e.g. `r3(1,f(4,2))`."""
    _, bracket, args = text.partition("(")
    if not bracket:
        return ()
    return tuple(_value(part, symbols) for part in json.loads("[" + args.replace("f(", "[").replace(")", "]")))


def _value(part: Any, symbols: list[str]) -> ground_terms.GroundTerm:
    if isinstance(part, int):
        return symbols[part]
    return tuple(_value(inner, symbols) for inner in part)
