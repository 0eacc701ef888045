"""Tournaments: every group of agents that fills a game plays a match, of two players every pair.

The folder of a tournament holds one folder for every match, and a cross table: the mean payoff of the agent of a row
against that of a column, where two play.
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
from gdlx.propnet.io import checked_fields

TABLE = "crosstable.csv"


@dataclasses.dataclass(frozen=True, eq=False)
class Tournament:
    """Every match has these terms, but a seed of its own."""

    arena: agent.Arena
    agents: tuple[agent.Agent, ...]
    terms: match.MatchSettings

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
        """Which agents meet, match by match."""
        return list(itertools.combinations(range(len(self.agents)), self.arena.env.num_players))

    def pairing(self, number: int) -> match.Match:
        seed = int(np.random.SeedSequence([self.terms.seed & (2**64 - 1), number]).generate_state(1)[0])
        players = tuple(self.agents[each] for each in self.groups[number])
        return match.Match(self.arena, players, dataclasses.replace(self.terms, seed=seed))


@dataclasses.dataclass(frozen=True)
class Standing:
    """Of an agent over all its matches, which count by their games."""

    agent: str
    whole: scores.ScoreSummary
    incidents: int

    def to_json(self) -> dict[str, Any]:
        return {"agent": self.agent} | self.whole.to_json() | {"incidents": self.incidents}


@dataclasses.dataclass(frozen=True)
class TournamentResult:
    """`table` has mean payoffs by (row, column), where two play."""

    game: str
    labels: tuple[str, ...]
    matches: tuple[scores.MatchResult, ...]  # that have begun
    standings: tuple[Standing, ...]  # the best first
    table: Mapping[tuple[str, str], scores.MeanEstimate]

    def to_json(self) -> dict[str, Any]:
        table = {row: {column: self._cell(row, column) for column in self.labels} for row in self.labels}
        return {
            "game": self.game,
            "standings": [standing.to_json() for standing in self.standings],
            "table": table if self.table else None,
            "matches": [found.to_json() for found in self.matches],
        }

    def _cell(self, row: str, column: str) -> dict[str, Any] | None:
        found = self.table.get((row, column))
        return None if found is None else found.to_json()


class TournamentRun:
    """A tournament under way: iterate over `batches()`; stop whenever you like; then `finish()` gives the result."""

    def __init__(self, whole: Tournament, folder: pathlib.Path | None = None) -> None:
        self.tournament, self.folder = whole, folder
        self.runs: list[contest.MatchRun] = []
        if folder is not None:
            records.write_config(folder, records.make_config("tournament", whole.arena, whole.agents, whole.terms))

    def batches(self) -> Iterator[match.GameBatch]:
        for number in range(len(self.tournament.groups)):
            run = self._begin(number)
            yield from run.batches()
            run.finish()

    @property
    def done(self) -> int:
        """Games that have ended, in matches that have begun."""
        return sum(run.done for run in self.runs)

    def _begin(self, number: int) -> contest.MatchRun:
        """Match `number`, gone on with where it has begun before."""
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
        """The result so far, saved."""
        found = score_tournament(self.tournament, self.runs)
        if self.folder is not None:
            records.write_json(self.folder / records.RESULT, found.to_json())
            if found.table:
                checked_fields.write_atomically(self.folder / TABLE, cross_table(found).encode(errors="replace"))
        return found


def score_tournament(whole: Tournament, runs: Sequence[contest.MatchRun]) -> TournamentResult:
    """Of the matches that have begun, which are the first ones."""
    matches = tuple(run.finish() for run in runs)
    labels = whole.labels
    table = {}
    if whole.arena.env.num_players == 2:
        for group, found in zip(whole.groups, matches, strict=False):
            for (row, column), score in zip(itertools.permutations(group), found.scores, strict=False):
                table[labels[row], labels[column]] = score.overall.payoff
    standings = [_standing(whole, number, runs) for number in range(len(labels))]
    there = [standing for standing in standings if standing is not None]
    there.sort(key=lambda standing: -standing.whole.payoff.mean)
    return TournamentResult(whole.arena.game.spec, labels, matches, tuple(there), table)


def _standing(whole: Tournament, number: int, runs: Sequence[contest.MatchRun]) -> Standing | None:
    """Every role in every match is a stratum."""
    payoff, goal, incidents = [], [], 0
    for group, run in zip(whole.groups, runs, strict=False):
        if number in group:
            seat = group.index(number)
            own = run.games.agent == seat
            payoff += [run.games.payoff[own[:, player], player] for player in range(own.shape[1])]
            goal += [run.games.goal[own[:, player], player] for player in range(own.shape[1])]
            incidents += sum(incident.agent == run.match.labels[seat] for incident in run.incidents)
    count = sum(map(len, payoff))
    if not count:
        return None
    part = scores.ScoreSummary(count, scores.stratified_mean(payoff), scores.stratified_mean(goal))
    return Standing(whole.labels[number], part, incidents)


def cross_table(found: TournamentResult) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["agent", *found.labels])
    for row in found.labels:
        cells = [found.table.get((row, column)) for column in found.labels]
        writer.writerow([row, *("" if cell is None else repr(cell.mean) for cell in cells)])
    return text.getvalue()
