"""The commands `match` and `tournament`."""

import dataclasses
import pathlib
import time
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from gdlx.cli import arguments, console, networks
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
_RESULTS = pathlib.Path("results")

NAMES = ", ".join(entries.ENTRIES)
_GameOrNone = Annotated[
    str | None, typer.Argument(metavar="[GAME]", help="A library name, e.g. goofspiel:cards=4, or a path.")
]
_Agents = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[AGENT]...",
        help=f"{NAMES}; with options as mccfr:seconds=2,table=18; or the folder of a solution, or a policy table.",
    ),
]
_Games = Annotated[int | None, typer.Option(min=1, help="Games of a match; 1 000 if nothing is said.")]
StartClock = Annotated[float, typer.Option(help="Seconds that an agent has before its first move.")]
PlayClock = Annotated[float, typer.Option(help="Seconds that an agent has for a move.")]
_NoSwap = Annotated[bool, typer.Option("--no-swap", help="Agents do not take turns at the roles.")]
_Results = Annotated[pathlib.Path, typer.Option(help="Where to make the folder of the result.", metavar="DIR")]
_Resume = Annotated[
    pathlib.Path | None, typer.Option(help="Go on with the games that were not played yet.", metavar="DIR")
]
Payoff = Annotated[Literal["auto", "zero-sum", "goal"], typer.Option(help="What payoffs are made of.")]
MaxSteps = Annotated[
    int, typer.Option(min=0, help="End games after so many joint moves; 0: four times the longest random one.")
]


def match(
    context: typer.Context,
    game: _GameOrNone = None,
    agents: _Agents = None,
    games: _Games = None,
    start_clock: StartClock = defaults.START_SECONDS,
    play_clock: PlayClock = defaults.PLAY_SECONDS,
    no_swap: _NoSwap = False,
    results: _Results = _RESULTS,
    resume: _Resume = None,
    payoff: Payoff = "auto",
    max_steps: MaxSteps = 0,
    *,
    compiling: arguments.Compiling,
) -> None:
    """Games between agents, one for every player: mean payoffs and goals, with intervals of 95 %."""
    given = console.options(context)
    rules = Rules(game, payoff, compiling.gdl, compiling.fold_case, max_steps, compiling.limits)
    asked = _Asked("match", rules, agents or [], games, not no_swap, start_clock, play_clock)
    begun = _begin(context, given, asked, results, resume)

    from gdlx.players.matches import contest
    from gdlx.players.matches import match as matches

    one = matches.Match(begun.arena, begun.agents, begun.config.terms)
    prepared = _prepare(given, begun)
    folder = begun.folder()
    run = contest.MatchRun(one, folder, resume=resume is not None)
    played = _play(given, begun, run, one.settings.games)._replace(preparing=prepared)
    found = run.finish()
    if given.json:
        console.emit(begun.told(folder) | found.to_json() | played.to_json())
    else:
        _show_match(found)
        console.say(f"{played.in_words(run.done)}; result in {folder}")
    _end(given, "match", folder, played)


def tournament(
    context: typer.Context,
    game: _GameOrNone = None,
    agents: _Agents = None,
    games: _Games = None,
    start_clock: StartClock = defaults.START_SECONDS,
    play_clock: PlayClock = defaults.PLAY_SECONDS,
    no_swap: _NoSwap = False,
    results: _Results = _RESULTS,
    resume: _Resume = None,
    payoff: Payoff = "auto",
    max_steps: MaxSteps = 0,
    *,
    compiling: arguments.Compiling,
) -> None:
    """A match between every two agents, or as many as the game has players: who gets how much against whom."""
    given = console.options(context)
    rules = Rules(game, payoff, compiling.gdl, compiling.fold_case, max_steps, compiling.limits)
    asked = _Asked("tournament", rules, agents or [], games, not no_swap, start_clock, play_clock)
    begun = _begin(context, given, asked, results, resume)

    from gdlx.players.matches import tournament as tournaments

    whole = tournaments.Tournament(begun.arena, begun.agents, begun.config.terms)
    prepared = _prepare(given, begun)
    folder = begun.folder()
    run = tournaments.TournamentRun(whole, folder)
    played = _play(given, begun, run, whole.terms.games * len(whole.groups))._replace(preparing=prepared)
    found = run.finish()
    if given.json:
        console.emit(begun.told(folder) | found.to_json() | played.to_json())
    else:
        _show_tournament(found)
        console.say(f"{played.in_words(run.done)}; result in {folder}")
    _end(given, "tournament", folder, played)


@dataclasses.dataclass(frozen=True)
class Rules:
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
        net = networks.network_of(given, named.spec, named.gdl, named.fold_case, self.within)
        return arenas.make_arena(named, net=net, max_steps=self.max_steps, start_seconds=start_seconds)


@dataclasses.dataclass(frozen=True)
class _Asked:
    """What was asked for on the command line."""

    kind: Literal["match", "tournament"]
    rules: Rules
    agents: list[str]
    games: int | None
    swap: bool
    start_seconds: float
    play_seconds: float


