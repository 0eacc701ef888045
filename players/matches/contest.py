"""`compete`: from a game's name and those of agents to the result of their match; and the run behind it."""

import pathlib
import time
from collections.abc import Callable, Generator, Iterator, Sequence

from gdlx.envs import game_spec
from gdlx.players import defaults
from gdlx.players.agents import agent, agent_registry
from gdlx.players.matches import arenas, game_log, match, records, scores
from gdlx.propnet.common import errors
from gdlx.solvers.runs import result_folder

_INTERVAL, _RESTS = (
    10.0,
    20,
)  # seconds between two times that games are written, and how many times as long as that took


class MatchRun:
    """A match under way, written to a folder as it goes if it has one.

    Iterate over `batches()`; stop whenever you like; then `finish()` gives the result of the games that have ended.
    """

    def __init__(self, one: match.Match, folder: pathlib.Path | None = None, *, resume: bool = False) -> None:
        self.match, self.folder = one, folder
        self.games = game_log.empty_records(one.players)
        self.incidents: list[game_log.Incident] = []
        self._lock = result_folder.lock(folder) if folder is not None else None
        self._saved, self._rest = time.monotonic(), 0.0
        if folder is not None:
            try:
                self._begin(folder, resume)
            except errors.UserError:
                self._let_go()
                raise
        self.done = len(self.games.number)  # games that have ended
        self._waiting: list[match.GameBatch] = []
        self._running: Generator[match.GameBatch, None, None] | None = None

    def _begin(self, folder: pathlib.Path, resume: bool) -> None:
        config = records.make_config("match", self.match.arena, self.match.agents, self.match.settings)
        if resume:
            records.require_same(folder, config)
            self.games = records.read_games(folder, self.match)
            self.incidents = records.read_incidents(folder, self.games)
        records.write_config(folder, config)

    def _let_go(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def batches(self) -> Iterator[match.GameBatch]:
        self._running = match.play_games(self.match, self.games.number.tolist())
        for batch in self._running:
            self._waiting.append(batch)
            self.done += len(batch.games.number)
            yield batch
            if time.monotonic() - self._saved >= max(_INTERVAL, self._rest):
                self.save()

    def _take(self) -> None:
        """What has been played since the last time: to join games one by one would take longer the more there are."""
        waiting, self._waiting = self._waiting, []
        self.games = game_log.merge_records([self.games, *(batch.games for batch in waiting)])
        self.incidents += [incident for batch in waiting for incident in batch.incidents]

    def save(self) -> None:
        begun = time.monotonic()
        self._take()
        if self.folder is not None:
            records.write_incidents(self.folder, self.incidents)
            records.write_games(self.folder, self.match, self.games)
        self._saved = time.monotonic()
        self._rest = _RESTS * (self._saved - begun)

    def finish(self) -> scores.MatchResult:
        """The result so far, saved."""
        if self._running is not None:
            self._running.close()  # lets go of the agents where it was broken off
        self.save()
        found = scores.score_match(self.match.arena, self.match.labels, self.games, self.incidents)
        if self.folder is not None:
            records.write_json(self.folder / records.RESULT, found.to_json())
        self._let_go()
        return found


def compete(
    game: str | game_spec.GameSpec | agent.Arena,
    players: Sequence[str | agent.Agent],
    *,
    games: int = defaults.GAMES,
    swap: bool = True,
    seed: int = 0,
    start_seconds: float = defaults.START_SECONDS,
    play_seconds: float = defaults.PLAY_SECONDS,
    folder: pathlib.Path | None = None,
    resume: bool = False,
    report: Callable[[match.GameBatch], None] | None = None,
) -> scores.MatchResult:
    """Let agents play, one for every player of the game: texts as in `gdlx match`, or agents of your own.

    With a folder, what has been played is kept whatever happens; with `resume` a match in it goes on.

    >>> result = compete("kuhn_poker", ["random", "random"], games=64)
    >>> result.games, [score.agent for score in result.scores]
    (64, ['random', 'random (2)'])
    """
    arena = game if isinstance(game, agent.Arena) else arenas.make_arena(game, start_seconds=start_seconds)
    found = tuple(agent_registry.make_agent(player) if isinstance(player, str) else player for player in players)
    run = MatchRun(
        match.Match(arena, found, match.MatchSettings(games, swap, seed, start_seconds, play_seconds)),
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
