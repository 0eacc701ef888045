"""Tournaments: every combination of as many agents as the game has players plays a match.

The folder of a tournament holds one folder for every match and, for two players, a cross table: the mean payoff of the
agent of a row against that of a column.
"""

import csv
import dataclasses
import io
import itertools
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gdlx.players.agents import agent
from gdlx.players.matches import contest, match, records, scores
from gdlx.propnet.common import atomic_files, seeds

TABLE = "crosstable.csv"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Tournament:
    """A tournament to be played: see `TournamentRun`.

    Attributes:
      arena: the game.
      agents: at least two, and at least one for every player of the game.
      settings: settings of every match, except that each has its own seed, derived from this one.
      groups: indices of the agents of every match.

    >>> from gdlx.players.agents import agent_registry
    >>> from gdlx.players.matches import arenas
    >>> agents = tuple(agent_registry.make_agent("random") for _ in range(3))
    >>> Tournament(arenas.make_arena("kuhn_poker"), agents, match.MatchSettings(games=10))
    Tournament(game='kuhn_poker', agents=('random', 'random (2)', 'random (3)'), matches=3, games=10)
    """

    arena: agent.Arena
    agents: tuple[agent.Agent, ...]
    settings: match.MatchSettings

    def __repr__(self) -> str:
        return (
            f"Tournament(game={self.arena.game.spec!r}, agents={self.labels}, matches={len(self.groups)}, "
            f"games={self.settings.games})"
        )

    def __post_init__(self) -> None:
        players = self.arena.env.num_players
        if len(self.agents) < max(2, players):
            raise match.MatchError(
                f"a tournament of {self.arena.game.spec} needs {max(2, players)} agents or more, "
                f"and {len(self.agents)} {'was' if len(self.agents) == 1 else 'were'} named"
            )

    @property
    def labels(self) -> tuple[str, ...]:
        return match.unique_labels([player.name for player in self.agents])

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """Indices of the agents of every match."""
        return list(itertools.combinations(range(len(self.agents)), self.arena.env.num_players))

    def pairing(self, number: int) -> match.Match:
        """Match `number`, with its own seed."""
        seed = int(np.random.SeedSequence([seeds.non_negative(self.settings.seed), number]).generate_state(1)[0])
        agents = tuple(self.agents[index] for index in self.groups[number])
        return match.Match(self.arena, agents, dataclasses.replace(self.settings, seed=seed))


@dataclasses.dataclass(frozen=True)
class Standing:
    """The score of an agent over the games of all its matches."""

    agent: str
    whole: scores.ScoreSummary
    incidents: int

    def to_json(self) -> dict[str, Any]:
        return {"agent": self.agent} | self.whole.to_json() | {"incidents": self.incidents}


@dataclasses.dataclass(frozen=True, repr=False)
class TournamentResult:
    """The result of a tournament, or of its first matches if it was interrupted.

    >>> TournamentResult("kuhn_poker", ("random", "mccfr"), matches=(), standings=(), table={})
    TournamentResult(game='kuhn_poker', matches=0, payoffs={})
    """

    game: str
    labels: tuple[str, ...]  # of the agents
    matches: tuple[scores.MatchResult, ...]  # that have started
    standings: tuple[Standing, ...]  # the highest mean payoff first
    table: Mapping[tuple[str, str], scores.MeanEstimate]  # mean payoffs by (row, column), for two players

    def __repr__(self) -> str:
        means = ", ".join(f"{standing.agent!r}: {standing.whole.payoff}" for standing in self.standings)
        return f"TournamentResult(game={self.game!r}, matches={len(self.matches)}, payoffs={{{means}}})"

    def to_json(self) -> dict[str, Any]:
        table = {row: {column: self._cell(row, column) for column in self.labels} for row in self.labels}
        return {
            "game": self.game,
            "standings": [standing.to_json() for standing in self.standings],
            "table": table if self.table else None,
            "matches": [result.to_json() for result in self.matches],
        }

    def _cell(self, row: str, column: str) -> dict[str, Any] | None:
        estimate = self.table.get((row, column))
        return None if estimate is None else estimate.to_json()


