"""`compete`: from the names of a game and of agents to the result of their match; and the run behind it."""

import pathlib
import time
from collections.abc import Callable, Generator, Iterator, Sequence

from gdlx.envs import game_spec
from gdlx.players import defaults
from gdlx.players.agents import agent, agent_registry
from gdlx.players.matches import arenas, game_log, match, records, scores
from gdlx.propnet.common import errors
from gdlx.solvers.runs import result_folder

# Seconds between two saves, at least, and how many times as long as a save took.
_SAVE_INTERVAL, _SAVE_FACTOR = 10.0, 20


class MatchRun:
    """A match in progress, saved to a folder, if it has one, while it is played.

    Iterate over `batches()`, stop at any time, then call `finish()` for the result of the games that have ended.
    """

    def __init__(self, one: match.Match, folder: pathlib.Path | None = None, *, resume: bool = False) -> None:
        self.match, self.folder = one, folder
        self.games = game_log.empty_records(one.players)
        self.incidents: list[game_log.Incident] = []
        self._lock = result_folder.lock(folder) if folder is not None else None
        self._saved_time, self._min_interval = time.monotonic(), 0.0
        if folder is not None:
            try:
                self._start(folder, resume)
            except errors.UserError:
                self._unlock()
                raise
        self.done = len(self.games.number)  # games that have ended
        self._unmerged: list[match.GameBatch] = []
        self._running: Generator[match.GameBatch, None, None] | None = None

    def _start(self, folder: pathlib.Path, resume: bool) -> None:
        config = records.make_config("match", self.match.arena, self.match.agents, self.match.settings)
        if resume:
            records.require_same(folder, config)
            self.games = records.read_games(folder, self.match)
            self.incidents = records.read_incidents(folder, self.games)
        records.write_config(folder, config)

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def batches(self) -> Iterator[match.GameBatch]:
        """Plays the remaining games, and yields them in batches."""
        self._running = match.play_games(self.match, self.games.number.tolist())
        for batch in self._running:
            self._unmerged.append(batch)
            self.done += len(batch.games.number)
            yield batch
            if time.monotonic() - self._saved_time >= max(_SAVE_INTERVAL, self._min_interval):
                self.save()

    def _merge(self) -> None:
        """Adds the batches since the last merge to `games`: merging each by itself would take quadratic time."""
        batches, self._unmerged = self._unmerged, []
        self.games = game_log.merge_records([self.games, *(batch.games for batch in batches)])
        self.incidents += [incident for batch in batches for incident in batch.incidents]

    def save(self) -> None:
        """Writes all games so far, if there is a folder."""
        start = time.monotonic()
        self._merge()
        if self.folder is not None:
            records.write_incidents(self.folder, self.incidents)
            records.write_games(self.folder, self.match, self.games)
        self._saved_time = time.monotonic()
        self._min_interval = _SAVE_FACTOR * (self._saved_time - start)

    def finish(self) -> scores.MatchResult:
        """Saves and returns the result of the games so far."""
        if self._running is not None:
            self._running.close()  # stops the threads of agents if it was interrupted
        self.save()
        result = scores.score_match(self.match.arena, self.match.labels, self.games, self.incidents)
        if self.folder is not None:
            records.write_json(self.folder / records.RESULT, result.to_json())
        self._unlock()
        return result


def compete(
    game: game_spec.GameLike | agent.Arena | None = None,
    players: Sequence[str | agent.Agent] = (),
    *,
    rules: str | None = None,
    games: int = defaults.GAMES,
    swap: bool = True,
    seed: int = 0,
    start_seconds: float = defaults.START_SECONDS,
    play_seconds: float = defaults.PLAY_SECONDS,
    folder: pathlib.Path | None = None,
    resume: bool = False,
    report: Callable[[match.GameBatch], None] | None = None,
) -> scores.MatchResult:
    """Plays a match between agents, one for every player of the game.

    Args:
      game: whatever names it, as in `gdlx.make`, or an `Arena`.
      players: agents, or their names as in `gdlx match`.
      rules: the text of the rulesheet, instead of `game`.
      games: number of games.
      swap: whether agents rotate through the roles.
      seed: of chance, of agents, and of moves that replace illegal ones.
      start_seconds: the start clock. Agents that think once for all games take that of the `Arena`, if one is passed.
      play_seconds: the play clock of an agent at a move.
      folder: where games are saved while they are played; None: nowhere.
      resume: whether to continue the match in the folder.
      report: called with every batch of games.

    Returns:
      Scores of all agents, with 95 % confidence intervals.

    Raises:
      MatchError: a number of agents or games, or a clock, with which no match can be played.
      AgentError: an unknown agent, or one that cannot play this game.
      ResultError: the match in the folder is a different one.

    >>> import gdlx
    >>> result = gdlx.compete("kuhn_poker", ["random", "random"], games=64)
    >>> result.games, [score.agent for score in result.scores]
    (64, ['random', 'random (2)'])
    """
    arena = game if isinstance(game, agent.Arena) else arenas.make_arena(game, rules=rules, start_seconds=start_seconds)
    agents = tuple(agent_registry.make_agent(player) if isinstance(player, str) else player for player in players)
    run = MatchRun(
        match.Match(arena, agents, match.MatchSettings(games, swap, seed, start_seconds, play_seconds)),
        folder,
        resume=resume,
    )
    try:
        for batch in run.batches():
            if report:
                report(batch)
    finally:
        result = run.finish()
    return result
