"""Match folders: config.json, games.csv (one line per game), incidents.csv and result.json.

Every file is written atomically. Incidents are written before games: a game without a line is played again, so its
incidents are ignored when they are read.
"""

import contextlib
import csv
import dataclasses
import hashlib
import io
import json
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from gdlx.envs import game_facts, game_spec
from gdlx.players.agents import agent
from gdlx.players.matches import game_log, match
from gdlx.propnet.common import atomic_files, bounded_files
from gdlx.solvers.runs import result_folder

GAMES, INCIDENTS, RESULT = "games.csv", "incidents.csv", "result.json"
_FORMAT = 1
_LONGEST_NAME, _LONGEST_FOLDER = 40, 136
_ENDS = ("goal", "conflict", "unplayable")
RunKind = Literal["match", "tournament"]


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """The config of a match or a tournament: enough to repeat or resume it."""

    kind: RunKind
    game: game_spec.GameSpec
    digest: str  # of the rules
    agents: tuple[str, ...]  # names
    settings: match.MatchSettings  # of the match, or of every match of a tournament but for the seed
    max_steps: int
    sources: tuple[str, ...] | None = None  # digests of the files that agents play from; None: unknown

    def to_json(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "kind": self.kind,
            "game": self.game._asdict(),
            "digest": self.digest,
            "agents": list(self.agents),
            "games": self.settings.games,
            "swap": self.settings.swap,
            "seed": self.settings.seed,
            "start_clock": self.settings.start_seconds,
            "play_clock": self.settings.play_seconds,
            "max_steps": self.max_steps,
            "sources": self.sources,
            "versions": result_folder.versions(),
        }

    def require_rules(self, arena: agent.Arena, folder: pathlib.Path) -> None:
        """Raises ResultError if the rules of the game have changed."""
        if self.digest != game_facts.probe(arena.env.propnet).digest:
            raise result_folder.ResultError(
                f"{folder} was played with other rules of {self.game.spec} than there are now"
            )


def make_config(
    kind: RunKind, arena: agent.Arena, agents: Sequence[agent.Agent], settings: match.MatchSettings
) -> RunConfig:
    """The config of a run."""
    names, digest = tuple(player.name for player in agents), game_facts.probe(arena.env.propnet).digest
    return RunConfig(kind, arena.game, digest, names, settings, arena.steps, tuple(map(_source, agents)))


def _source(player: agent.Agent) -> str:
    """A digest of all files that an agent plays from; empty without any."""
    digest, paths = hashlib.sha256(), agent.sources(player)
    for path in paths:
        # Errors are reported when the agent reads it.
        with contextlib.suppress(OSError, bounded_files.FileError), bounded_files.open_regular(path) as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16] if paths else ""


def require_same(folder: pathlib.Path, now: RunConfig) -> None:
    """Raises ResultError if the folder holds another match; only the number of games may differ."""
    if not (folder / result_folder.CONFIG).exists():
        return
    before = read_config(folder)
    settings = dataclasses.replace(now.settings, games=before.settings.games)
    same = {
        "rules": before.digest == now.digest,
        "payoffs": before.game.payoff == now.game.payoff,
        "agents": before.agents == now.agents,
        "files of its agents": before.sources is None or before.sources == now.sources,
        "terms (seed, clocks or roles)": before.settings == settings,
        "limits on steps": before.max_steps == now.max_steps,
    }
    for what, is_same in same.items():
        if not is_same:
            raise result_folder.ResultError(
                f"{folder} was played with other {what}; resume it as it was started, or write results elsewhere"
            )
    if now.settings.games < before.settings.games:
        raise result_folder.ResultError(
            f"{folder} is a match of {before.settings.games:,} games; it can only be resumed with as many or more"
        )


def write_config(folder: pathlib.Path, config: RunConfig) -> None:
    write_json(folder / result_folder.CONFIG, config.to_json())


def write_json(path: pathlib.Path, value: object) -> None:
    atomic_files.write_atomically(path, json.dumps(value, indent=2, allow_nan=False).encode())


def read_config(folder: pathlib.Path) -> RunConfig:
    path = folder / result_folder.CONFIG
    try:
        with result_folder.explain_damage(path):
            config = result_folder.read_config_json(folder)
            if "agents" not in config:
                raise result_folder.ResultError(f"{folder} holds no games between agents; is it a solution?")
            if config["format"] != _FORMAT or config["kind"] not in ("match", "tournament"):
                raise result_folder.ResultError(f"{folder} has the format of another version of gdlx; play it again")
            return _parse_config(config)
    except FileNotFoundError:
        raise result_folder.ResultError(f"{folder} holds no match: it has no {result_folder.CONFIG}") from None


def _parse_config(config: dict[str, Any]) -> RunConfig:
    return RunConfig(
        kind=config["kind"],
        game=result_folder.parse_game(config["game"]),
        digest=str(config["digest"]),
        agents=tuple(str(text) for text in config["agents"]),
        settings=match.MatchSettings(
            games=int(config["games"]),
            swap=bool(config["swap"]),
            seed=int(config["seed"]),
            start_seconds=float(config["start_clock"]),
            play_seconds=float(config["play_clock"]),
        ),
        max_steps=int(config["max_steps"]),
        sources=tuple(map(str, config["sources"])) if config.get("sources") is not None else None,
    )


