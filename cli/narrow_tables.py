"""Fits tables into narrow terminals: columns are left out, so that no number is cut."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import rich.table

_GAP = 2  # between columns
_WORD = 14  # letters of a text that stay on one line; texts wrap, numbers never do
# What a reader looks for, and what says of which row it is.
_IMPORTANT = (
    *("payoff", "improvement", "exploitability", "largest_improvement", "value", "nodes"),
    *("history", "role", "game", "algorithm"),
)


def fit_table(table: "rich.table.Table", width: int) -> "tuple[rich.table.Table, list[str]]":
    """Return the table without the columns that do not fit, and their names.

    Numbers are left out before texts, and the widest first; the first and the last column always stay.
    """
    import rich.table

    kept = list(table.columns)
    needed = [_needed(column) for column in kept]
    dropped: list[str] = []
    while sum(needed) + _GAP * (len(kept) - 1) > width:
        optional = range(1, len(kept) - (kept[-1].justify != "right"))
        if len(kept) < 3 or not optional:
            break
        widest = max(optional, key=lambda n: (*_rank(kept[n]), needed[n], n))
        dropped.append(str(kept[widest].header))
        del kept[widest], needed[widest]
    fitted = rich.table.Table(box=table.box, pad_edge=table.pad_edge)
    for column in kept:
        is_number = column.justify == "right"
        fitted.add_column(column.header, justify=column.justify, no_wrap=is_number, overflow="fold")
    for cells in zip(*(column.cells for column in kept), strict=True):
        fitted.add_row(*cells)
    return fitted, dropped


def _rank(column: "rich.table.Column") -> tuple[bool, bool]:
    """How easily a column can be spared."""
    return str(column.header) not in _IMPORTANT, column.justify == "right"


def _needed(column: "rich.table.Column") -> int:
    """The least width that does not cut the column."""
    import rich.text

    cells = [rich.text.Text.from_markup(str(cell)).plain for cell in (column.header, *column.cells)]
    if column.justify == "right":
        return max(map(len, cells))
    words = [word for cell in cells for word in re.split(r"\s+", cell)]
    return min(_WORD, max(map(len, words), default=0))
