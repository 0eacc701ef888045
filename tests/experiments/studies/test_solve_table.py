"""The table and the figure of README.md are those of their commands."""

import pathlib
import re

from gdlx.experiments.studies import convergence, solve_table
from gdlx.propnet import library
from gdlx.tests.helpers import paths

README = paths.ROOT / "README.md"


def test_a_line_says_what_was_measured() -> None:
    header, _, line = solve_table.lines(["kuhn_poker"], iterations=300)
    assert header.strip("| ").split(" | ") == list(solve_table.HEADER)
    game, sets, histories, payoff, error, part, *seconds = line.strip("| ").split(" | ")
    # Kuhn (1950): the first player loses 1/18 of an ante; 12 information sets, 30 terminals (58 histories in all).
    assert (game, sets, histories, payoff) == ("`kuhn_poker`", "12", "58", "-0.056")
    assert 0 < float(error) < 0.005
    assert float(part.removesuffix(" %")) < 0.1
    assert all(float(number.removesuffix(" s")) > 0 for number in seconds)


def test_numbers_that_are_nearly_none() -> None:
    row = solve_table.SolvedGame("rps", 2, 1234567.0, (-1e-7, 1e-7), -3e-8, 100.0, 0.01, 1.5)
    assert row.cells() == ("`rps`", "2", "1 234 567", "0.000", "< 1e-05", "< 1e-05 %", "0.01 s", "1.5 s")


def test_every_player_of_more_than_two_is_shown() -> None:
    row = solve_table.SolvedGame("smallest", 3, 9.0, (20.0, 10.0, 0.0), 0.5, 30.0, 1.0, 2.0)
    assert row.cells()[3] == "20.000, 10.000, 0.000"


def test_readme_has_a_line_for_every_game_of_the_table() -> None:
    text = README.read_text()
    assert f"| {' | '.join(solve_table.HEADER)} |" in text
    section = text.partition("## Solved games")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE) == list(solve_table.GAMES)
    assert {game.partition(":")[0] for game in solve_table.GAMES} <= set(library.names())


def test_a_picture_of_several_algorithms(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "kuhn_poker.png"
    convergence.plot_convergence("kuhn_poker", path, ["cfr", "pcfr+"], iterations=20)
    assert path.read_bytes().startswith(b"\x89PNG")
