"""What a match tells: means with intervals of 95 %, for every agent in every role and over all of them.

The interval of a role is mean +- 1.96 s / sqrt(n), with the standard deviation s of its n games: normal, so good for
dozens of games and not for a few. Over all roles it is that of the mean over all games, in which the roles are strata:

    s.e.^2 = sum over roles r of n_r s_r^2 / n^2

since how the games are divided among the roles is no accident.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gdlx.players.agents import agent
from gdlx.players.matches import game_log

_NORMAL = 1.959964  # standard errors to either side hold 95 %


class MeanEstimate(NamedTuple):
    mean: float
    half_width: float | None  # of the interval's width; None where one game of a role tells nothing

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.half_width is None else (self.mean - self.half_width, self.mean + self.half_width)

    def to_json(self) -> dict[str, Any]:
        return {"mean": self.mean, "interval": None if self.interval is None else list(self.interval)}

    def __str__(self) -> str:
        return f"{self.mean:.4g}" if self.half_width is None else f"{self.mean:.4g} ± {self.half_width:.2g}"


def stratified_mean(strata: Sequence[game_log.Floats]) -> MeanEstimate:
    """
    >>> stratified_mean([np.array([1.0, 1.0]), np.array([-1.0, -1.0])])
    Mean(mean=0.0, half=0.0)
    """
    there = [part for part in strata if len(part)]
    count = sum(map(len, there))
    mean = sum(float(part.sum()) for part in there) / count
    if any(len(part) == 1 for part in there):
        return MeanEstimate(mean, None)
    variance = sum(len(part) * float(part.var(ddof=1)) for part in there) / count**2
    return MeanEstimate(mean, _NORMAL * math.sqrt(variance))


@dataclasses.dataclass(frozen=True)
class ScoreSummary:
    """Games of an agent."""

    games: int
    payoff: MeanEstimate
    goal: MeanEstimate

    def to_json(self) -> dict[str, Any]:
        return {"games": self.games, "payoff": self.payoff.to_json(), "goal": self.goal.to_json()}


@dataclasses.dataclass(frozen=True)
class AgentScore:
    """Of one agent. Who has the higher payoff wins; only where two play, and not in games that are unplayable."""

    agent: str
    overall: ScoreSummary
    roles: Mapping[str, ScoreSummary]
    wins: int | None
    draws: int | None
    losses: int | None
    incidents: int

    def to_json(self) -> dict[str, Any]:
        roles = {role: part.to_json() for role, part in self.roles.items()}
        counts = {"wins": self.wins, "draws": self.draws, "losses": self.losses, "incidents": self.incidents}
        return {"agent": self.agent} | self.overall.to_json() | counts | {"roles": roles}


@dataclasses.dataclass(frozen=True)
class MatchResult:
    """Of a match, or of what there is of it."""

    game: str
    games: int
    scores: tuple[AgentScore, ...]
    unplayable: int  # games that ended without goals
    goal_conflicts: int
    incidents: tuple[game_log.Incident, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "game": self.game,
            "games": self.games,
            "agents": [score.to_json() for score in self.scores],
            "unplayable": self.unplayable,
            "goal_conflicts": self.goal_conflicts,
            "incidents": [incident._asdict() for incident in self.incidents],
        }


def score_match(
    arena: agent.Arena, labels: Sequence[str], played: game_log.GameRecords, incidents: Sequence[game_log.Incident]
) -> MatchResult:
    count = len(played.number)
    return MatchResult(
        game=arena.game.spec,
        games=count,
        scores=tuple(_score(arena, number, label, played, incidents) for number, label in enumerate(labels) if count),
        unplayable=int(played.unplayable.sum()),
        goal_conflicts=int(played.goal_conflict.sum()),
        incidents=tuple(incidents),
    )


def _score(
    arena: agent.Arena, number: int, label: str, played: game_log.GameRecords, incidents: Sequence[game_log.Incident]
) -> AgentScore:
    by_role = [np.flatnonzero(played.agent[:, player] == number) for player in range(arena.env.num_players)]
    payoff, goal = (
        [column[rows, player] for player, rows in enumerate(by_role)] for column in (played.payoff, played.goal)
    )
    roles = {
        role: ScoreSummary(len(rows), stratified_mean([payoff[player]]), stratified_mean([goal[player]]))
        for player, (role, rows) in enumerate(zip(arena.env.players, by_role, strict=True))
        if len(rows)
    }
    own = sum(map(len, by_role))
    wins, draws, losses = _outcomes(number, played) if arena.env.num_players == 2 else (None, None, None)
    return AgentScore(
        agent=label,
        overall=ScoreSummary(own, stratified_mean(payoff), stratified_mean(goal)),
        roles=roles,
        wins=wins,
        draws=draws,
        losses=losses,
        incidents=sum(incident.agent == label for incident in incidents),
    )


def _outcomes(number: int, played: game_log.GameRecords) -> tuple[int, int, int]:
    """Games of two that the agent won, drew and lost."""
    ends = game_log.select_records(played, ~played.unplayable)
    is_first = ends.agent[:, 0] == number
    ahead = np.where(is_first, ends.payoff[:, 0] - ends.payoff[:, 1], ends.payoff[:, 1] - ends.payoff[:, 0])
    return int((ahead > 0).sum()), int((ahead == 0).sum()), int((ahead < 0).sum())
