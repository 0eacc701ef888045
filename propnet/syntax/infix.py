"""Parses the infix form of GDL, `legal(R,M) :- true(x) & ~does(R,M)`, into the same nodes as KIF text.

Variables are `?x` or start with a capital letter or an underscore. A sentence ends with a full stop, or where
the next one begins. Conjunction is `&` or `,`; disjunction `|`; negation `~` or `not`; comments start with
`%`, `;` or `//`. Keywords may be written with capital letters where they cannot be variables: `Legal(..)`, `NOT`.
"""

import dataclasses
import re

from gdlx.propnet.syntax import kif, source, terms

_TOKEN = re.compile(
    r"(?P<comment>(?:[%;]|//)[^\r\n]*)|(?P<arrow>:-|<=)|(?P<differs>!=|\\=)|(?P<mark>[(),&|~.])"
    r"|(?P<name>\?[\w+\-']+|[\w+\-']+)|(?P<space>\s+)|(?P<other>.)",
    re.DOTALL,
)
_BLANK = re.compile(r"(?:\s+|(?:[%;]|//)[^\r\n]*)*+")
_NAME = re.compile(r"[^\W\d][\w+\-']*+")


def looks_infix(text: str) -> bool:
    """Whether the text starts with an infix sentence: `name(`, `name.` or `name :-`.

    KIF starts with a parenthesis, but a sheet in it may also start with a bare `terminal`.
    """
    position = _end(_BLANK, text, 0)
    while (after := _end(_NAME, text, position)) > position:
        if text.startswith(("(", "."), after):
            return True
        position = _end(_BLANK, text, after)
        if text.startswith((":-", "<="), position):
            return True
    return False


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


class _InfixSyntaxError(Exception):
    """A syntax error with its diagnostic code; the parser then skips to the next sentence."""

    def __init__(self, message: str, code: str = "syntax") -> None:
        super().__init__(message)
        self.code = code