def folder_name(kind: str, agents: Iterable[str]) -> str:
    """The name of a folder for a match between agents.

    >>> folder_name("match", ["mccfr:seconds=1", "results/leduc_poker/dcfr"])
    'match-mccfr_seconds=1-vs-leduc_poker_dcfr'
    """
    return f"{kind}-{'-vs-'.join(map(_safe, agents))}"[:_LONGEST_FOLDER].rstrip("-_.")


def _safe(text: str) -> str:
    is_path = "/" in text and ":" not in text.partition("/")[0]
    short = "_".join(pathlib.PurePath(text).parts[-2:]) if is_path else text
    return re.sub(r"[^\w.+=,-]+", "_", short)[:_LONGEST_NAME].strip("_.") or "agent"


def write_games(folder: pathlib.Path, one: match.Match, played: game_log.GameRecords) -> None:
    roles = one.arena.env.players
    lines: list[Sequence[object]] = [_header(roles)]
    ends = np.where(played.unplayable, 2, np.where(played.goal_conflict, 1, 0)).tolist()
    columns = (played.number, played.agent, played.goal, played.payoff, played.length, played.incidents)
    for number, who, goal, payoff, length, incidents, end in zip(
        *(column.tolist() for column in columns), ends, strict=True
    ):
        names = [one.labels[each] for each in who]
        lines.append([number, *names, *map(_short, goal), *map(_short, payoff), length, _ENDS[end], incidents])
    _write_table(folder / GAMES, lines)


def _header(roles: Sequence[str]) -> list[str]:
    columns = [f"{what}_{role}" for what in ("agent", "goal", "payoff") for role in roles]
    return ["game", *columns, "steps", "end", "incidents"]


def _short(number: float) -> str:
    return repr(number).removesuffix(".0")


def write_incidents(folder: pathlib.Path, incidents: Sequence[game_log.Incident]) -> None:
    _write_table(folder / INCIDENTS, [game_log.Incident._fields, *incidents])


def _write_table(path: pathlib.Path, lines: Iterable[Sequence[object]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    atomic_files.write_atomically(path, text.getvalue().encode(errors="replace"))


def read_games(folder: pathlib.Path, one: match.Match) -> game_log.GameRecords:
    """Reads the games of a match that were played before, by the same agents."""
    header, *rows = _read_table(folder / GAMES) or [_header(one.arena.env.players)]
    players = one.players
    with result_folder.explain_damage(folder / GAMES):
        if header != _header(one.arena.env.players):
            raise ValueError("it has other columns")
        numbers = [int(row[0]) for row in rows]
        if wrong := [row[0] for row in rows if len(row) != len(header)]:
            raise ValueError(f"the line of game {wrong[0]} does not have {len(header)} columns")
        if len(set(numbers)) < len(numbers):
            raise ValueError("it has a game twice")
        if wrong := [row[0] for row, number in zip(rows, numbers, strict=True) if not 0 <= number < one.settings.games]:
            raise ValueError(f"there is no game {wrong[0]} in a match of {one.settings.games:,}")
        if wrong := [row[0] for row in rows if row[-2] not in _ENDS or int(row[-3]) < 0 or int(row[-1]) < 0]:
            raise ValueError(f"the line of game {wrong[0]} has an unknown end, or a negative count")
        seats = [one.seats(number) for number in numbers]
        if [row[1 : 1 + players] for row in rows] != [
            [one.labels[seat] for seat in match_seats] for match_seats in seats
        ]:
            raise ValueError("its games were played by other agents")
        goal, payoff = (
            np.array([row[at : at + players] for row in rows], np.float64).reshape(-1, players)
            for at in (1 + players, 1 + 2 * players)
        )
        if not (np.isfinite(goal).all() and np.isfinite(payoff).all()):
            raise ValueError("a goal or a payoff is not a number")
        length, end, incidents = (np.array([row[at] for row in rows]) for at in (-3, -2, -1))
        return game_log.GameRecords(
            number=np.array(numbers, np.int64),
            agent=np.array(seats, np.int64).reshape(-1, players),
            payoff=payoff,
            goal=goal,
            length=length.astype(np.int64),
            unplayable=end == _ENDS[2],
            goal_conflict=end == _ENDS[1],
            incidents=incidents.astype(np.int64),
        )


def read_incidents(folder: pathlib.Path, played: game_log.GameRecords) -> list[game_log.Incident]:
    """Reads the incidents of these games."""
    numbers = set(played.number.tolist())
    incidents = []
    with result_folder.explain_damage(folder / INCIDENTS):
        for row in _read_table(folder / INCIDENTS)[1:]:
            game, step, role, name, kind, message = row
            if int(game) in numbers:
                incidents.append(
                    game_log.Incident(int(game), int(step), role, name, game_log.parse_incident_kind(kind), message)
                )
    return incidents


def _read_table(path: pathlib.Path) -> list[list[str]]:
    try:
        with result_folder.explain_damage(path):
            return bounded_files.read_csv(path)
    except FileNotFoundError:
        return []
