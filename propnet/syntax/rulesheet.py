"""The text of a game -> its rules.

`parse_rulesheet` never fails: what is wrong goes to the list of diagnostics, and the rest of the sheet is still there
to be checked.
"""

import dataclasses
import re

from gdlx.propnet.syntax import diagnostics, infix, kif, parser, source, terms

_PRAGMA = re.compile(  # a line of its own, also where lines end with a lone carriage return
    r"(?:^|\r)[^\S\r\n]*[;%]+[^\S\r\n]*gdlx:[^\S\r\n]*gdl-(ii|i)\b", re.IGNORECASE | re.MULTILINE
)


@dataclasses.dataclass(frozen=True)
class Rulesheet:
    """Rules in file order. `language` is 1 for GDL (perfect information) or 2 for GDL-II.

    `lost` are the names in forms that could not be read, so that nobody is told that they are missing.
    """

    source: source.Source
    rules: tuple[terms.Rule, ...]
    language: int
    lost: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.source.name

    def text(self) -> str:
        """KIF text that reads back to the same rules in the same language."""
        pragma = f"; gdlx: gdl-{'i' * self.language}\n" if _language(self.rules) != self.language else ""
        return pragma + "".join(f"{rule}\n" for rule in self.rules)


def parse_rulesheet(
    text: source.Source, *, fold_case: bool = False, gdl: int | None = None
) -> tuple[Rulesheet, list[diagnostics.Diagnostic]]:
    """The rules of a sheet and what is wrong with their text.

    `fold_case` reads all symbols in lower case; `gdl` (1 or 2) overrides what the text says of its language.

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
        found = parse(text, log)
    except diagnostics.GdlError as error:
        return Rulesheet(text, (), gdl or 1, frozenset(terms.KEYWORD_ARITY)), [*log.entries, *error.diagnostics]
    reader = parser.RuleParser(log, fold_case)
    rules = reader.rules(found)
    pragma = _PRAGMA.search(text.text)
    stated = len(pragma.group(1)) if pragma else None
    return Rulesheet(text, rules, gdl or stated or _language(rules), frozenset(reader.lost)), log.entries


def _language(rules: tuple[terms.Rule, ...]) -> int:
    """GDL-II is a sheet with a `sees` rule or a role `random`, decided on the text."""
    for rule in rules:
        head = rule.head
        random = head.name == "role" and isinstance(head.args[0], terms.Symbol) and head.args[0].name == terms.RANDOM
        if head.name == "sees" or random:
            return 2
    return 1
