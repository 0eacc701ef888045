"""The command `match`."""

from typing import TYPE_CHECKING

import typer

from gdlx.cli import console, shared_options

if TYPE_CHECKING:
    from gdlx.players.matches import scores

from gdlx.cli import match_runs


def match(
    context: typer.Context,
    game: shared_options.GameOrResume = None,
    agents: match_runs.Agents = None,
    *,
    options: match_runs.MatchOptions,
    compiling: shared_options.Compiling,
) -> None:
    """Games between agents, one for every player: mean payoffs and goals, with intervals of 95 %."""
    given = console.options(context)
    request = match_runs.MatchRequest("match", game, agents or [], options, compiling)
    begun = match_runs.begin(context, given, request)

    from gdlx.players.matches import contest
    from gdlx.players.matches import match as matches

    one = matches.Match(begun.arena, begun.agents, begun.config.terms)
    prepared = match_runs.prepare_agents(given, begun)
    folder = begun.folder()
    run = contest.MatchRun(one, folder, resume=options.resume is not None)
    played = match_runs.play_games(given, begun, run, one.settings.games)._replace(preparing=prepared)
    result = run.finish()
    if given.json:
        console.emit(begun.as_json(folder) | result.to_json() | played.to_json())
    else:
        _show_match(result)
        console.say(f"{played.in_words(run.done)}; result in {folder}")
    match_runs.finish(given, "match", folder, played)


def _show_match(found: "scores.MatchResult") -> None:
    if not found.games:
        console.say("no game has ended")
        return
    is_of_two = found.scores[0].wins is not None
    rows = match_runs.table(
        "agent", "role", "games", "payoff", "goal", *(["won", "drawn", "lost"] if is_of_two else []), texts=2
    )
    for score in found.scores:
        counts = [f"{count:,}" for count in (score.wins, score.draws, score.losses) if count is not None]
        lines = list(score.roles.items())
        if len(lines) > 1:
            lines.insert(0, ("all", score.overall))
        for number, (role, part) in enumerate(lines):
            match_runs.add_row(
                rows, "" if number else score.agent, role, *match_runs.score_cells(part), *([] if number else counts)
            )
    console.show(rows)
    match_runs.show_oddities(found)
