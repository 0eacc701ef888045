"""The table of solved games in README.md: `python -m gdlx.experiments.studies.solve_table` prints it again.

Arguments are names of games, by default all. `in all` is the time from the name of a game to its solution, in a process
without a compilation cache: most of it is compile time.
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
_NONE = 1e-7  # of the payoff range: below this, single precision is all rounding


@dataclasses.dataclass(frozen=True)
class SolvedGame:
    """One solved game. Axes: P players."""

    game: str
    information_sets: int  # with a choice, of all players
    histories: float  # unmerged, including terminals
    payoff: tuple[float, ...]  # [P]
    error: float  # exploitability, or the largest improvement of any player where there are not two
    payoff_range: float
    solving_seconds: float  # seconds
    total_seconds: float  # seconds, with unrolling and compiling

    def cells(self) -> tuple[str, ...]:
        is_zero_sum = len(self.payoff) == 2 and abs(sum(self.payoff)) < 1e-3 * self.payoff_range
        fraction = self.error / self.payoff_range
        return (
            f"`{self.game}`",
            _whole(self.information_sets),
            _whole(self.histories),
            ", ".join(f"{round(value, 3) + 0.0:.3f}" for value in (self.payoff[:1] if is_zero_sum else self.payoff)),
            f"{self.error:.1g}" if fraction >= _NONE else f"< {_NONE * self.payoff_range:.0e}",
            f"{100 * fraction:.1g} %" if fraction >= _NONE else f"< {100 * _NONE:.0e} %",
            f"{self.solving_seconds:.2g} s",
            f"{self.total_seconds:.2g} s",
        )


def _whole(number: float) -> str:
    return f"{number:,.0f}".replace(",", " ")


def solve_game(game: str, iterations: int = ITERATIONS) -> SolvedGame:
    """Solves a game of the library with the default algorithm."""
    import gdlx

    begun = time.perf_counter()
    solution = gdlx.solve(game, iterations=iterations)
    total_seconds = time.perf_counter() - begun
    low, high = solution.tree.payoff_range
    return SolvedGame(
        game,
        sum(solution.tree.information_sets.values()),
        sum(solution.tree.counts.histories),
        solution.value,
        solution.metrics[-1].error,
        high - low,
        solution.seconds,
        total_seconds,
    )


def lines(games: Sequence[str] = GAMES, iterations: int = ITERATIONS) -> Iterator[str]:
    """Yields the lines of the table in Markdown, each as soon as its game is solved."""
    yield f"| {' | '.join(HEADER)} |"
    yield f"|{'---|' * len(HEADER)}"
    for game in games:
        yield f"| {' | '.join(solve_game(game, iterations).cells())} |"


if __name__ == "__main__":
    for line in lines(sys.argv[1:] or GAMES):
        print(line, flush=True)
