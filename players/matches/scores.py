"""Scores of a match: means with 95 % confidence intervals, for every agent in every role and over all roles.

The interval of a role is mean +- 1.96 s / sqrt(n), with the standard deviation s of its n games. This is the normal
approximation, good for dozens of games but not for a few. Over all roles it is that of the mean over all games, in
which the roles are strata:

    s.e.^2 = sum over roles r of n_r s_r^2 / n^2

since the numbers of games in the roles are not random.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gdlx.players.agents import agent
from gdlx.players.matches import game_log

_NORMAL = 1.959964  # 97.5 % quantile of the normal distribution


class MeanEstimate(NamedTuple):
    """A mean with its 95 % confidence interval."""

    mean: float
    half_width: float | None  # of the interval; None if some role has a single game, which has no variance

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.half_width is None else (self.mean - self.half_width, self.mean + self.half_width)

    def to_json(self) -> dict[str, Any]:
        return {"mean": self.mean, "interval": None if self.interval is None else list(self.interval)}

    def __str__(self) -> str:
        return f"{self.mean:.4g}" if self.half_width is None else f"{self.mean:.4g} ± {self.half_width:.2g}"


def stratified_mean(strata: Sequence[game_log.Floats]) -> MeanEstimate:
    """The mean over all samples, with the interval of stratified sampling.

    >>> stratified_mean([np.array([1.0, 1.0]), np.array([-1.0, -1.0])])
    MeanEstimate(mean=0.0, half_width=0.0)
    """
    nonempty = [stratum for stratum in strata if len(stratum)]
    count = sum(map(len, nonempty))
    mean = sum(float(stratum.sum()) for stratum in nonempty) / count
    if any(len(stratum) == 1 for stratum in nonempty):
        return MeanEstimate(mean, None)
    variance = sum(len(stratum) * float(stratum.var(ddof=1)) for stratum in nonempty) / count**2
    return MeanEstimate(mean, _NORMAL * math.sqrt(variance))


@dataclasses.dataclass(frozen=True)
class ScoreSummary:
    """Mean payoff and goal of an agent, in one role or over all roles."""

    games: int
    payoff: MeanEstimate
    goal: MeanEstimate

    def to_json(self) -> dict[str, Any]:
        return {"games": self.games, "payoff": self.payoff.to_json(), "goal": self.goal.to_json()}


@dataclasses.dataclass(frozen=True)
class AgentScore:
    """The score of one agent.

    In games of two players, the one with the higher payoff wins; unplayable games do not count. Wins, draws and losses
    are None for other numbers of players.
    """

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


@dataclasses.dataclass(frozen=True, repr=False)
class MatchResult:
    """The result of a match, or of its first games if it was interrupted.

    >>> MatchResult("kuhn_poker", games=0, scores=(), unplayable=0, goal_conflicts=0, incidents=())
    MatchResult(game='kuhn_poker', games=0, payoffs={}, incidents=0)
    """

    game: str
    games: int  # that have ended
    scores: tuple[AgentScore, ...]  # in the order of the agents
    unplayable: int  # games that ended without goals
    goal_conflicts: int
    incidents: tuple[game_log.Incident, ...]

    def __repr__(self) -> str:
        means = ", ".join(f"{score.agent!r}: {score.overall.payoff}" for score in self.scores)
        return (
            f"MatchResult(game={self.game!r}, games={self.games}, payoffs={{{means}}}, incidents={len(self.incidents)})"
        )

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
    """The scores of all agents in the games that were played."""
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
    games = sum(map(len, by_role))
    wins, draws, losses = _outcomes(number, played) if arena.env.num_players == 2 else (None, None, None)
    return AgentScore(
        agent=label,
        overall=ScoreSummary(games, stratified_mean(payoff), stratified_mean(goal)),
        roles=roles,
        wins=wins,
        draws=draws,
        losses=losses,
        incidents=sum(incident.agent == label for incident in incidents),
    )


def _outcomes(number: int, played: game_log.GameRecords) -> tuple[int, int, int]:
    """Two-player games that the agent won, drew and lost."""
    games = game_log.select_records(played, ~played.unplayable)
    is_first = games.agent[:, 0] == number
    lead = np.where(is_first, games.payoff[:, 0] - games.payoff[:, 1], games.payoff[:, 1] - games.payoff[:, 0])
    return int((lead > 0).sum()), int((lead == 0).sum()), int((lead < 0).sum())
