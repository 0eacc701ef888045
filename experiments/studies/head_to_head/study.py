"""Players against each other: random, sampled before the match (mccfr), and sampling online (oos).

The tables are those of West (2024) and Schlindenbuch (2019) in miniature: less time to think, fewer games. README.md
has the citations. Poker is not the same variant; what can be compared is who beats whom, and roughly by how much. What
West calls Liar's Dice is meier.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gdlx.envs import compilation_cache
from gdlx.experiments.studies import study_registry
from gdlx.players.agents import agent, agent_registry
from gdlx.players.matches import arenas, contest, match, records, scores
from gdlx.solvers.runs import result_folder

MINUTES, FULL_MINUTES = 30.0, 120.0
_START = 1 / 90  # fraction of the time that an agent has before the matches of a game
_MOVES = 4.0  # decisions per match, about
_OFFLINE, _ONLINE = "mccfr", "oos"


class Pairing(NamedTuple):
    """`published` is the mean of the first agent, and half of its 95 % interval if that is published."""

    first: str
    second: str
    published: tuple[float, float | None] | None


class StudyGame(NamedTuple):
    spec: str
    source: str
    swap: bool  # whether agents swap roles
    scale: float  # the payoff range of the publication, or 100 if it has goals
    pairings: Sequence[Pairing]


def _fixed_role_game(spec: str, source: str, cells: Sequence[float]) -> StudyGame:
    """Goals of the first role, out of 100; rows and columns of the table are random and MCCFR."""
    pairs = (("random", "random"), ("random", _OFFLINE), (_OFFLINE, "random"), (_OFFLINE, _OFFLINE))
    published = [Pairing(*pair, (cell, None)) for pair, cell in zip(pairs, cells, strict=True)]
    return StudyGame(spec, source, False, 100.0, published)


def _swapped_role_game(spec: str, scale: float, cells: Sequence[tuple[float, float] | None]) -> StudyGame:
    pairs = ((_ONLINE, "random"), (_OFFLINE, "random"), (_ONLINE, _OFFLINE))
    published = [Pairing(*pair, cell) for pair, cell in zip(pairs, cells, strict=True)]
    return StudyGame(spec, "Schlindenbuch 2019, Table 5.7", True, scale, published)


# West 2024: its MCCFR searches at every move and has no network.
# Schlindenbuch 2019: 10 s before a match and 30 s a move online, 40 s offline; payoff ranges 38, 2 and 28 (Table 5.1).
GAMES = (
    _fixed_role_game("blind_tictactoe:bias=even", "West 2024, Table 3", (50.5, 36.0, 66.5, 55.5)),
    _fixed_role_game("blind_tictactoe:bias=x23", "West 2024, Table 4", (54.5, 41.5, 73.5, 56.0)),
    _fixed_role_game("blind_tictactoe:bias=x", "West 2024, Table 5", (64.0, 48.5, 81.5, 74.5)),
    _fixed_role_game("meier", "West 2024, Table 6", (35.0, 4.0, 98.0, 96.0)),
    _swapped_role_game("leduc_poker", 38.0, ((0.873, 0.048), (0.854, 0.048), (-0.006, 0.052))),
    _swapped_role_game("goofspiel:cards=6", 2.0, ((0.547, 0.011), (0.548, 0.011), (-0.011, 0.013))),
    _swapped_role_game("princess_and_monster:turns=8", 28.0, (None, (1.531, 0.146), (0.028, 0.148))),
)


def run(setting: study_registry.StudyConfig) -> Iterator[study_registry.StudyTable]:
    compilation_cache.enable()
    for game in GAMES:
        yield _table(game, setting)


def agent_specs(setting: study_registry.StudyConfig) -> dict[str, str]:
    """The agents with their time controls."""
    start = max(0.1, 60 * setting.minutes * _START)
    online = sum(_ONLINE in pairing[:2] for game in GAMES for pairing in game.pairings)
    remaining = 60 * setting.minutes - start * 2 * len(GAMES)
    each = max(0.01, remaining / max(1.0, online * setting.games * _MOVES))
    return {
        "random": "random",
        _OFFLINE: f"{_OFFLINE}:seconds={start:.3g}",
        _ONLINE: f"{_ONLINE}:start={start:.3g},seconds={each:.2g}",
    }


def _table(game: StudyGame, setting: study_registry.StudyConfig) -> study_registry.StudyTable:
    players = {name: agent_registry.make_agent(text) for name, text in agent_specs(setting).items()}
    arena = arenas.make_arena(game.spec)
    low, high = arena.env.payoff_range
    rows, data = [], []
    for pairing in game.pairings:
        setting.report(f"{game.spec}: {pairing.first} against {pairing.second}")
        both = (players[pairing.first], players[pairing.second])
        result = _play_match(arena, both, game, setting)
        overall = result.scores[0].overall
        score = overall.payoff if game.swap else overall.goal
        mean, half = score.mean, score.half_width
        scale = 100 / (high - low) if game.swap else 1.0
        ours = (scale * mean, None if half is None else scale * half)
        theirs = None
        if pairing.published is not None:
            theirs = tuple(None if x is None else 100 / game.scale * x for x in pairing.published)
        rows.append(
            (pairing.first, pairing.second, _shown(ours), "not published" if theirs is None else _shown(theirs))
        )
        data.append({"agents": [player.name for player in both], "ours": ours, "published": theirs})
    what = "payoff of the first in % of the range" if game.swap else "goals of the first, who has the first role"
    header = ("first", "second", f"ours, {setting.games:,} games", game.source)
    return study_registry.StudyTable(f"{game.spec}: {what}", header, rows, {game.spec: data})


def _play_match(
    arena: agent.Arena, both: tuple[agent.Agent, agent.Agent], game: StudyGame, setting: study_registry.StudyConfig
) -> scores.MatchResult:
    """Plays a match, or resumes it."""
    terms = match.MatchSettings(setting.games, game.swap, setting.seed, play_seconds=60.0)
    folder = (
        setting.folder / result_folder.folder_name(game.spec) / records.folder_name("match", [a.name for a in both])
    )
    has_started = (folder / result_folder.CONFIG).exists()
    folder.mkdir(parents=True, exist_ok=True)
    run = contest.MatchRun(match.Match(arena, both, terms), folder, resume=has_started)
    try:
        for _ in run.batches():
            setting.report(f"{game.spec}: {both[0].name} against {both[1].name}, {run.done:,} games")
    finally:
        result = run.finish()
    return result


def _shown(interval: Sequence[float | None]) -> str:
    mean, half = interval
    return f"{mean:.1f}" if half is None else f"{mean:.1f} ± {half:.1f}"
