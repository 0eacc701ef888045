"""The command `match`: games between agents."""

from typing import TYPE_CHECKING

import typer

from gdlx.cli import console, match_runs, shared_options

if TYPE_CHECKING:
    from gdlx.players.matches import scores


def match(
    context: typer.Context,
    game: shared_options.GameOrResume = None,
    agents: match_runs.Agents = None,
    *,
    playing: match_runs.MatchOptions,
    compiling: shared_options.Compiling,
) -> None:
    """Play games between agents, one for each player: mean payoffs and goals with 95 % intervals."""
    options = console.options(context)
    request = match_runs.MatchRequest("match", game, agents or [], playing, compiling)
    prepared = match_runs.begin(context, options, request)

    from gdlx.players.matches import contest
    from gdlx.players.matches import match as matches

    one_match = matches.Match(prepared.arena, prepared.agents, prepared.config.settings)
    prepare_seconds = match_runs.prepare_agents(options, prepared)
    folder = prepared.folder()
    run = contest.MatchRun(one_match, folder, resume=playing.resume is not None)
    played = match_runs.play_games(options, prepared, run, one_match.settings.games)._replace(preparing=prepare_seconds)
    result = run.finish()
    if options.json:
        console.emit(prepared.as_json(folder) | result.to_json() | played.to_json())
    else:
        _show_match(result)
        console.say(f"{played.in_words(run.done)}; result in {folder}")
    match_runs.finish(options, "match", folder, played)


def _show_match(result: "scores.MatchResult") -> None:
    if not result.games:
        console.say("no game has ended")
        return
    has_two_players = result.scores[0].wins is not None
    numbers = ("games", "payoff", "goal", *(("won", "drawn", "lost") if has_two_players else ()))
    rows = []
    for score in result.scores:
        counts = [f"{count:,}" for count in (score.wins, score.draws, score.losses) if count is not None]
        lines = list(score.roles.items())
        if len(lines) > 1:
            lines.insert(0, ("all", score.overall))
        for number, (role, summary) in enumerate(lines):
            totals = [""] * len(counts) if number else counts
            rows.append(["" if number else score.agent, role, *match_runs.score_cells(summary), *totals])
    console.show_table(("agent", "role", *numbers), rows, numbers)
    match_runs.show_problems(result)
