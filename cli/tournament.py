"""The command `tournament`: a match between every group of agents."""

from typing import TYPE_CHECKING

import typer

from gdlx.cli import console, match_runs, shared_options

if TYPE_CHECKING:
    from gdlx.players.matches import tournament as tournaments


def tournament(
    context: typer.Context,
    game: shared_options.GameOrResume = None,
    agents: match_runs.Agents = None,
    *,
    playing: match_runs.MatchOptions,
    compiling: shared_options.Compiling,
) -> None:
    """Play a match between every two agents (or as many as the game has players): standings and a cross table."""
    options = console.options(context)
    request = match_runs.MatchRequest("tournament", game, agents or [], playing, compiling)
    prepared = match_runs.begin(context, options, request)

    from gdlx.players.matches import tournament as tournaments

    matches = tournaments.Tournament(prepared.arena, prepared.agents, prepared.config.settings)
    prepare_seconds = match_runs.prepare_agents(options, prepared)
    folder = prepared.folder()
    run = tournaments.TournamentRun(matches, folder)
    played = match_runs.play_games(options, prepared, run, matches.settings.games * len(matches.groups))._replace(
        preparing=prepare_seconds
    )
    result = run.finish()
    if options.json:
        console.emit(prepared.as_json(folder) | result.to_json() | played.to_json())
    else:
        _show_tournament(result)
        console.say(f"{played.in_words(run.done)}; result in {folder}")
    match_runs.finish(options, "tournament", folder, played)


def _show_tournament(result: "tournaments.TournamentResult") -> None:
    if not result.standings:
        console.say("no game has ended")
        return
    numbers = ("games", "payoff", "goal")
    rows = [(standing.agent, *match_runs.score_cells(standing.whole)) for standing in result.standings]
    console.show_table(("agent", *numbers), rows, numbers)
    if result.table:
        opponents = [f"against {label}" for label in result.labels]
        cross = []
        for row in result.labels:
            cells = (result.table.get((row, column)) for column in result.labels)
            cross.append([row, *("" if cell is None else str(cell) for cell in cells)])
        console.say("")
        console.show_table(("payoff of", *opponents), cross, opponents)
    for match in result.matches:
        match_runs.show_problems(match)
