"""Tables on narrow terminals: columns are left out, and no number is cut."""

import io

import pytest
import rich.console
import rich.table

from gdlx.cli import narrow_tables

NUMBERS = ("-0.055556", "49.9444", "0.000123")


def table() -> rich.table.Table:
    made = rich.table.Table(box=None, pad_edge=False)
    made.add_column("player")
    for name in ("payoff", "goal", "improvement"):
        made.add_column(name, justify="right")
    made.add_column("policy")
    made.add_row("player1", *NUMBERS, "check 78.4%, bet 21.6%")
    return made


def printed(fitted: rich.table.Table, width: int) -> str:
    console = rich.console.Console(file=io.StringIO(), width=width)
    console.print(fitted)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [100, 60, 50, 40, 30, 20])
def test_a_number_is_whole_or_left_out(width: int) -> None:
    fitted, dropped = narrow_tables.fit_table(table(), width)
    text = printed(fitted, width)
    for name, number in zip(("payoff", "goal", "improvement"), NUMBERS, strict=True):
        assert (number in text) == (name not in dropped)
    assert "player1" in text
    assert "…" not in text
    assert (not dropped) == (width >= 50)


def test_what_matters_stays_longest() -> None:
    assert narrow_tables.fit_table(table(), 45)[1] == ["goal"]
    assert narrow_tables.fit_table(table(), 35)[1] == ["goal", "improvement"]