@dataclasses.dataclass(frozen=True)
class _Begun:
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

    def told(self, folder: pathlib.Path) -> dict[str, Any]:
        kept = ("seed", "swap", "start_clock", "play_clock")
        config = self.config.to_json()
        return {"result": str(folder), "games_wanted": self.config.terms.games} | {name: config[name] for name in kept}


def _begin(
    context: typer.Context, given: console.Options, asked: _Asked, root: pathlib.Path, resume: pathlib.Path | None
) -> _Begun:
    """The agents and the game; of the folder to go on with, if there is one."""
    if (asked.rules.game is None) == (resume is None):
        raise typer.BadParameter(f"name a GAME and its AGENTs, or a folder to --resume the {asked.kind}, and not both")

    from gdlx.envs import compilation_cache, game_spec
    from gdlx.players.agents import agent, agent_registry
    from gdlx.players.matches import match as matches
    from gdlx.players.matches import records
    from gdlx.solvers.runs import result_folder

    compilation_cache.enable()
    if resume is None:
        terms = matches.MatchSettings(
            asked.games or defaults.GAMES, asked.swap, given.seed, asked.start_seconds, asked.play_seconds
        )
        players = tuple(agent_registry.make_agent(text) for text in asked.agents)
        arena = asked.rules.arena(given, asked.start_seconds)
        config = records.make_config(asked.kind, arena, players, terms)
        return _Begun(config, players, arena, root, None)
    arguments.refuse_changes(context, asked.kind, _FIXED)
    config = records.read_config(resume)
    if config.kind != asked.kind:
        raise result_folder.ResultError(
            f"{resume} holds a {config.kind}: go on with `gdlx {config.kind} --resume {resume}`"
        )
    if asked.games is not None and asked.games < config.terms.games:
        raise typer.BadParameter(
            f"{resume} is a {config.kind} of {config.terms.games:,} games: --games with --resume can only be more"
        )
    terms = dataclasses.replace(config.terms, games=asked.games or config.terms.games)
    config = dataclasses.replace(config, terms=terms)
    players = tuple(agent_registry.make_agent(text) for text in config.agents)
    game: game_spec.GameSpec = config.game
    rules = Rules(game.spec, game.payoff, game.gdl, game.fold_case, config.max_steps, asked.rules.within)
    arena = rules.arena(given, config.terms.start_seconds)
    config.require_rules(arena, resume)
    for player in players:
        if agent.depends_on_wall_clock(player):
            console.remark(
                given,
                f"{player.name} learns by time before its first game, and so is not quite the same agent as before: "
                "these games count together; with iterations=.. it would be the same",
            )
    return _Begun(config, players, arena, root, resume)


_FIXED = ("start_clock", "play_clock", "no_swap", "results", "payoff", "max_steps", "gdl", "fold_case")


class _Played(NamedTuple):
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


def _prepare(given: console.Options, begun: _Begun) -> float:
    """Agents read and think before a folder is made: something may be wrong with them. The seconds it took."""
    from gdlx.players.matches import match as matches

    started = time.perf_counter()
    with console.progress(given, "preparing", len(begun.agents)) as advance:
        for player in begun.agents:
            matches.prepare(player, begun.arena)
            advance(player.name)
    return time.perf_counter() - started


def _play(
    given: console.Options, begun: _Begun, run: "contest.MatchRun | tournaments.TournamentRun", games: int
) -> _Played:
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
    return _Played(now, time.perf_counter() - started, left, stopped)


def _end(given: console.Options, kind: str, folder: pathlib.Path, played: _Played) -> None:
    if played.left or played.stopped:
        console.remark(given, f"interrupted; go on with: gdlx {kind} --resume {folder}")
    if played.stopped:
        raise typer.Exit(130)


def _show_match(found: "scores.MatchResult") -> None:
    if not found.games:
        console.say("no game has ended")
        return
    is_of_two = found.scores[0].wins is not None
    rows = table("agent", "role", "games", "payoff", "goal", *(["won", "drawn", "lost"] if is_of_two else []), texts=2)
    for score in found.scores:
        counts = [f"{count:,}" for count in (score.wins, score.draws, score.losses) if count is not None]
        lines = list(score.roles.items())
        if len(lines) > 1:
            lines.insert(0, ("all", score.overall))
        for number, (role, part) in enumerate(lines):
            add_row(rows, "" if number else score.agent, role, *_cells(part), *([] if number else counts))
    console.show(rows)
    _show_oddities(found)


def _show_tournament(found: "tournaments.TournamentResult") -> None:
    if not found.standings:
        console.say("no game has ended")
        return
    rows = table("agent", "games", "payoff", "goal", texts=1)
    for standing in found.standings:
        add_row(rows, standing.agent, *_cells(standing.whole))
    console.show(rows)
    if found.table:
        cross = table("payoff of", *(f"against {label}" for label in found.labels), texts=1)
        for row in found.labels:
            cells = (found.table.get((row, column)) for column in found.labels)
            add_row(cross, row, *("" if cell is None else str(cell) for cell in cells))
        console.say("")
        console.show(cross)
    for one in found.matches:
        _show_oddities(one)


def _show_oddities(found: "scores.MatchResult") -> None:
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


def _cells(part: "scores.ScoreSummary") -> tuple[str, str, str]:
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
