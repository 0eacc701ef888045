"""What `match`, `tournament` and `play` share: options, the game and its agents, playing, and tables of results."""

import dataclasses
import pathlib
import time
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from gdlx.cli import console, loading, shared_options
from gdlx.players import defaults
from gdlx.players.agents import entries

if TYPE_CHECKING:
    import rich.table

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
        help=f"{NAMES}; with options as mccfr:seconds=2,table=18; or the folder of a solution, or a policy table.",
    ),
]
StartClock = Annotated[float, typer.Option(help="Seconds that an agent has before its first move.")]
PlayClock = Annotated[float, typer.Option(help="Seconds that an agent has for a move.")]
MaxSteps = Annotated[
    int, typer.Option(min=0, help="End games after so many joint actions; 0: four times the longest random one.")
]


@dataclasses.dataclass(frozen=True)
class MatchOptions:
    """How agents play each other."""

    games: Annotated[int | None, typer.Option(min=1, help="Games of a match; 1 000 by default.")] = None
    start_clock: StartClock = defaults.START_SECONDS
    play_clock: PlayClock = defaults.PLAY_SECONDS
    no_swap: Annotated[bool, typer.Option("--no-swap", help="Agents do not take turns at the roles.")] = False
    results: Annotated[pathlib.Path, typer.Option(help="Where to create the result folder.", metavar="DIR")] = (
        pathlib.Path("results")
    )
    resume: Annotated[
        pathlib.Path | None, typer.Option(help="Resume with the games that were not played yet.", metavar="DIR")
    ] = None
    payoff: shared_options.Payoff = "auto"
    max_steps: MaxSteps = 0


@dataclasses.dataclass(frozen=True)
class GameOptions:
    """Which game, and how it is read."""

    game: str | None
    payoff: "payoffs.PayoffMode"
    gdl: int | None
    fold_case: bool
    max_steps: int
    within: "limits.Limits"

    def arena(self, given: console.Options, start_seconds: float) -> "agent.Arena":
        from gdlx.envs import game_spec
        from gdlx.players.matches import arenas

        named = game_spec.GameSpec(self.game or "", self.payoff, "max", self.gdl, self.fold_case)
        net = loading.load_propnet(given, named.spec, named.gdl, named.fold_case, self.within)
        return arenas.make_arena(named, net=net, max_steps=self.max_steps, start_seconds=start_seconds)


@dataclasses.dataclass(frozen=True)
class MatchRequest:
    """What the command line asks for."""

    kind: Literal["match", "tournament"]
    game: str | None
    agents: list[str]
    options: MatchOptions
    compiling: shared_options.Compiling

    @property
    def rules(self) -> GameOptions:
        compiling = self.compiling
        return GameOptions(
            self.game,
            self.options.payoff,
            compiling.gdl,
            compiling.fold_case,
            self.options.max_steps,
            compiling.limits,
        )


@dataclasses.dataclass(frozen=True)
class PreparedRun:
    config: "records.RunConfig"
    agents: "tuple[agent.Agent, ...]"
    arena: "agent.Arena"
    root: pathlib.Path
    resumed: pathlib.Path | None

    def folder(self) -> pathlib.Path:
        """Made when nothing can be wrong with the arguments any more."""
        if self.resumed is not None:
            return self.resumed
        from gdlx.players.matches import records
        from gdlx.solvers.runs import result_folder

        name = records.folder_name(self.config.kind, self.config.agents)
        return result_folder.create_folder(self.root, self.config.game.spec, name)

    def as_json(self, folder: pathlib.Path) -> dict[str, Any]:
        kept = ("seed", "swap", "start_clock", "play_clock")
        config = self.config.to_json()
        return {"result": str(folder), "games_wanted": self.config.terms.games} | {name: config[name] for name in kept}


def begin(context: typer.Context, given: console.Options, request: MatchRequest) -> PreparedRun:
    """The agents and the game; those of the folder to resume, if there is one."""
    options, resume = request.options, request.options.resume
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
        terms = matches.MatchSettings(
            options.games or defaults.GAMES, not options.no_swap, given.seed, options.start_clock, options.play_clock
        )
        players = tuple(agent_registry.make_agent(text) for text in request.agents)
        arena = request.rules.arena(given, options.start_clock)
        config = records.make_config(request.kind, arena, players, terms)
        return PreparedRun(config, players, arena, options.results, None)
    shared_options.refuse_changes(context, request.kind, _FIXED)
    config = records.read_config(resume)
    if config.kind != request.kind:
        raise result_folder.ResultError(
            f"{resume} holds a {config.kind}: resume it with `gdlx {config.kind} --resume {resume}`"
        )
    if options.games is not None and options.games < config.terms.games:
        raise typer.BadParameter(
            f"{resume} is a {config.kind} of {config.terms.games:,} games: --games with --resume can only be more"
        )
    terms = dataclasses.replace(config.terms, games=options.games or config.terms.games)
    config = dataclasses.replace(config, terms=terms)
    players = tuple(agent_registry.make_agent(text) for text in config.agents)
    game = config.game
    limits = request.compiling.limits
    rules = GameOptions(game.spec, game.payoff, game.gdl, game.fold_case, config.max_steps, limits)
    arena = rules.arena(given, config.terms.start_seconds)
    config.require_rules(arena, resume)
    for player in players:
        if agent.depends_on_wall_clock(player):
            console.remark(
                given,
                f"{player.name} learns by time before its first game, and so is not quite the same agent as before: "
                "these games count together; with iterations=.. it would be the same",
            )
    return PreparedRun(config, players, arena, options.results, resume)


