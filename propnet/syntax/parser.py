"""Parses nodes into rules. Every problem is reported, and the form that has it is skipped."""

import dataclasses
from typing import NoReturn

from gdlx.propnet.common.text import plurals
from gdlx.propnet.syntax import diagnostics, kif, source, terms

MAX_LITERALS = 1_000  # planning a rule and expanding its `or` parts take quadratic time
_OPTIONAL_KEYWORDS = ("base", "input")  # declarations only; published sheets also use these names in other ways


class _InvalidFormError(Exception):
    """The form was reported as wrong and cannot be used."""


@dataclasses.dataclass(frozen=True)
class UnparsedForm:
    """A form that could not be used: the name of its head, if that is known, all its names, and what is wrong."""

    head: str | None
    names: frozenset[str]
    problems: tuple[diagnostics.Diagnostic, ...]


@dataclasses.dataclass(frozen=True)
class RuleParser:
    log: kif.DiagnosticLog
    fold_case: bool = False
    unparsed: list[UnparsedForm] = dataclasses.field(default_factory=list)

    def rules(self, forms: list[kif.Node]) -> tuple[terms.Rule, ...]:
        rules = []
        for form in forms:
            before = len(self.log.entries)
            try:
                if form.broken:
                    raise _InvalidFormError
                rules.append(self._rule(form))
            except _InvalidFormError:
                # In lower case too: it may be a keyword.
                names = frozenset(name for text in form.symbols() for name in (self._fold(text), text.lower()))
                head = None if form.broken else self._head_name(form)
                self.unparsed.append(UnparsedForm(head, names, tuple(self.log.entries[before:])))
        return tuple(rules)

    def _head_name(self, form: kif.Node) -> str | None:
        """Returns the relation that a form would define, if it is clear enough to tell whether anything uses it."""
        items = form.items or [form]
        node = items[1] if items[0].text == "<=" and len(items) > 1 else form
        first = node.items[0] if node.items else node
        is_name = first.items is None and not first.text.startswith("?")
        if not is_name or first.text.lower() in (*terms.CONNECTIVES, "true", "does"):
            return None
        return first.text.lower() if first.text.lower() in terms.KEYWORD_ARITY else self._fold(first.text)

    def parse_terms(self, forms: list[kif.Node]) -> tuple[terms.Term, ...]:
        """Parses forms as terms instead of rules, such as moves typed by a person."""
        parsed = []
        for form in forms:
            try:
                parsed.append(self._term(form))
            except _InvalidFormError:
                continue
        return tuple(parsed)

    def _rule(self, form: kif.Node) -> terms.Rule:
        if form.items and form.items[0].text == "<=":
            if len(form.items) == 1:
                self._fail("bad-head", "a rule without a head", form.span, "write (<= (head ..) (body ..) ..)")
            head, body = self._parts(form.items[1], form.items[2:])
            if sum(1 for _ in terms.literals_in(body)) > MAX_LITERALS:
                self._fail(
                    "too-large",
                    f"a rule of more than {MAX_LITERALS} literals",
                    form.span,
                    "split it into several relations",
                )
            if not form.items[2:]:
                variable = next(terms.variables_in(head.args), None)
                hint = (
                    f"a rule that always holds is written as a fact: {diagnostics.shorten(head)}"
                    if variable is None
                    else f"add literals that say what {diagnostics.shorten(variable, 30)} ranges over"
                )
                self.log.add("empty-body", "rule with an empty body", form.span, hint)
            return terms.Rule(head, body, False, form.span)
        if form.items is None and form.text == "<=":
            self._fail(
                "misplaced-connective",
                "`<=` outside of a rule",
                form.span,
                "write (<= (head ..) (body ..) ..)",
            )
        return terms.Rule(self._head(form), (), True, form.span)

    def _parts(self, first: kif.Node, others: list[kif.Node]) -> tuple[terms.Atom, terms.Body]:
        """Parses head and body; an error in one part does not hide errors in the others."""
        head: terms.Atom | None = None
        body: list[terms.Literal] = []
        failed = False
        for item in (first, *others):
            try:
                if item is first:
                    head = self._head(item)
                else:
                    body += self._literal(item, positive=True)
            except _InvalidFormError:
                failed = True
        if failed or head is None:
            raise _InvalidFormError
        return head, tuple(body)

    def _head(self, node: kif.Node) -> terms.Atom:
        name = self._functor(node)
        if name.lower() in terms.CONNECTIVES:
            self._fail(
                "bad-head",
                f"`{name}` cannot be the head of a rule",
                node.span,
                "the head is a single relation",
            )
        head = self._atom(node)
        if head.name in ("true", "does"):
            hint = "write (next ..) for the next state, (init ..) for the first, (legal ..) for moves"
            self._fail("bad-head", f"`{head.name}` is given by the state and cannot be concluded", node.span, hint)
        return head

    def _functor(self, node: kif.Node) -> str:
        """Returns the name of a form; reports forms that have none."""
        first = node if node.items is None else node.items[0] if node.items else None
        if first is None:
            self._fail("empty-form", "empty parentheses", node.span, "remove them, or name a relation inside")
        if first.items is not None:
            hint = "remove one pair of parentheses"
            self._fail("bad-functor", "a list stands where a name is expected", first.span, hint)
        if first.text.startswith("?"):
            what = f"variable {diagnostics.shorten(first.text)} stands where a name is expected"
            self._fail("bad-functor", what, first.span, "name the relation; for any fluent write (true ?x)")
        return first.text

    def _literal(self, node: kif.Node, *, positive: bool) -> terms.Body:
        """Returns literals whose conjunction is the node or, with positive=False, its negation."""
        name = self._functor(node)
        connective = name.lower()
        args = node.items[1:] if node.items else []
        if connective not in terms.CONNECTIVES:
            atom = self._atom(node)
            return (atom,) if positive else (terms.Not(atom),)
        if node.items is None or connective == "<=":
            self._fail(
                "misplaced-connective",
                f"`{name}` stands where a literal is expected",
                node.span,
                "is a parenthesis missing before it?",
            )
        if connective == "not":
            if len(args) != 1:
                self._fail(
                    "keyword-arity",
                    f"`not` takes one argument, here {len(args)}",
                    node.span,
                    "write one (not ..) for each literal",
                )
            if not positive:
                self.log.add("double-negation", "negation of a negation", node.span, "write the positive literal")
            return self._literal(args[0], positive=not positive)
        if connective == "distinct":
            if len(args) != 2:
                self._fail(
                    "keyword-arity",
                    f"`distinct` takes two arguments, here {len(args)}",
                    node.span,
                    "write one (distinct a b) for each pair",
                )
            if not positive:
                self.log.add(
                    "not-distinct",
                    "`not (distinct ..)` means that the two are equal",
                    node.span,
                    "use one variable in both places instead",
                )
            return (terms.Distinct(self._term(args[0]), self._term(args[1]), not positive, node.span),)
        if not args:
            self._fail("empty-form", f"`{name}` without arguments", node.span, "remove it, or name what it joins")
        parts = [self._literal(arg, positive=positive) for arg in args]
        if (connective == "or") == positive:
            return parts[0] if len(parts) == 1 else (terms.Or(tuple(parts)),)
        return tuple(literal for part in parts for literal in part)

    def _atom(self, node: kif.Node) -> terms.Atom:
        name = self._functor(node)
        keyword = name.lower()
        args = tuple(self._term(item) for item in node.items[1:]) if node.items else ()
        self._warn_needless(node)
        if keyword not in terms.KEYWORD_ARITY:
            return terms.Atom(self._fold(name), args, node.span)
        expected = terms.KEYWORD_ARITY[keyword]
        if len(args) != expected:
            takes = f"`{keyword}` takes {plurals.count(expected, 'argument')}, here {len(args)}"
            if keyword not in _OPTIONAL_KEYWORDS:
                self._fail("keyword-arity", takes, node.span, _usage(keyword, args))
            self.log.add("old-style-declaration", f"{takes}; read as an ordinary relation", node.span, _USAGE[keyword])
        return terms.Atom(keyword, args, node.span)

    def _term(self, node: kif.Node) -> terms.Term:
        if node.items is None:
            if node.text.startswith("?"):
                if node.text == "?":
                    self._fail("syntax", "a variable without a name", node.span, "write ?x")
                name = node.text[1:]
                return terms.Variable(name.lower() if self.fold_case else name, node.span)
            if node.text.lower() in terms.CONNECTIVES:
                self._fail(
                    "misplaced-connective",
                    f"`{node.text}` stands where a term is expected",
                    node.span,
                    "is a parenthesis missing before it?",
                )
            return terms.Symbol(self._fold(node.text), node.span)
        name = self._functor(node)
        self._warn_needless(node)
        if name.lower() in terms.CONNECTIVES:
            self._fail(
                "misplaced-connective",
                f"`{name}` cannot stand inside a term",
                node.span,
                "terms are built of names and variables only",
            )
        if len(node.items) == 1:
            return terms.Symbol(self._fold(name), node.span)
        if name.lower() in terms.KEYWORD_ARITY:
            self.log.add(
                "keyword-as-function",
                f"keyword `{name}` is used as a function",
                node.span,
                "it has no special meaning here; choose another name",
            )
        return terms.Compound(self._fold(name), tuple(map(self._term, node.items[1:])), node.span)

    def _warn_needless(self, node: kif.Node) -> None:
        if node.items is not None and len(node.items) == 1:
            name = diagnostics.shorten(node.items[0].text)
            self.log.add("needless-parentheses", f"({name}) means the same as {name}", node.span, f"write {name}")

    def _fold(self, name: str) -> str:
        return name.lower() if self.fold_case or name.lower() == terms.RANDOM else name

    def _fail(self, code: str, message: str, span: source.Span, hint: str) -> NoReturn:
        self.log.add(code, message, span, hint)
        raise _InvalidFormError


def _usage(keyword: str, args: tuple[terms.Term, ...]) -> str:
    """How to write a keyword that has another number of arguments: mostly inner parentheses are missing."""
    first = terms.KEYWORD_ARITY[keyword] - 1  # where the fluent, move or percept begins
    inner = args[first:]
    if keyword in _WITH_TERM and len(inner) > 1 and isinstance(inner[0], terms.Symbol):
        outer = "".join(f" {diagnostics.shorten(arg)}" for arg in args[:first])
        return f"did you mean ({keyword}{outer} ({' '.join(diagnostics.shorten(arg) for arg in inner)}))?"
    return _USAGE[keyword]


_WITH_TERM = ("init", "true", "next", "does", "legal", "sees")
_USAGE = {
    "role": "write (role name)",
    "init": "write (init fluent)",
    "true": "write (true fluent)",
    "does": "write (does role move)",
    "legal": "write (legal role move)",
    "next": "write (next fluent)",
    "sees": "write (sees role percept)",
    "goal": "write (goal role value)",
    "terminal": "write terminal",
    "base": "write (base fluent)",
    "input": "write (input role move)",
}
