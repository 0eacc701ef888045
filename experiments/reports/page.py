"""The page of a report: one self-contained HTML file."""

import datetime
import json
import statistics
from collections.abc import Iterable, Sequence

import gdlx
from gdlx.envs import game_spec
from gdlx.experiments.reports import configurations, facts, figures, gather, markup, policies, style, svg
from gdlx.propnet.common import errors

_ROWS = 50  # of a table; the rest is collapsed
_ALGORITHMS = 4  # whose policies are shown
_OPTIONS, _LEAST = 10, 5e-4  # actions shown per information set, and their least probability
_COLUMNS = ("", "free", "number", "number", "number", "number", "free")  # classes of the table of runs
_FEW = 12  # information sets that are not collapsed
_RESTRICTED = (
    "In each of these runs one player follows a model with probability p. Values and exploitability are of that "
    "restricted game; gdlx evaluate RESULT evaluates the policies in the game itself."
)

element = markup.element


def page(gathered: gather.GatheredRuns, now: datetime.datetime) -> str:
    topics = configurations.group_comparable(gathered.runs)
    names = [_name(topic) for topic in topics]
    title = f"gdlx report: {', '.join(names[:4])}{' ..' * (len(names) > 4)}"
    contents = [element("li", element("a", name, href=f"#game{n}")) for n, name in enumerate(names)]
    body = [
        element("h1", title),
        element("p", *_about(gathered, len({topic.game for topic in topics}), now), class_="soft"),
        element("nav", element("ul", *contents), aria_label="games") if len(topics) > 1 else "",
        *(_topic(f"game{n}", topic, runs) for n, (topic, runs) in enumerate(topics.items())),
        _left_out(gathered.skipped),
    ]
    head = [
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        # The page loads nothing and runs nothing, even if it contains hostile markup.
        element("meta", http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"),
        element("title", title),
        element("style", markup.Markup(style.sheet())),
    ]
    document = element("html", element("head", *head), element("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{document}\n"


def _about(gathered: gather.GatheredRuns, games: int, now: datetime.datetime) -> Iterable[str]:
    solved_with = {", ".join(_versions(run)) for run in gathered.runs}
    yield f"{_many(len(gathered.runs), 'run')} of {_many(games, 'game')}. Made by gdlx {gdlx.__version__} on "
    yield element("time", f"{now:%Y-%m-%d %H:%M} {now.tzname() or ''}".strip(), datetime=now.isoformat())
    yield f"; solved with {'; '.join(sorted(solved_with))}."


def _versions(run: gather.RunRecord) -> list[str]:
    versions = run.raw_config.get("versions")
    texts = [f"{name} {version}" for name, version in versions.items()] if isinstance(versions, dict) else []
    return texts or ["unknown versions"]


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _name(topic: configurations.ComparisonKey) -> str:
    game, usual = topic.game, game_spec.GameSpec(topic.game.spec)
    other = [f"{name} {value}" for name, value in game._asdict().items() if value != getattr(usual, name)]
    options = f" ({', '.join(other)})" if other else ""
    return f"{game.spec}{options}{', opponents modelled' if topic.is_restricted else ''}"


def _topic(anchor: str, topic: configurations.ComparisonKey, runs: Sequence[gather.RunRecord]) -> markup.Markup:
    grouped = configurations.group_by_configuration(runs)
    subject = facts.load_game(topic.game)
    if isinstance(subject, str):
        known = element(
            "p", f"The game cannot be loaded, so its facts and policies are missing: {subject}", class_="remark"
        )
        played = markup.Markup()
    else:
        pairs = (
            element("div", element("dt", name), element("dd", text)) for name, text in facts.describe_game(subject)
        )
        known = element("dl", *pairs)
        played = _policies(grouped, subject)
    return element(
        "section",
        element("h2", _name(topic)),
        element("p", _RESTRICTED, class_="remark") if topic.is_restricted else "",
        known,
        element("h3", "Convergence"),
        figures.convergence(grouped, len(topic.players)),
        element("h3", "Runs"),
        _runs(grouped, topic.players),
        played,
        _configs(grouped),
        id=anchor,
    )


def _runs(grouped: Sequence[configurations.Configuration], players: Sequence[str]) -> markup.Markup:
    """The least exploitable first."""
    error = "exploitability" if len(players) == 2 else "largest improvement"
    values = f"value of {', '.join(players)}"
    names = ("algorithm", "changed settings", error, "iterations", "seconds", values, "seeds")
    head = element(
        "tr", *(element("th", name, scope="col", class_=class_) for name, class_ in zip(names, _COLUMNS, strict=True))
    )
    rows = [_row(one, style) for one, style in zip(grouped, figures.styles(grouped), strict=True)]

    def table(part: Sequence[str]) -> markup.Markup:
        made = element("table", element("thead", head), element("tbody", *part), class_="runs")
        return element("div", made, class_="wide", tabindex=0, role="region", aria_label="table of runs")

    if len(rows) <= _ROWS:
        return table(rows)
    rest = element("details", element("summary", f"{len(rows) - _ROWS:,} more"), table(rows[_ROWS:]))
    return element("div", table(rows[:_ROWS]), rest)


def _row(one: configurations.Configuration, style_name: str) -> markup.Markup:
    runs = one.runs
    mark = [svg.swatch(style_name), " "] if style_name else []
    cells = (
        markup.join([*mark, one.algorithm]),
        ", ".join(one.changes),
        _range([run.error for run in runs if run.error is not None], "{:.3g}"),
        _range([run.last.iterations for run in runs], "{:,.0f}"),
        _range([run.last.seconds for run in runs], "{:.3g}"),
        _values(runs),
        _seeds(one),
    )
    return element("tr", *(element("td", cell, class_=class_) for cell, class_ in zip(cells, _COLUMNS, strict=True)))


def _range(numbers: Sequence[float], form: str) -> str:
    """The median, and the range unless all are equal."""
    if not numbers:
        return "not measured"
    middle, low, high = (form.format(n) for n in (statistics.median(numbers), min(numbers), max(numbers)))
    return middle if low == high else markup.join([middle, " ", element("small", f"({low} to {high})")])


def _values(runs: Sequence[gather.RunRecord]) -> str:
    """The median value of every player, with its standard error if it was estimated from matches."""
    known = [run.last.value for run in runs if run.last.value]
    if not known:
        return "not measured"
    texts = [f"{round(statistics.median(values), 4) + 0.0:.4f}" for values in zip(*known, strict=True)]
    if len(runs) == 1 and runs[0].last.value_error:
        texts = [f"{value} ± {error:.2g}" for value, error in zip(texts, runs[0].last.value_error, strict=True)]
    return ", ".join(texts)


def _seeds(one: configurations.Configuration) -> str:
    shown = ", ".join(map(str, one.seeds[:_OPTIONS])) or "none"
    if len(one.seeds) > _OPTIONS:
        shown = f"{shown} .. {one.seeds[-1]} ({len(one.seeds)} runs)"
    return f"{shown}; {_many(len(one.repeats), 'shorter run')} not counted" if one.repeats else shown


def _policies(grouped: Sequence[configurations.Configuration], subject: facts.LoadedGame) -> markup.Markup:
    best = configurations.best_run_per_algorithm(grouped)
    parts = [_policy(run, subject, is_first=n == 0) for n, run in enumerate(best[:_ALGORITHMS])]
    says = f"Of the best run of each algorithm; at most the first {policies.MAX_INFOSETS} information sets of a player."
    if left := best[_ALGORITHMS:]:
        says += f" Not shown: those of {', '.join(run.config.algorithm.name for run in left)}."
    if not parts:
        says = "No run has written its policies."
    return element("section", element("h3", "Policies"), element("p", says, class_="soft"), *parts)


def _policy(run: gather.RunRecord, subject: facts.LoadedGame, *, is_first: bool) -> markup.Markup:
    name = f"{run.config.algorithm.name} in {run.folder}"
    try:
        tables = policies.load_policy_tables(run, subject)
    except (errors.UserError, OSError) as error:
        return element("p", f"{name}: no policies are shown. {error}", class_="remark")
    shown = [element("div", *_player(table)) for table in tables]
    is_short = sum(len(table.choices) for table in tables) <= _FEW
    return element(
        "details", element("summary", name), element("div", *shown, class_="policies"), open=is_first and is_short
    )


def _player(table: policies.PolicyTable) -> Iterable[markup.Markup]:
    yield element("h4", table.player)
    says = [table.remark] if table.remark else []
    if table.sets > len(table.choices):
        says.insert(0, f"The first {len(table.choices)} of {table.sets:,} information sets.")
    if says:
        yield element("p", " ".join(says), class_="soft")
    head = element("tr", element("th", "actions and observations", scope="col"), element("th", "policy", scope="col"))
    rows = (
        element("tr", element("td", choice.history), element("td", *_options(choice.options)))
        for choice in table.choices
    )
    if table.choices:
        yield element("table", element("thead", head), element("tbody", *rows), class_="policy")


def _options(options: Sequence[tuple[str, float]]) -> Iterable[markup.Markup]:
    shown = [option for option in options[:_OPTIONS] if option[1] >= _LEAST]
    rest = options[len(shown) :]
    if len(rest) == 1:
        shown += rest
    elif rest:
        shown.append((_many(len(rest), "other"), sum(probability for _, probability in rest)))
    for name, probability in shown:
        bar = element(
            "span", element("span", style=f"width:{100 * probability:.1f}%"), class_="meter", aria_hidden="true"
        )
        yield element(
            "div", element("span", name), bar, element("span", f"{probability:.1%}", class_="number"), class_="option"
        )


def _configs(grouped: Sequence[configurations.Configuration]) -> markup.Markup:
    runs = [(one.name, run) for one in grouped for run in (*one.runs, *one.repeats)]
    each = (
        element(
            "details",
            element("summary", f"{name}{'' if run.seed is None else f', seed {run.seed}'}: {run.folder}"),
            element("pre", json.dumps(run.raw_config, indent=1)),
        )
        for name, run in runs
    )
    return element("details", element("summary", f"The full configuration of {_many(len(runs), 'run')}"), *each)


def _left_out(left_out: Sequence[gather.SkippedFolder]) -> markup.Markup:
    if not left_out:
        return markup.Markup()
    each = (element("li", one.reason) for one in left_out)
    return element("section", element("h2", "Left out"), element("ul", *each), id="left_out")
