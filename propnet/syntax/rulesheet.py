"""Parses the text of a game into rules.

`parse_rulesheet` never raises: it returns diagnostics for what is wrong, and the rules that it could parse, so that
they can still be checked.
"""

import dataclasses
import functools
import re

from gdlx.propnet.common.text import plurals
from gdlx.propnet.syntax import diagnostics, infix, kif, parser, source, terms

_PRAGMA = re.compile(  # a line of its own, also where lines end with a lone carriage return
    r"(?:^|\r)[^\S\r\n]*[;%]+[^\S\r\n]*gdlx:[^\S\r\n]*gdl-(ii|i)\b", re.IGNORECASE | re.MULTILINE
)


@dataclasses.dataclass(frozen=True)
class Rulesheet:
    """The rules of a game.

    `rules` are in file order. `language` is 1 for GDL (perfect information) or 2 for GDL-II. `unparsed` has the forms
    that could not be parsed; no check reports their names as missing.

    >>> from gdlx.propnet import games
    >>> games.load_rulesheet("kuhn_poker")
    Rulesheet(kuhn_poker: GDL-II, 47 rules)
    """

    source: source.Source
    rules: tuple[terms.Rule, ...]
    language: int
    unparsed: tuple[parser.UnparsedForm, ...] = ()

    def __repr__(self) -> str:
        count = plurals.count(len(self.rules), "rule")
        return f"Rulesheet({diagnostics.shorten(self.name)}: {'GDL-II' if self.language == 2 else 'GDL'}, {count})"

    @property
    def name(self) -> str:
        """The library name with its parameters, or the path."""
        return self.source.name

    @functools.cached_property
    def unparsed_names(self) -> frozenset[str]:
        """All names in forms that could not be parsed."""
        return frozenset[str]().union(*(form.names for form in self.unparsed))

    def text(self) -> str:
        """Returns KIF text that parses to the same rules in the same language."""
        pragma = f"; gdlx: gdl-{'i' * self.language}\n" if _language(self.rules) != self.language else ""
        return pragma + "".join(f"{rule}\n" for rule in self.rules)


def parse_rulesheet(
    text: source.Source, *, fold_case: bool = False, gdl: int | None = None
) -> tuple[Rulesheet, list[diagnostics.Diagnostic]]:
    """Returns the rules of a sheet and the diagnostics of its text.

    `fold_case` converts all symbols to lower case; `gdl` (1 or 2) overrides the language that the text indicates.

    >>> sheet, problems = parse_rulesheet(source.Source("a.gdl", "(role x) (<= terminal (true (done ?r)))"))
    >>> print(sheet.rules[1])
    (<= terminal
        (true (done ?r)))
    >>> sheet.language, problems
    (1, [])
    """
    log = kif.DiagnosticLog()
    if text.undecodable:
        first = text.undecodable[0]
        message = f"{len(text.undecodable)} bytes are not UTF-8 text, the first here"
        log.add("bad-encoding", message, source.Span(text, first, first + 1), "save the file as UTF-8")
    parse = infix.read_nodes if infix.looks_infix(text.text) else kif.read_nodes
    try:
        kif.require_size(text)
        nodes = parse(text, log)
    except diagnostics.GdlError as error:
        unread = parser.UnparsedForm(None, frozenset(terms.KEYWORD_ARITY), error.diagnostics)
        return Rulesheet(text, (), gdl or 1, (unread,)), [*log.entries, *error.diagnostics]
    reader = parser.RuleParser(log, fold_case)
    rules = reader.rules(nodes)
    language = gdl or stated_language(text) or _language(rules)
    return Rulesheet(text, rules, language, tuple(reader.unparsed)), log.entries


def stated_language(text: source.Source) -> int | None:
    """Returns the language that a comment of the sheet states; None if there is no such comment."""
    pragma = _PRAGMA.search(text.text)
    return len(pragma.group(1)) if pragma else None


def _language(rules: tuple[terms.Rule, ...]) -> int:
    """Infers the language from the text: a sheet with a `sees` rule or a role `random` is GDL-II."""
    for rule in rules:
        head = rule.head
        random = head.name == "role" and isinstance(head.args[0], terms.Symbol) and head.args[0].name == terms.RANDOM
        if head.name == "sees" or random:
            return 2
    return 1
