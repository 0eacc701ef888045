"""Inlines calls of wide static relations, so that `split_joins` can split their definitions.

`(set ?a ?b ?c ?d)`, four pieces that share one of four properties, has 27 120 instances; joined with four cells of ten
lines that is a quarter of a million ground rules. Its definition constrains each piece separately, and splits well. So
does that of two squares that differ in one of their coordinates; there the caller becomes two rules.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

from gdlx.propnet.syntax import terms

_LEAST_ARGUMENTS = 4  # narrower relations have few instances, and are cheaper to look up than to inline
_LONGEST_BODY = 100  # relations that call each other twice would double it each time
_MOST_RULES = 8  # that one caller may become


def unfold(rules: Iterable[terms.Rule], static: frozenset[terms.Relation]) -> tuple[terms.Rule, ...]:
    """Unfolds calls of suitable relations; `static` are relations that never change."""
    index = _RuleIndex(rules)
    fresh = itertools.count()
    for relation in sorted(static):
        definition = index.rules_of(relation)
        if not _should_unfold(definition):
            continue
        callers = index.callers(relation)
        unfolded = {caller: _unfolded(index.rules[caller], definition, fresh) for caller in callers}
        if all(unfolded.values()) and not any(index.rules[caller].head.relation == relation for caller in callers):
            index.remove(relation)
            for caller, replacement in unfolded.items():
                index.replace(caller, replacement)
    return tuple(index.rules[number] for number in sorted(index.rules))


class _RuleIndex:
    """Rules by number, and the rules that define and call each relation."""

    def __init__(self, rules: Iterable[terms.Rule]) -> None:
        self.rules: dict[tuple[int, ...], terms.Rule] = {}  # a rule that becomes several keeps its place in the order
        self._heads: dict[terms.Relation, set[tuple[int, ...]]] = {}
        self._callers: dict[terms.Relation, set[tuple[int, ...]]] = {}
        for number, rule in enumerate(rules):
            self._add((number,), rule)

    def rules_of(self, relation: terms.Relation) -> list[terms.Rule]:
        return [self.rules[number] for number in sorted(self._heads.get(relation, ()))]

    def callers(self, relation: terms.Relation) -> list[tuple[int, ...]]:
        return sorted(number for number in self._callers.get(relation, ()) if number in self.rules)

    def remove(self, relation: terms.Relation) -> None:
        for number in self._heads.pop(relation, ()):
            del self.rules[number]

    def replace(self, number: tuple[int, ...], replacement: Sequence[terms.Rule]) -> None:
        rule = self.rules.pop(number)
        self._heads[rule.head.relation].remove(number)
        for part, new in enumerate(replacement):
            self._add((*number, part), new)

    def _add(self, number: tuple[int, ...], rule: terms.Rule) -> None:
        self.rules[number] = rule
        self._heads.setdefault(rule.head.relation, set()).add(number)
        for atom, _ in terms.atoms_in(rule.body):
            self._callers.setdefault(atom.relation, set()).add(number)


def _should_unfold(definition: Sequence[terms.Rule]) -> bool:
    """Whether a definition is wide, can replace a call, and then separates its arguments."""
    if not definition or definition[0].head.relation[1] < _LEAST_ARGUMENTS:
        return False
    if not all(map(_is_plain, definition)):
        return False
    return (
        _joins_through_others(definition[0])
        if len(definition) == 1
        else all(map(_only_separates_arguments, definition))
    )


def _is_plain(rule: terms.Rule) -> bool:
    name, arity = rule.head.relation
    heads = {arg.name for arg in rule.head.args if isinstance(arg, terms.Variable)}
    return bool(rule.body) and len(heads) == arity and name not in terms.KEYWORD_ARITY


def _joins_through_others(rule: terms.Rule) -> bool:
    """Whether a rule joins its arguments through other variables."""
    inner = {
        v.name for literal in terms.literals_in(rule.body) for v in terms.variables_in(terms.literal_terms(literal))
    }
    return len(inner) > rule.head.relation[1] and all(isinstance(part, terms.Atom | terms.Not) for part in rule.body)


def _only_separates_arguments(rule: terms.Rule) -> bool:
    """Whether a rule only states the range of each argument, and that some differ: it holds for most arguments."""
    for literal in rule.body:
        if isinstance(literal, terms.Distinct):
            if literal.equal:
                return False
        elif not isinstance(literal, terms.Atom) or len({v.name for v in terms.variables_in(literal.args)}) > 1:
            return False
    return True


def _unfolded(rule: terms.Rule, definition: Sequence[terms.Rule], fresh: Iterator[int]) -> list[terms.Rule]:
    """Replaces the calls in a rule by the definition; returns none if a call is negated or it grows too much."""
    relation = definition[0].head.relation
    signs = [positive for atom, positive in terms.atoms_in(rule.body) if atom.relation == relation]
    longest = max(len(option.body) for option in definition)
    if not all(signs) or len(definition) ** len(signs) > _MOST_RULES:
        return []
    if len(rule.body) + len(signs) * (longest - 1) > _LONGEST_BODY:
        return []
    choices: list[list[tuple[terms.Literal, ...]]] = []
    for literal in rule.body:
        if isinstance(literal, terms.Atom) and literal.relation == relation:
            choices.append([tuple(_instance(option, literal, next(fresh))) for option in definition])
        else:
            choices.append([(literal,)])
    bodies = (dict.fromkeys(itertools.chain.from_iterable(chosen)) for chosen in itertools.product(*choices))
    return [dataclasses.replace(rule, body=tuple(body)) for body in bodies]


def _instance(definition: terms.Rule, call: terms.Atom, number: int) -> Iterator[terms.Literal]:
    """Instantiates the body of a definition with the arguments of a call; its other variables get unused names."""
    heads = (head for head in definition.head.args if isinstance(head, terms.Variable))
    arguments = {head.name: arg for head, arg in zip(heads, call.args, strict=True)}

    def replace(term: terms.Term) -> terms.Term:
        if isinstance(term, terms.Variable):
            return arguments.get(term.name, terms.Variable(f"{term.name} {number}", term.span))
        if isinstance(term, terms.Compound):
            return dataclasses.replace(term, args=tuple(map(replace, term.args)))
        return term

    for literal in definition.body:
        if isinstance(literal, terms.Distinct):
            yield dataclasses.replace(literal, left=replace(literal.left), right=replace(literal.right))
            continue
        atom = literal.atom if isinstance(literal, terms.Not) else literal
        assert isinstance(atom, terms.Atom)
        renamed = dataclasses.replace(atom, args=tuple(map(replace, atom.args)))
        yield terms.Not(renamed) if isinstance(literal, terms.Not) else renamed
