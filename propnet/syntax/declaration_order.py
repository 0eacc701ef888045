"""The order in which the text of a rulesheet first mentions names: the order in which an author thinks of them."""

import re
from collections.abc import Callable

_NAME = re.compile(r"[^\s();\"]+")
_COMMENT = re.compile(r";[^\n]*")

Key = tuple[tuple[int, int, str], ...]


def declaration_key(rules: str) -> Callable[[str], Key]:
    """Returns a sort key for terms and sequences of terms: numbers by size, then names as the rules mention them.

    Args:
      rules: the text of a rulesheet; "" if there is none, and names are then in alphabetical order.

    >>> key = declaration_key("(card king) (card queen) (card jack) ; jack queen king")
    >>> sorted(["(dealt jack)", "(dealt king)", "(dealt 10)", "(dealt 9)"], key=key)
    ['(dealt 9)', '(dealt 10)', '(dealt king)', '(dealt jack)']
    """
    names = (match.group().lower() for match in _NAME.finditer(_COMMENT.sub("", rules)))
    rank = {name: number for number, name in enumerate(dict.fromkeys(names))}

    def key(text: str) -> Key:
        return tuple(_part(name, rank) for name in _NAME.findall(text))

    return key


def _part(name: str, rank: dict[str, int]) -> tuple[int, int, str]:
    if name.isascii() and name.isdigit() and len(name) < 19:
        return 0, int(name), ""
    return 1, rank.get(name.lower(), len(rank)), name
