"""What a misspelt name may have meant: the one place that decides which names are near."""

import difflib
import re
from collections.abc import Iterable, Sequence

_SHORTEST_PART = 3  # letters of a name that stand for it: `kuhn` for `kuhn_poker`
_LONGEST = 200  # letters of what was typed that are compared


def near_names(typed: str, known: Iterable[str], *, most: int = 3, cutoff: float = 0.6) -> Sequence[str]:
    """Returns the names that a misspelt one may have meant, the likeliest first.

    Names that differ only by case, separators or a sign in letters are the same; then come those that begin with what
    was typed, those that contain it, and those that are spelt nearly so.

    >>> near_names("CFRplus", ["cfr", "cfr+", "dcfr"]), near_names("kuhn", ["rps", "kuhn_poker"])
    (['cfr+'], ['kuhn_poker'])
    """
    plain_typed = _plain(typed[:_LONGEST])
    plain = {name: _plain(name) for name in known}
    if same := [name for name, text in plain.items() if text == plain_typed]:
        return same[:most]
    parts = []
    if len(plain_typed) >= _SHORTEST_PART:
        parts = [name for name, text in plain.items() if text.startswith(plain_typed)]
        parts += [name for name, text in plain.items() if plain_typed in text and name not in parts]
    close = closest_spellings(plain_typed, dict.fromkeys(plain.values()), most=most, cutoff=cutoff)
    parts += [name for text in close for name, other in plain.items() if other == text and name not in parts]
    return parts[:most]


def is_it(typed: str, known: Iterable[str], *, most: int = 2, cutoff: float = 0.5) -> str:
    """Returns the question that follows a misspelt name in a message, or "" if no name is near.

    >>> is_it("dfcr", ["dcfr", "lp"])
    ' (is it dcfr?)'
    """
    near = near_names(typed, known, most=most, cutoff=cutoff)
    return f" (is it {' or '.join(near)}?)" if near else ""


def closest_spellings(typed: str, known: Iterable[str], *, most: int = 3, cutoff: float = 0.6) -> list[str]:
    """Returns texts that are spelt nearly as what was typed; the cutoff is 0 for any text, 1 for the same only.

    >>> closest_spellings("dose", ["does", "role", "legal"], cutoff=0.75)
    ['does']
    """
    return difflib.get_close_matches(typed, list(known), n=most, cutoff=cutoff)


def _plain(name: str) -> str:
    """A name without case and separators, with signs in letters."""
    return re.sub(r"[\s_.-]+", "", name.lower()).replace("+", "plus")