@dataclasses.dataclass
class _Reader:
    text: source.Source
    log: kif.DiagnosticLog
    tokens: list[tuple[str, str, int]]  # kind, text, offset
    position: int = 0
    depth: int = 0

    def peek(self) -> tuple[str, str, int]:
        return self.tokens[self.position]

    def take(self) -> tuple[str, str, int]:
        token = self.tokens[self.position]
        self.position += token[0] != "end"
        return token

    def at(self, *marks: str) -> bool:
        kind, text, _ = self.peek()
        return kind in ("mark", "arrow", "differs") and text in marks

    def glued(self) -> bool:
        """Whether a parenthesis follows the next token without a space, as in `not(x)`."""
        _, text, start = self.peek()
        return self.text.text.startswith("(", start + len(text))

    def expect(self, mark: str, opened: int) -> None:
        if not self.at(mark):
            line, column = self.text.position(opened)
            raise _InfixSyntaxError(f"expected `{mark}` to match line {line}, column {column}")
        self.take()

    def span(self, start: int) -> source.Span:
        """The span from an offset to the end of the last token consumed."""
        _, text, offset = self.tokens[self.position - 1]
        return source.Span(self.text, start, offset + len(text))

    def symbol(self, text: str, start: int) -> kif.Node:
        span = source.Span(self.text, start, start + len(text))
        text = kif.sanitize_symbol(text, span, self.log)
        variable = (text[0].isupper() or text[0] == "_") and not self._is_keyword(text, span.end)
        return kif.Node(span, f"?{text}" if variable else text)

    def _is_keyword(self, text: str, end: int) -> bool:
        """Whether a capitalised name is a keyword: `Role` may be a variable, but `Role(` is not."""
        name = text.lower()
        functor = name in terms.CONNECTIVES or name in terms.KEYWORD_ARITY
        return name == "terminal" or (functor and self.text.text.startswith("(", end))

    def connective(self, name: str, items: list[kif.Node], start: int) -> kif.Node:
        span = self.span(start)
        return kif.Node(span, items=[kif.Node(source.Span(self.text, start, start + 1), name), *items])

    def nested(self) -> None:
        self.depth += 1
        if self.depth > kif.MAX_NESTING // 2:  # one level here is up to four calls of the Python stack
            raise _InfixSyntaxError(f"terms nested more than {kif.MAX_NESTING // 2} deep", "nesting-too-deep")

    def term(self) -> kif.Node:
        """Parses a symbol, a variable or name(term, ..)."""
        kind, text, start = self.take()
        if kind != "name":
            self.position -= kind != "end"
            raise _InfixSyntaxError("expected a name" if kind != "other" else f"unexpected character {text!r}")
        name = self.symbol(text, start)
        _, _, offset = self.peek()
        if not self.at("(") or offset != start + len(text):
            return name
        self.take()
        self.nested()
        items = [name]
        read = self.disjunction if name.text.lower() in ("not", "or", "and") else self.term
        if not self.at(")"):
            items.append(read())
            while self.at(","):
                self.take()
                items.append(read())
        self.expect(")", offset)
        self.depth -= 1
        return kif.Node(self.span(start), items=items)

    def literal(self) -> kif.Node:
        kind, text, start = self.peek()
        if self.at("~") or (kind == "name" and text.lower() == "not" and not self.glued()):
            self.take()
            self.nested()
            inner = self.literal()
            self.depth -= 1
            return self.connective("not", [inner], start)
        if self.at("("):
            self.take()
            self.nested()
            inside = self.disjunction(commas=True)
            self.expect(")", start)
            self.depth -= 1
            return inside
        left = self.term()
        if self.at("!=", "\\="):
            self.take()
            return self.connective("distinct", [left, self.term()], start)
        return left

    def conjunction(self, commas: bool) -> kif.Node:
        start = self.peek()[2]
        items = [self.literal()]
        while self.at("&") or (commas and self.at(",")):
            self.take()
            items.append(self.literal())
        return items[0] if len(items) == 1 else self.connective("and", items, start)

    def disjunction(self, commas: bool = False) -> kif.Node:
        start = self.peek()[2]
        items = [self.conjunction(commas)]
        while self.at("|"):
            self.take()
            items.append(self.conjunction(commas))
        return items[0] if len(items) == 1 else self.connective("or", items, start)

    def sentence(self) -> kif.Node:
        start = self.peek()[2]
        head = self.term()
        if not self.at(":-", "<="):
            form = head
        else:
            self.take()
            body = self.disjunction(commas=True)
            joined = body.items is not None and body.items[0].text == "and"
            literals = body.items[1:] if joined and body.items is not None else [body]
            form = self.connective("<=", [head, *literals], start)
        if self.at("."):
            self.take()
        return form

    def recover(self, failed_at: int) -> None:
        """Skips to the probable start of the next sentence: after a full stop, or at a name that begins a line."""
        if self.position == failed_at:
            self.take()
        while self.peek()[0] != "end":
            kind, _, start = self.peek()
            if self.tokens[self.position - 1][1] == "." or (kind == "name" and self.text.position(start)[1] == 1):
                return
            self.take()


def read_nodes(text: source.Source, log: kif.DiagnosticLog) -> list[kif.Node]:
    """Returns the top-level sentences as the nodes of the equivalent KIF forms."""
    tokens: list[tuple[str, str, int]] = []
    for match in _TOKEN.finditer(text.text):
        if match.lastgroup not in ("comment", "space"):
            tokens.append((str(match.lastgroup), match.group(), match.start()))
            if len(tokens) > kif.MAX_TOKENS:
                raise kif.too_large(f"{kif.MAX_TOKENS} names and marks")
    reader = _Reader(text, log, [*tokens, ("end", "", len(text.text))])
    forms = []
    while reader.peek()[0] != "end":
        before = reader.position
        try:
            forms.append(reader.sentence())
            if reader.position - before > kif.MAX_FORM:
                forms[-1].broken = True
                log.add(*kif.large_form_diagnostic(forms[-1]))
        except _InfixSyntaxError as problem:
            _, token, start = reader.peek()
            place = source.Span(text, start, start + max(1, len(token)))
            log.add(problem.code, str(problem), place, "write head(..) :- literal & ~literal & distinct(X, Y)")
            reader.depth = 0
            reader.recover(before)
            names = [
                kif.Node(place, text) for kind, text, _ in reader.tokens[before : reader.position] if kind == "name"
            ]
            forms.append(kif.Node(place, items=names, broken=True))
    return forms
