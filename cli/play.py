"""The command `play`: a game against agents, at the terminal."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gdlx.cli import console, match_runs, shared_options
from gdlx.players import defaults

if TYPE_CHECKING:
    from gdlx.players.agents import agent
    from gdlx.players.matches import referee

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


def play(
    context: typer.Context,
    game: shared_options.Game,
    role: Annotated[str, typer.Option("--as", metavar="ROLE", help="Your role; also 1, 2, .. or first, second, ..")],
    against: Annotated[
        str, typer.Option(metavar="AGENT", help=f"Who plays all other roles: {match_runs.NAMES}, ..")
    ] = "random",
    start_clock: match_runs.StartClock = defaults.START_SECONDS,
    play_clock: match_runs.PlayClock = defaults.PLAY_SECONDS,
    payoff: shared_options.Payoff = "auto",
    max_steps: match_runs.MaxSteps = 0,
    *,
    compiling: shared_options.Compiling,
) -> None:
    """Play a game yourself, at the terminal. What was hidden from you is shown at the end."""
    given = console.options(context)

    from gdlx.envs import compilation_cache
    from gdlx.players.agents import agent, agent_registry, human
    from gdlx.players.matches import match as games
    from gdlx.players.matches import referee

    compilation_cache.enable()
    other = agent_registry.make_agent(against)
    if agent.is_untimed(other):
        raise typer.BadParameter(f"there is one terminal: --against {against} cannot sit at it too")
    rules = match_runs.GameOptions(game, payoff, compiling.gdl, compiling.fold_case, max_steps, compiling.limits)
    arena = rules.arena(given, start_clock)
    own = _player(arena, role)
    with console.progress(given, f"{against} prepares"):
        games.prepare(other, arena)
    players: list[agent.Agent] = [other] * arena.env.num_players
    players[own] = human.HumanAgent()
    judge = referee.Referee(arena, players, seed=given.seed, start_seconds=start_clock, play_seconds=play_clock)
    events: list[referee.GameStep] = []
    told, interrupted = None, False
    try:
        told = judge.play(0, range(len(players)), events)
    except agent.PlayerQuitError:
        pass
    except KeyboardInterrupt:
        interrupted = True
    finally:
        judge.close()
    if given.json:
        console.emit(_told_play(arena, own, against, events, told))
    else:
        _show_play(arena, own, events, told)
    if interrupted:
        raise typer.Exit(130)


def _player(arena: "agent.Arena", role: str) -> int:
    """The number of the player with a name, or of the first, second, .. one."""
    roles = arena.env.players
    others = {name: number for number, name in enumerate(_ORDINALS)}
    others |= {str(number + 1): number for number in range(len(roles))}
    found = roles.index(role) if role in roles else others.get(role.lower(), len(roles))
    if found >= len(roles):
        raise typer.BadParameter(f"{arena.game.spec} has no role {role!r}; it has {', '.join(roles)}")
    return found


def _moves(arena: "agent.Arena", events: "list[referee.GameStep]") -> list[dict[str, str]]:
    """Everybody's moves in words, chance's included."""
    lines = []
    for event in events:
        players = iter(event.moves)
        line = {}
        for each in arena.env.net.roles:
            number = event.chance if each.is_random else next(players)
            line[each.name] = "-" if number is None else each.moves[number]
        lines.append(line)
    return lines


def _told_play(
    arena: "agent.Arena", own: int, against: str, events: "list[referee.GameStep]", told: "referee.GameRecord | None"
) -> dict[str, Any]:
    roles = arena.env.players
    return {
        "game": arena.game.spec,
        "role": roles[own],
        "against": against,
        "moves": _moves(arena, events),
        "goals": None if told is None else dict(zip(roles, told.goal, strict=True)),
        "payoffs": None if told is None else dict(zip(roles, told.payoff, strict=True)),
        "incidents": [] if told is None else [incident._asdict() for incident in told.incidents],
        "interrupted": told is None,
    }


def _show_play(
    arena: "agent.Arena", own: int, events: "list[referee.GameStep]", told: "referee.GameRecord | None"
) -> None:
    names = [f"{each.name} (you)" if each.name == arena.env.players[own] else each.name for each in arena.env.net.roles]
    table = match_runs.table("step", *names, texts=1 + len(names))
    for number, line in enumerate(_moves(arena, events), 1):
        match_runs.add_row(table, str(number), *line.values())
    console.say("", "What happened:" if told is not None else "What happened so far:")
    console.show(table)
    if told is None:
        console.say("The game has not ended.")
        return
    for role, goal in zip(arena.env.players, told.goal, strict=True):
        console.say(f"{role}: goal {goal}")
    for incident in told.incidents:
        console.say(f"{incident.role}, step {incident.step}: {incident.kind} ({incident.message}); moved at random")
