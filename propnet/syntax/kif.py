"""Parses KIF text into nodes: parentheses, symbols and comments, without the structure of rules."""

import collections
import dataclasses
import re
from collections.abc import Iterator

from gdlx.propnet.syntax import diagnostics, source

MAX_NESTING = 100  # the deepest public sheet nests 25 deep; recursive functions over terms rely on the cap
MAX_SYMBOL = 1_000
MAX_TOKENS = 1_000_000  # one to three megabytes of text, so that checking ends soon
MAX_FORM = 20_000
_MAX_OF_A_CODE = 1_000
_TOKEN = re.compile(r";[^\r\n]*|[()]|[^\s();]+")
_END_OF_START_MESSAGE = re.compile(r"\)\s*\d+(?:\s+\d+)?\s*\)?\s*\Z", re.ASCII)
_CONTROL = "\x00-\x1f\x7f-\x9f\ud800-\udfff"
# Marks of direction, characters of no width, and tags: two symbols that look alike would differ.
_INVISIBLE = "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
_INVISIBLE += "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
_BAD_CHARACTER = re.compile(f"[{_CONTROL}{_INVISIBLE}\ufffd]")
_NEVER_A_FACT = frozenset({"true", "does", "not", "or", "and", "distinct"})


@dataclasses.dataclass(slots=True)
class Node:
    """A symbol (`items` is None) or a list of nodes. A `broken` node has been reported and is not parsed further."""

    span: source.Span
    text: str = ""
    items: list["Node"] | None = None
    broken: bool = False

    def symbols(self) -> Iterator[str]:
        work = [self]
        while work:
            node = work.pop()
            if node.items is None:
                yield node.text
            else:
                work += node.items


@dataclasses.dataclass
class DiagnosticLog:
    """Collects the diagnostics of one sheet, up to a limit for each code."""

    entries: list[diagnostics.Diagnostic] = dataclasses.field(default_factory=list)
    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    def add(self, code: str, message: str, span: source.Span | None, hint: str = "") -> None:
        self.counts[code] += 1
        if self.counts[code] < _MAX_OF_A_CODE:
            self.entries.append(diagnostics.Diagnostic(code, message, span, hint))
        elif self.counts[code] == _MAX_OF_A_CODE:
            message += "; any more of these are left out"
            self.entries.append(diagnostics.Diagnostic(code, message, span, hint))


def too_large(what: str) -> diagnostics.GdlError:
    """The error for a text that is too large to be parsed."""
    hint = "is this a rulesheet? describe the game with rules instead of long lists"
    return diagnostics.GdlError([diagnostics.Diagnostic("too-large", f"the sheet has more than {what}", None, hint)])


def large_form_diagnostic(form: Node) -> tuple[str, str, source.Span, str]:
    """The diagnostic of a form that is dropped for its size: several algorithms are quadratic in it."""
    place = source.Span(form.span.source, form.span.start, form.span.start + 1)
    return "too-large", f"a single form of more than {MAX_FORM} symbols", place, "split it into several rules"


def require_size(text: source.Source) -> None:
    if text.oversized or len(text.text) > source.MAX_BYTES:
        raise too_large(f"{source.MAX_BYTES // 2**20} MiB")


def sanitize_symbol(text: str, span: source.Span, log: DiagnosticLog) -> str:
    """Reports a hostile symbol; returns a symbol that is safe to use."""
    if len(text) > MAX_SYMBOL:
        message = f"a symbol of {len(text)} characters, starting {diagnostics.shorten(text, 20)}"
        log.add("symbol-too-long", message, span, f"the longest allowed has {MAX_SYMBOL}")
        text = text[:MAX_SYMBOL]
    bad = _BAD_CHARACTER.search(text)
    if bad:
        place = source.Span(span.source, span.start + bad.start(), span.start + bad.start() + 1)
        code_point = f"U+{ord(bad.group()):04X}"
        if re.match(f"[{_INVISIBLE}]", bad.group()):
            what, hint = f"invisible character {code_point}", "remove it: the symbol looks like another one"
        else:
            what = "undecodable byte" if bad.group() == "\ufffd" else f"control character {code_point}"
            hint = "save the file as plain UTF-8 text"
        log.add("bad-character", f"{what} inside a symbol", place, hint)
        text = _BAD_CHARACTER.sub("_", text)
    return text


def tokens(text: source.Source) -> Iterator[tuple[str, int]]:
    """Yields the tokens of KIF text with their offsets, without comments."""
    for match in _TOKEN.finditer(text.text):
        if not match.group().startswith(";"):
            yield match.group(), match.start()


