"""Says which counters of an exploding rule to cut: numbers that facts allow and that no match may ever reach."""

import contextlib
import dataclasses
import random
import time
from collections.abc import Iterable, Iterator, Mapping

from gdlx.propnet.datalog import interpreter, joins, stratify
from gdlx.propnet.grounding import argument_values
from gdlx.propnet.syntax import diagnostics, ground_terms, rulesheet, source, terms

_LEAST_VALUES = 16  # fewer are not worth cutting
_SECONDS = 3.0  # of random play
_STEPS = 200
_FACTS = 100_000  # of one state


@contextlib.contextmanager
def explained(sheet: rulesheet.Rulesheet) -> Iterator[None]:
    """Adds to errors of the grounder which numbers to cut."""
    try:
        yield
    except diagnostics.GdlError as error:
        problems = [_with_advice(sheet, problem) for problem in error.diagnostics]
        raise diagnostics.GdlError(problems, sheet.name) from None


def _with_advice(sheet: rulesheet.Rulesheet, problem: diagnostics.Diagnostic) -> diagnostics.Diagnostic:
    advice = _advise(sheet, problem.span) if problem.code == "grounding-limit" and problem.span is not None else None
    return problem if advice is None else dataclasses.replace(problem, hint=f"{advice}; or {problem.hint}")


def _advise(sheet: rulesheet.Rulesheet, span: source.Span) -> str | None:
    """Returns which numbers the variables of a rule at a place may be, why, and which random matches reach."""
    rules = stratify.needed_rules(sheet)
    values = argument_values.ArgumentValues(rules)
    ranges: dict[int, list[str]] = {}
    for part in (rule for rule in rules if rule.span == span):
        for name in dict.fromkeys(v.name for v in terms.variables_in(terms.rule_terms(part))):
            symbols = values.symbols(terms.Variable(name, part.span), part.body) or frozenset()
            if len(symbols) >= _LEAST_VALUES and all(map(str.isdecimal, symbols)):
                names = ranges.setdefault(max(map(int, symbols)), [])
                names += [f"?{name}"] if f"?{name}" not in names else []
    if not ranges:
        return None
    highest = max(ranges, key=lambda number: (len(ranges[number]), number))
    sources = dict.fromkeys(f"`{fact.head.name}`" for fact in rules if not fact.body and _mentions(fact, highest))
    advice = f"{_list(ranges[highest])} may be any number up to {highest}"
    advice += f", because of the facts of {_list(list(sources)[:3])}" if sources else ""
    reached = _reached(sheet, {functor for part in rules if part.span == span for functor in _functors(part)})
    if reached is None or reached >= highest:
        return f"{advice}: remove the facts with numbers that no match reaches"
    return f"{advice}, but random matches reach {reached} at most: remove the facts with numbers that no match reaches"


def _list(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _mentions(fact: terms.Rule, number: int) -> bool:
    return any(isinstance(arg, terms.Symbol) and arg.name == str(number) for arg in fact.head.args)


def _functors(rule: terms.Rule) -> Iterator[str]:
    """Yields the names of the fluents that a rule asks for."""
    for atom, _ in terms.atoms_in(rule.body):
        if atom.relation == terms.TRUE and isinstance(atom.args[0], terms.Compound):
            yield atom.args[0].functor


def _reached(sheet: rulesheet.Rulesheet, functors: set[str]) -> int | None:
    """Returns the largest number in the fluents of these names, or in all, in the states of some random matches."""
    deadline = time.monotonic() + _SECONDS
    rng = random.Random(0)
    numbers = [0]
    matches = 0
    try:
        game = interpreter.Interpreter(sheet, lambda: joins.Budget(_FACTS, max(deadline - time.monotonic(), 0.0)))
        while time.monotonic() < deadline and matches < 100:
            for state in _random_match(game, rng):
                relevant = [fluent for fluent in state if isinstance(fluent, tuple) and fluent[0] in functors]
                numbers += _numbers(relevant or state)
            matches += 1
    except diagnostics.GdlError:  # out of time: what was seen until then counts
        pass
    return max(numbers) if matches else None


def _random_match(game: interpreter.Interpreter, rng: random.Random) -> Iterator[interpreter.State]:
    state = game.initial
    for _ in range(_STEPS):
        yield state
        moves: Mapping[str, tuple[ground_terms.GroundTerm, ...]] = game.legal(state)
        if game.is_terminal(state) or not all(moves.values()):
            return
        state = game.next(state, {role: rng.choice(choices) for role, choices in moves.items()})


def _numbers(items: Iterable[ground_terms.GroundTerm]) -> Iterator[int]:
    for term in items:
        if isinstance(term, tuple):
            yield from _numbers(term)
        elif term.isdecimal():
            yield int(term)