class TournamentRun:
    """A tournament in progress. Iterate over `batches()`, stop at any time, then call `finish()` for the result."""

    def __init__(self, tournament: Tournament, folder: pathlib.Path | None = None) -> None:
        self.tournament, self.folder = tournament, folder
        self.runs: list[contest.MatchRun] = []
        if folder is not None:
            records.write_config(
                folder, records.make_config("tournament", tournament.arena, tournament.agents, tournament.settings)
            )

    def batches(self) -> Iterator[match.GameBatch]:
        """Plays all matches one after the other, and yields their games in batches."""
        for number in range(len(self.tournament.groups)):
            run = self._start(number)
            yield from run.batches()
            run.finish()

    @property
    def done(self) -> int:
        """Games that have ended, in matches that have started."""
        return sum(run.done for run in self.runs)

    def _start(self, number: int) -> contest.MatchRun:
        """Starts or resumes match `number`."""
        one = self.tournament.pairing(number)
        folder = None
        if self.folder is not None:
            name = f"{number + 1:03}-{records.folder_name('match', (player.name for player in one.agents))}"
            folder = self.folder / name
            folder.mkdir(exist_ok=True)
        run = contest.MatchRun(one, folder, resume=True)
        self.runs.append(run)
        return run

    def finish(self) -> TournamentResult:
        """Saves and returns the result of the games so far."""
        result = score_tournament(self.tournament, self.runs)
        if self.folder is not None:
            records.write_json(self.folder / records.RESULT, result.to_json())
            if result.table:
                atomic_files.write_atomically(self.folder / TABLE, cross_table(result).encode(errors="replace"))
        return result


def score_tournament(tournament: Tournament, runs: Sequence[contest.MatchRun]) -> TournamentResult:
    """The result of the matches that have started, which are the first ones."""
    matches = tuple(run.finish() for run in runs)
    labels = tournament.labels
    table = {}
    if tournament.arena.env.num_players == 2:
        for group, result in zip(tournament.groups, matches, strict=False):
            for (row, column), score in zip(itertools.permutations(group), result.scores, strict=False):
                table[labels[row], labels[column]] = score.overall.payoff
    standings = [_standing(tournament, number, runs) for number in range(len(labels))]
    ranked = [standing for standing in standings if standing is not None]
    ranked.sort(key=lambda standing: -standing.whole.payoff.mean)
    return TournamentResult(tournament.arena.game.spec, labels, matches, tuple(ranked), table)


def _standing(tournament: Tournament, number: int, runs: Sequence[contest.MatchRun]) -> Standing | None:
    """Every role in every match is a stratum."""
    payoff, goal, incidents = [], [], 0
    for group, run in zip(tournament.groups, runs, strict=False):
        if number in group:
            seat = group.index(number)
            is_seat = run.games.agent == seat
            payoff += [run.games.payoff[is_seat[:, player], player] for player in range(is_seat.shape[1])]
            goal += [run.games.goal[is_seat[:, player], player] for player in range(is_seat.shape[1])]
            incidents += sum(incident.agent == run.match.labels[seat] for incident in run.incidents)
    count = sum(map(len, payoff))
    if not count:
        return None
    summary = scores.ScoreSummary(count, scores.stratified_mean(payoff), scores.stratified_mean(goal))
    return Standing(tournament.labels[number], summary, incidents)


def cross_table(result: TournamentResult) -> str:
    """The cross table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["agent", *result.labels])
    for row in result.labels:
        cells = [result.table.get((row, column)) for column in result.labels]
        writer.writerow([row, *("" if cell is None else repr(cell.mean) for cell in cells)])
    return text.getvalue()