def read_nodes(text: source.Source, log: DiagnosticLog) -> list[Node]:
    """Returns the top-level forms. Raises GdlError for too large a text; logs all other problems."""
    reader = _Reader(text, log)
    for number, (token, start) in enumerate(tokens(text)):
        if number == MAX_TOKENS:
            raise too_large(f"{MAX_TOKENS} symbols and parentheses")
        if token == ")" and reader.at_end_of_start_message(start):
            break
        reader.read(token, source.Span(text, start, start + len(token)))
    if reader.stack:
        reader.close_unclosed(len(text.text))
    return reader.forms


@dataclasses.dataclass
class _Reader:
    """Parses token by token, with recovery.

    `(<=` never occurs inside another form, so if it does, the enclosing form was not closed; parsing continues from
    there, and a missing parenthesis causes one message only.
    """

    text: source.Source
    log: DiagnosticLog
    forms: list[Node] = dataclasses.field(default_factory=list)
    stack: list[Node] = dataclasses.field(default_factory=list)  # open lists, the outermost first
    skipped: int = 0  # open lists inside those, skipped because the form is too deep or too large
    size: int = 0  # of the form being read
    last: source.Span | None = None  # of the previous token, if it was an opening parenthesis

    def read(self, token: str, span: source.Span) -> None:
        if token == "<=" and self.last and len(self.stack) + self.skipped > 1:
            if not self.skipped:
                self.stack.pop()
            self.close_unclosed(self.last.start)
            self.stack.append(Node(self.last, items=[]))
            self.size = 1
        self.last = span if token == "(" else None
        if token == ")":
            self.close(span)
            return
        self.size = self.size + 1 if self.stack else 1
        too_deep = token == "(" and len(self.stack) == MAX_NESTING
        if self.skipped or too_deep or self.size > MAX_FORM:
            self.skipped += token == "("
            self.report_limit(span)
        elif token == "(":
            self.stack.append(Node(span, items=[]))
        else:
            self.append(Node(span, text=sanitize_symbol(token, span, self.log)))

    def at_end_of_start_message(self, start: int) -> bool:
        """Whether the rest is `) 60 10)`, which a START message of the GGP protocol has after the rules."""
        if self.stack or not _END_OF_START_MESSAGE.match(self.text.text, start):
            return False
        hint = "remove it; the rules end before it"
        message = "the end of a START message after the rules is left out"
        self.log.add("start-message", message, source.Span(self.text, start, len(self.text.text.rstrip())), hint)
        return True

    def report_limit(self, span: source.Span) -> None:
        if self.stack[0].broken:
            return
        self.stack[0].broken = True
        if self.size > MAX_FORM:
            self.log.add(*large_form_diagnostic(self.stack[0]))
        else:
            hint = "flatten the term, e.g. count with numbers instead of (s (s (s 0)))"
            self.log.add("nesting-too-deep", f"terms nested more than {MAX_NESTING} deep", span, hint)

    def close(self, span: source.Span) -> None:
        if self.skipped:
            self.skipped -= 1
        elif self.stack:
            self.close_last(span.end)
        else:
            self.log.add("unmatched-parenthesis", "closing parenthesis without an opening one", span, "remove it")
            self.break_last_rule()

    def close_last(self, end: int) -> None:
        node = self.stack.pop()
        node.span = source.Span(self.text, node.span.start, end)
        self.append(node)

    def append(self, node: Node) -> None:
        items = self.stack[-1].items if self.stack else self.forms
        assert items is not None
        items.append(node)

    def close_unclosed(self, end: int) -> None:
        form = self.stack[0]
        if not form.broken:
            form.broken = True
            place = source.Span(self.text, form.span.start, form.span.start + 1)
            self.log.add("unclosed-parenthesis", "this parenthesis is never closed", place, "add the missing `)`")
        swallowed = self.take_swallowed(form)
        self.skipped = 0
        while self.stack:
            self.close_last(end)
        self.forms += swallowed

    def take_swallowed(self, form: Node) -> list[Node]:
        """Removes and returns facts in an unclosed form: they begin a line, no further right than the form."""
        column = form.span.column
        items = self.stack[-1].items or []
        for number, item in enumerate(items):
            line, indent = self.text.position(item.span.start)
            if indent > column or not item.items or item.items[0].text.lower() in _NEVER_A_FACT:
                continue
            left = self.text.text[self.text.line_bounds(line)[0] : item.span.start]
            if not left.strip() and not any(symbol.startswith("?") for symbol in item.symbols()):
                swallowed = items[number:]
                del items[number:]
                return swallowed
        return []

    def break_last_rule(self) -> None:
        """Marks the forms since the start of the last rule as broken: an extra `)` closed the rule too early."""
        for form in reversed(self.forms):
            if form.broken:
                return
            form.broken = True
            if (form.items and form.items[0].text == "<=") or form.span.column == 1:
                return
