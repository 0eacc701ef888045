"""Shared by `match`, `tournament` and `play`: options, preparing agents, playing games, and tables of results."""

import dataclasses
import pathlib
import time
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from gdlx.cli import console, loading, shared_options
from gdlx.players import defaults
from gdlx.players.agents import entries
from gdlx.propnet.common import interrupts
from gdlx.propnet.common.text import plurals

if TYPE_CHECKING:
    from gdlx.envs import payoffs
    from gdlx.players.agents import agent
    from gdlx.players.matches import contest, records, scores
    from gdlx.players.matches import tournament as tournaments
    from gdlx.propnet.common import limits


_SHOWN_INCIDENTS = 5

NAMES = ", ".join(entries.ENTRIES)
Agents = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[AGENT]...",
        help=f"{NAMES}, optionally with options: mccfr:seconds=2,table=18; or a result folder or policy table; "
        "or a class of yours as MODULE:CLASS.",
    ),
]
StartClock = Annotated[float, typer.Option(help="Seconds that an agent has before its first move.")]
PlayClock = Annotated[float, typer.Option(help="Seconds that an agent has for a move.")]
MaxSteps = Annotated[
    int, typer.Option(min=0, help="Stop games after this many joint actions; 0: four times the longest random game.")
]


@dataclasses.dataclass(frozen=True)
class MatchOptions:
    """Settings of matches and tournaments."""

    games: Annotated[int | None, typer.Option(min=1, help="Games of each match; 1 000 by default.")] = None
    start_clock: StartClock = defaults.START_SECONDS
    play_clock: PlayClock = defaults.PLAY_SECONDS
    no_swap: Annotated[
        bool, typer.Option("--no-swap", help="Keep the agents in their roles instead of rotating them.")
    ] = False
    results: Annotated[pathlib.Path, typer.Option(help="Where to create the result folder.", metavar="DIR")] = (
        pathlib.Path("results")
    )
    resume: Annotated[pathlib.Path | None, typer.Option(help="Resume the run in this folder.", metavar="DIR")] = None
    payoff: shared_options.Payoff = "auto"
    max_steps: MaxSteps = 0


@dataclasses.dataclass(frozen=True)
class GameOptions:
    """A game, and how to read and play it."""

    game: str | None
    payoff: "payoffs.PayoffMode"
    gdl: int | None
    fold_case: bool
    max_steps: int
    within: "limits.Limits"

    def arena(self, options: console.Options, start_seconds: float) -> "agent.Arena":
        from gdlx.envs import game_spec
        from gdlx.players.matches import arenas

        named = game_spec.GameSpec(self.game or "", self.payoff, "max", self.gdl, self.fold_case)
        propnet = loading.load_propnet(options, named.spec, named.gdl, named.fold_case, self.within)
        return arenas.make_arena(named, propnet=propnet, max_steps=self.max_steps, start_seconds=start_seconds)


@dataclasses.dataclass(frozen=True)
class MatchRequest:
    """The arguments of `match` or `tournament`."""

    kind: Literal["match", "tournament"]
    game: str | None
    agents: list[str]
    playing: MatchOptions
    compiling: shared_options.Compiling

    @property
    def rules(self) -> GameOptions:
        compiling = self.compiling
        return GameOptions(
            self.game,
            self.playing.payoff,
            compiling.gdl,
            compiling.fold_case,
            self.playing.max_steps,
            compiling.limits,
        )


@dataclasses.dataclass(frozen=True)
class PreparedRun:
    """A new or resumed run: its settings, agents and game, and where to write it."""

    config: "records.RunConfig"
    agents: "tuple[agent.Agent, ...]"
    arena: "agent.Arena"
    root: pathlib.Path
    resumed: pathlib.Path | None

    def folder(self) -> pathlib.Path:
        """Return the result folder; create it only now, after all arguments have been checked."""
        if self.resumed is not None:
            return self.resumed
        from gdlx.players.matches import records
        from gdlx.solvers.runs import result_folder

        name = records.folder_name(self.config.kind, self.config.agents)
        return result_folder.create_folder(self.root, self.config.game.spec, name)

    def as_json(self, folder: pathlib.Path) -> dict[str, Any]:
        names = ("seed", "swap", "start_clock", "play_clock")
        config = self.config.to_json()
        return {"result": str(folder), "games_wanted": self.config.settings.games} | {
            name: config[name] for name in names
        }


