"""The command `play`: play against an agent at the terminal."""

import itertools
import sys
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from gdlx.cli import console, match_runs, shared_options
from gdlx.players import defaults
from gdlx.propnet.common import interrupts

if TYPE_CHECKING:
    from gdlx.players.agents import agent
    from gdlx.players.matches import referee

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


def play(
    context: typer.Context,
    game: shared_options.Game,
    role: Annotated[
        str, typer.Option("--as", metavar="ROLE", help="Your role: its name, or 1, 2, .. or first, second, ..")
    ] = "",
    against: Annotated[
        str, typer.Option(metavar="AGENT", help=f"The agent that plays all other roles: {match_runs.NAMES}, ..")
    ] = "random",
    start_clock: match_runs.StartClock = defaults.START_SECONDS,
    play_clock: match_runs.PlayClock = defaults.PLAY_SECONDS,
    payoff: shared_options.Payoff = "auto",
    max_steps: match_runs.MaxSteps = 0,
    *,
    compiling: shared_options.Compiling,
) -> None:
    """Play a game at the terminal. Hidden information is revealed at the end."""
    options = console.options(context)

    from gdlx.envs import compilation_cache
    from gdlx.players.agents import agent, agent_registry, human
    from gdlx.players.matches import match as games
    from gdlx.players.matches import referee
    from gdlx.propnet.checks import unplayable

    compilation_cache.enable()
    other = agent_registry.make_agent(against)
    if agent.is_untimed(other):
        raise typer.BadParameter(f"there is only one terminal: --against {against} would need another one")
    rules = match_runs.GameOptions(game, payoff, compiling.gdl, compiling.fold_case, max_steps, compiling.limits)
    arena = rules.arena(options, start_clock)
    unplayable.require_playable(arena.env.propnet, options.seed)
    player = _player(arena, role)
    with console.progress(options, f"preparing {against}"):
        games.prepare(other, arena)
    players: list[agent.Agent] = [other] * arena.env.num_players
    players[player] = human.AdvisedHuman(adviser=other)
    judge = referee.Referee(arena, players, seed=options.seed, start_seconds=start_clock, play_seconds=play_clock)
    try:
        for number in itertools.count():
            played = _play_one(judge, number)
            if options.json:
                console.emit(_as_json(arena, player, against, played))
            else:
                _show_play(arena, player, played)
            if played.interrupted:
                raise typer.Exit(interrupts.exit_code())
            if played.record is None or options.json or not _wants_another():
                return
    finally:
        judge.close()


class _Played(NamedTuple):
    """One game, and its record if it has ended."""

    events: "list[referee.GameStep]"
    record: "referee.GameRecord | None"
    interrupted: bool = False  # by Ctrl-C


def _play_one(judge: "referee.Referee", number: int) -> _Played:
    from gdlx.players.agents import agent

    events: list[referee.GameStep] = []
    try:
        return _Played(events, judge.play(number, range(len(judge.agents)), events))
    except agent.PlayerQuitError:
        return _Played(events, None)
    except KeyboardInterrupt:
        return _Played(events, None, interrupted=True)


def _wants_another() -> bool:
    """Ask whether to play again; nobody is asked who is not at a terminal."""
    if not sys.stdin.isatty():
        return False
    try:
        return console.stderr().input("another game? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _player(arena: "agent.Arena", role: str) -> int:
    """Return the index of a player from its name or position."""
    roles = arena.env.players
    positions = {name: number for number, name in enumerate(_ORDINALS)}
    positions |= {str(number + 1): number for number in range(len(roles))}
    player = roles.index(role) if role in roles else positions.get(role.lower(), len(roles))
    if not role:
        commands = " or ".join(f"`--as {name}`" for name in roles)
        raise typer.BadParameter(f"which role do you play in {arena.game.spec}? Add {commands}")
    if player >= len(roles):
        raise typer.BadParameter(f"{arena.game.spec} has no role {role!r}; it has {', '.join(roles)}")
    return player


def _moves(arena: "agent.Arena", events: "list[referee.GameStep]") -> list[dict[str, str]]:
    """Return the moves of all roles in words, including those of chance."""
    lines = []
    for event in events:
        players = iter(event.moves)
        line = {}
        for each in arena.env.propnet.roles:
            number = event.chance if each.is_random else next(players)
            line[each.name] = "-" if number is None else each.moves[number]
        lines.append(line)
    return lines


def _as_json(
    arena: "agent.Arena",
    player: int,
    against: str,
    played: _Played,
) -> dict[str, Any]:
    roles, record = arena.env.players, played.record
    return {
        "game": arena.game.spec,
        "role": roles[player],
        "against": against,
        "moves": _moves(arena, played.events),
        "goals": None if record is None else dict(zip(roles, record.goal, strict=True)),
        "payoffs": None if record is None else dict(zip(roles, record.payoff, strict=True)),
        "incidents": [] if record is None else [incident._asdict() for incident in record.incidents],
        "interrupted": record is None,
    }


def _show_play(arena: "agent.Arena", player: int, played: _Played) -> None:
    record = played.record
    names = [
        f"{each.name} (you)" if each.name == arena.env.players[player] else each.name
        for each in arena.env.propnet.roles
    ]
    rows = [
        (str(number), *("" if move == "noop" else move for move in line.values()))
        for number, line in enumerate(_moves(arena, played.events), 1)
    ]
    console.say("", "What happened:" if record is not None else "What happened so far:")
    console.show_table(("step", *names), rows)
    if record is None:
        console.say("The game has not ended.")
        return
    if record.unplayable:
        console.say(
            "The game stopped: some role has no legal move, or it has more joint actions than --max-steps; "
            f"`gdlx check --play {arena.game.spec}` shows which."
        )
        return
    for role, goal in zip(arena.env.players, record.goal, strict=True):
        console.say(f"{role}: goal {goal}")
    for incident in record.incidents:
        console.say(f"{incident.role}, step {incident.step}: {incident.kind} ({incident.message}); moved at random")
