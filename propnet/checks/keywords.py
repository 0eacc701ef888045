"""Finds the keyword that a misspelt relation may have meant."""

from gdlx.propnet.common.text import suggestions
from gdlx.propnet.syntax import terms

_CUTOFF = 0.75  # `dose` for `does` is this similar
_IN_HEADS = {name: arity for name, arity in terms.KEYWORD_ARITY.items() if name not in ("true", "does")}
_IN_BODIES = terms.KEYWORD_ARITY | {"not": 1, "distinct": 2}


def closest(relation: terms.Relation, *, in_head: bool = False) -> str | None:
    """Returns the keyword with as many arguments whose spelling is closest, if it is close.

    >>> closest(("legl", 2), in_head=True), closest(("dose", 2)), closest(("cell", 2))
    ('legal', 'does', None)
    """
    name, arity = relation
    if len(name) > 12:
        return None
    known = [keyword for keyword, size in (_IN_HEADS if in_head else _IN_BODIES).items() if size == arity]
    return next(iter(suggestions.closest_spellings(name.lower(), known, most=1, cutoff=_CUTOFF)), None)