def begin(context: typer.Context, options: console.Options, request: MatchRequest) -> PreparedRun:
    """Load the agents and the game, or those of the folder to resume."""
    playing, resume = request.playing, request.playing.resume
    if (request.game is None) == (resume is None):
        raise typer.BadParameter(
            f"name a GAME and its AGENTs, or a folder to --resume the {request.kind}, and not both"
        )

    from gdlx.envs import compilation_cache
    from gdlx.players.agents import agent, agent_registry
    from gdlx.players.matches import match as matches
    from gdlx.players.matches import records
    from gdlx.solvers.runs import result_folder

    compilation_cache.enable()
    if resume is None:
        settings = matches.MatchSettings(
            playing.games or defaults.GAMES, not playing.no_swap, options.seed, playing.start_clock, playing.play_clock
        )
        players = tuple(agent_registry.make_agent(text) for text in request.agents)
        arena = request.rules.arena(options, playing.start_clock)
        config = records.make_config(request.kind, arena, players, settings)
        return PreparedRun(config, players, arena, playing.results, None)
    shared_options.refuse_changes(context, request.kind, _FIXED)
    config = records.read_config(resume)
    if config.kind != request.kind:
        raise result_folder.ResultError(
            f"{resume} contains a {config.kind}: resume it with `gdlx {config.kind} --resume {resume}`"
        )
    if playing.games is not None and playing.games < config.settings.games:
        raise typer.BadParameter(
            f"{resume} is a {config.kind} of {config.settings.games:,} games: --games cannot be fewer with --resume"
        )
    settings = dataclasses.replace(config.settings, games=playing.games or config.settings.games)
    config = dataclasses.replace(config, settings=settings)
    players = tuple(agent_registry.make_agent(text) for text in config.agents)
    game = config.game
    limits = request.compiling.limits
    rules = GameOptions(game.spec, game.payoff, game.gdl, game.fold_case, config.max_steps, limits)
    arena = rules.arena(options, config.settings.start_seconds)
    config.require_rules(arena, resume)
    for player in players:
        if agent.depends_on_wall_clock(player):
            console.remark(
                options,
                f"{player.name} learns for a fixed time before its first game, so it is not exactly the agent that "
                "played the earlier games; all games count together. With iterations=.. it would be the same agent",
            )
    return PreparedRun(config, players, arena, playing.results, resume)


_FIXED = ("start_clock", "play_clock", "no_swap", "results", "payoff", "max_steps", "gdl", "fold_case")


class PlayedGames(NamedTuple):
    """The games that this process played."""

    games: int
    seconds: float
    left: bool = False  # a person at the terminal quit
    stopped: bool = False  # Ctrl-C
    preparing: float = 0.0  # seconds, before any clock ran

    def to_json(self) -> dict[str, Any]:
        times = {"games_now": self.games, "seconds": self.seconds, "preparing_seconds": self.preparing}
        return times | {"interrupted": self.left or self.stopped}

    def in_words(self, done: int) -> str:
        games = plurals.count(done, "game")
        now = games if done == self.games else f"{games}, {self.games:,} of them now"
        return f"{now}, in {self.seconds:.3g} s after {self.preparing:.3g} s of preparation"


def prepare_agents(options: console.Options, prepared: PreparedRun) -> float:
    """Prepare the agents, before the folder is created since this may fail; return the seconds it took."""
    from gdlx.players.matches import match as matches

    started = time.perf_counter()
    with console.progress(options, "preparing", len(prepared.agents)) as advance:
        for player in prepared.agents:
            matches.prepare(player, prepared.arena)
            advance(player.name)
    return time.perf_counter() - started


def play_games(
    options: console.Options, prepared: PreparedRun, run: "contest.MatchRun | tournaments.TournamentRun", games: int
) -> PlayedGames:
    from gdlx.players.agents import agent

    now, started, left, stopped = 0, time.perf_counter(), False, False
    has_human = any(agent.is_untimed(player) for player in prepared.agents)  # a bar would overwrite the dialogue
    shown = dataclasses.replace(options, quiet=options.quiet or has_human)
    try:
        with console.progress(shown, f"playing {prepared.config.game.spec}") as advance:
            for batch in run.batches():
                now += len(batch.games.number)
                advance(f"{run.done:,} of {games:,} games")
    except agent.PlayerQuitError:
        left = True
    except KeyboardInterrupt:
        stopped = True
    return PlayedGames(now, time.perf_counter() - started, left, stopped)


def finish(options: console.Options, kind: str, folder: pathlib.Path, played: PlayedGames) -> None:
    if played.left or played.stopped:
        console.remark(options, f"interrupted; resume with: gdlx {kind} --resume {folder}")
    if played.stopped:
        raise typer.Exit(interrupts.exit_code())


def show_problems(result: "scores.MatchResult") -> None:
    """Report abnormal terminations, and moves that were made for an agent."""
    if result.unplayable:
        console.say(
            f"{result.unplayable:,} games ended without goals: no legal move, or more joint actions than --max-steps; "
            f"`gdlx check --play {result.game}` shows why"
        )
    if result.goal_conflicts:
        console.say(
            f"{result.goal_conflicts:,} games ended with several goal values for a player, or none; "
            f"`gdlx check --play {result.game}` shows one"
        )
    if result.incidents:
        console.say(f"{len(result.incidents):,} times a random legal move replaced that of an agent:")
        for incident in result.incidents[:_SHOWN_INCIDENTS]:
            where = f"game {incident.game}, step {incident.step}, {incident.role}"
            console.say(f"  {where}: {incident.agent}: {incident.kind}: {incident.message}")
        if len(result.incidents) > _SHOWN_INCIDENTS:
            console.say("  .. see incidents.csv for the others")


def score_cells(summary: "scores.ScoreSummary") -> tuple[str, str, str]:
    return f"{summary.games:,}", str(summary.payoff), str(summary.goal)
