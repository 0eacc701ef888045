"""Functions that write parts of rulesheets, shared by several games."""

import itertools
import textwrap
from collections.abc import Iterable

_WIDTH = 100

TWO_PLAYERS = """
(role player1)
(role player2)
"""

OPPONENTS = """
(opponent player1 player2)
(opponent player2 player1)
"""


def header(title: str, rules: str, source: str) -> str:
    """Returns the comment at the top of a sheet: its title, the rules in a few sentences, and their source."""
    paragraphs = (title, rules, f"Source: {source}")
    wrapped = (textwrap.wrap(" ".join(text.split()), _WIDTH, break_on_hyphens=False) for text in paragraphs)
    return "\n;\n".join("\n".join(f"; {line}" for line in lines) for lines in wrapped)


def facts(relation: str, rows: Iterable[Iterable[int | str]]) -> str:
    """Returns facts, one per line.

    >>> print(facts("beats", [("rock", "scissors"), ("paper", "rock")]))
    (beats rock scissors)
    (beats paper rock)
    """
    return "\n".join(f"({relation} {' '.join(map(str, row))})" for row in rows)


def values(relation: str, members: Iterable[int | str]) -> str:
    """Returns the facts of a relation with one argument.

    >>> print(values("index", range(1, 3)))
    (index 1)
    (index 2)
    """
    return facts(relation, ((member,) for member in members))


def successors(first: int, last: int) -> str:
    """Returns the facts `(succ n n+1)` that count from first to last.

    >>> print(successors(-1, 1))
    (succ -1 0)
    (succ 0 1)
    """
    return facts("succ", itertools.pairwise(range(first, last + 1)))


def sheet(*sections: str) -> str:
    """Joins sections with blank lines; empty sections are left out."""
    return "\n\n".join(stripped for section in sections if (stripped := section.strip())) + "\n"
