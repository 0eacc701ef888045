"""The table of solved games in README.md: `python -m gdlx.experiments.studies.solve_table` prints it anew.

Arguments are names of games, if not all are to be solved. `in all` is the time from the name of a game to its solution,
in a process that keeps no compiled programs on disk: most of it is compiling.
"""

import dataclasses
import sys
import time
from collections.abc import Iterator, Sequence

ITERATIONS = 1_000
GAMES = (
    "simple_poker",
    "kuhn_poker",
    "leduc_poker",
    "three_card_poker",
    "liars_dice",
    "goofspiel:cards=4",
    "goofspiel:cards=5",
    "gops",
    "biased_rps",
    "modified_rps",
    "rps_plus",
    "repeated_rps:rounds=4",
    "princess_and_monster",
    "tictactoe",
    "monty_hall",
    "smallest:players=3,numbers=3,steps=3",
)
HEADER = ("game", "information sets", "histories", "payoff", "exploitability", "of the range", "solving", "in all")
_NONE = 1e-7  # of the range: below this single precision tells nothing


@dataclasses.dataclass(frozen=True)
class SolvedGame:
    """One solved game. Axes: P players."""

    game: str
    information_sets: int  # with a choice, of all players
    histories: float  # unmerged, ends included
    payoff: tuple[float, ...]  # [P]
    error: float  # exploitability, or the largest improvement of any player where there are not two
    payoff_range: float
    solving_seconds: float  # seconds
    total_seconds: float  # seconds, with unrolling and compiling

    def cells(self) -> tuple[str, ...]:
        opposite = len(self.payoff) == 2 and abs(sum(self.payoff)) < 1e-3 * self.payoff_range
        part = self.error / self.payoff_range
        return (
            f"`{self.game}`",
            _whole(self.information_sets),
            _whole(self.histories),
            ", ".join(f"{round(value, 3) + 0.0:.3f}" for value in (self.payoff[:1] if opposite else self.payoff)),
            f"{self.error:.1g}" if part >= _NONE else f"< {_NONE * self.payoff_range:.0e}",
            f"{100 * part:.1g} %" if part >= _NONE else f"< {100 * _NONE:.0e} %",
            f"{self.solving_seconds:.2g} s",
            f"{self.total_seconds:.2g} s",
        )


def _whole(number: float) -> str:
    return f"{number:,.0f}".replace(",", " ")


def solve_game(game: str, iterations: int = ITERATIONS) -> SolvedGame:
    """A game of the library, solved with the default algorithm."""
    import gdlx

    begun = time.perf_counter()
    found = gdlx.solve(game, iterations=iterations)
    whole = time.perf_counter() - begun
    low, high = found.tree.payoff_range
    return SolvedGame(
        game,
        sum(found.tree.information_sets.values()),
        sum(found.tree.counts.histories),
        found.value,
        found.metrics[-1].error,
        high - low,
        found.seconds,
        whole,
    )


def lines(games: Sequence[str] = GAMES, iterations: int = ITERATIONS) -> Iterator[str]:
    """The table in Markdown, each line as soon as it is known."""
    yield f"| {' | '.join(HEADER)} |"
    yield f"|{'---|' * len(HEADER)}"
    for game in games:
        yield f"| {' | '.join(solve_game(game, iterations).cells())} |"


if __name__ == "__main__":
    for line in lines(sys.argv[1:] or GAMES):
        print(line, flush=True)