_FIXED = ("start_clock", "play_clock", "no_swap", "results", "payoff", "max_steps", "gdl", "fold_case")


class PlayedGames(NamedTuple):
    """How it went this time."""

    games: int
    seconds: float
    left: bool = False  # by somebody at the terminal
    stopped: bool = False  # by Ctrl-C
    preparing: float = 0.0  # seconds before any clock ran

    def to_json(self) -> dict[str, Any]:
        times = {"games_now": self.games, "seconds": self.seconds, "preparing_seconds": self.preparing}
        return times | {"interrupted": self.left or self.stopped}

    def in_words(self, done: int) -> str:
        games = f"{done:,} game{'' if done == 1 else 's'}"
        now = games if done == self.games else f"{games}, {self.games:,} of them now"
        return f"{now}, in {self.seconds:.3g} s after {self.preparing:.3g} s to prepare"


def prepare_agents(given: console.Options, begun: PreparedRun) -> float:
    """Agents read and think before a folder is made: something may be wrong with them. The seconds it took."""
    from gdlx.players.matches import match as matches

    started = time.perf_counter()
    with console.progress(given, "preparing", len(begun.agents)) as advance:
        for player in begun.agents:
            matches.prepare(player, begun.arena)
            advance(player.name)
    return time.perf_counter() - started


def play_games(
    given: console.Options, begun: PreparedRun, run: "contest.MatchRun | tournaments.TournamentRun", games: int
) -> PlayedGames:
    from gdlx.players.agents import agent

    now, started, left, stopped = 0, time.perf_counter(), False, False
    talks = any(agent.is_untimed(player) for player in begun.agents)  # and would have a bar drawn over
    shown = dataclasses.replace(given, quiet=given.quiet or talks)
    try:
        with console.progress(shown, f"playing {begun.config.game.spec}") as advance:
            for batch in run.batches():
                now += len(batch.games.number)
                advance(f"{run.done:,} of {games:,} games")
    except agent.PlayerQuitError:
        left = True
    except KeyboardInterrupt:
        stopped = True
    return PlayedGames(now, time.perf_counter() - started, left, stopped)


def finish(given: console.Options, kind: str, folder: pathlib.Path, played: PlayedGames) -> None:
    if played.left or played.stopped:
        console.remark(given, f"interrupted; go on with: gdlx {kind} --resume {folder}")
    if played.stopped:
        raise typer.Exit(130)


def show_oddities(found: "scores.MatchResult") -> None:
    if found.unplayable:
        console.say(f"{found.unplayable:,} games ended without goals: no legal move, or too many joint moves")
    if found.goal_conflicts:
        console.say(f"{found.goal_conflicts:,} games ended with several goal values of a player, or none")
    if found.incidents:
        console.say(f"{len(found.incidents):,} times a random legal move was made instead of an agent's:")
        for each in found.incidents[:_SHOWN_INCIDENTS]:
            where = f"game {each.game}, step {each.step}, {each.role}"
            console.say(f"  {where}: {each.agent}: {each.kind}: {each.message}")
        if len(found.incidents) > _SHOWN_INCIDENTS:
            console.say("  .. and more, in incidents.csv")


def score_cells(part: "scores.ScoreSummary") -> tuple[str, str, str]:
    return f"{part.games:,}", str(part.payoff), str(part.goal)


def table(*columns: str, texts: int) -> "rich.table.Table":
    """Of which the first columns are texts, and the others numbers."""
    import rich.markup
    import rich.table

    found = rich.table.Table(box=None, pad_edge=False)
    for number, column in enumerate(columns):
        found.add_column(rich.markup.escape(column), justify="left" if number < texts else "right")
    return found


def add_row(to: "rich.table.Table", *cells: str) -> None:
    """Agents and moves may have names with brackets, which are no markup."""
    import rich.markup

    to.add_row(*map(rich.markup.escape, cells))
