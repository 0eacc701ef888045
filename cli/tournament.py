"""The command `tournament`."""

from typing import TYPE_CHECKING

import typer

from gdlx.cli import console, shared_options

if TYPE_CHECKING:
    from gdlx.players.matches import tournament as tournaments

from gdlx.cli import match_runs


def tournament(
    context: typer.Context,
    game: shared_options.GameOrResume = None,
    agents: match_runs.Agents = None,
    *,
    options: match_runs.MatchOptions,
    compiling: shared_options.Compiling,
) -> None:
    """A match between every two agents, or as many as the game has players: who gets how much against whom."""
    given = console.options(context)
    request = match_runs.MatchRequest("tournament", game, agents or [], options, compiling)
    begun = match_runs.begin(context, given, request)

    from gdlx.players.matches import tournament as tournaments

    whole = tournaments.Tournament(begun.arena, begun.agents, begun.config.terms)
    prepared = match_runs.prepare_agents(given, begun)
    folder = begun.folder()
    run = tournaments.TournamentRun(whole, folder)
    played = match_runs.play_games(given, begun, run, whole.terms.games * len(whole.groups))._replace(
        preparing=prepared
    )
    result = run.finish()
    if given.json:
        console.emit(begun.as_json(folder) | result.to_json() | played.to_json())
    else:
        _show_tournament(result)
        console.say(f"{played.in_words(run.done)}; result in {folder}")
    match_runs.finish(given, "tournament", folder, played)


def _show_tournament(found: "tournaments.TournamentResult") -> None:
    if not found.standings:
        console.say("no game has ended")
        return
    rows = match_runs.table("agent", "games", "payoff", "goal", texts=1)
    for standing in found.standings:
        match_runs.add_row(rows, standing.agent, *match_runs.score_cells(standing.whole))
    console.show(rows)
    if found.table:
        cross = match_runs.table("payoff of", *(f"against {label}" for label in found.labels), texts=1)
        for row in found.labels:
            cells = (found.table.get((row, column)) for column in found.labels)
            match_runs.add_row(cross, row, *("" if cell is None else str(cell) for cell in cells))
        console.say("")
        console.show(cross)
    for one in found.matches:
        match_runs.show_oddities(one)
