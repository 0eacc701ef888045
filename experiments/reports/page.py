"""The page of a report: one self-contained HTML file."""

import datetime
import json
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import gdlx
from gdlx.envs import game_spec
from gdlx.envs.trees import unroll
from gdlx.experiments.reports import configurations, contest_records, contest_sections, facts, figures, gather, policies
from gdlx.experiments.reports.drawing import markup, propnet_figure, style, svg
from gdlx.propnet.common import errors
from gdlx.propnet.common.text import plurals

_ROWS = 50  # of a table; the rest is collapsed
_ALGORITHMS = 4  # whose policies are shown
_OPTIONS, _LEAST = 10, 5e-4  # actions shown per information set, and their least probability
_COLUMNS = ("", "free", "number", "number", "number", "number", "free")  # classes of the table of runs
_FEW = 12  # information sets that are not collapsed
_RESTRICTED = (
    "In each of these runs one player follows a model with probability p. Values and exploitability are of that "
    "restricted game; gdlx evaluate RESULT evaluates the policies in the game itself."
)

_TOGETHER = (
    "Seconds marked 1/N are of runs that were computed together, N in one program: they are equal shares of the time "
    "of that program, which is less than each run would take alone."
)

element = markup.element


class _Section(NamedTuple):
    """What was found of a game. Runs against a modelled opponent have a section of their own."""

    game: game_spec.GameSpec
    topic: configurations.ComparisonKey | None  # None if nothing was solved
    runs: Sequence[gather.RunRecord]
    contests: Sequence[contest_records.ContestRecord]
    trainings: Sequence[contest_records.TrainingRecord]

    @property
    def name(self) -> str:
        # Matches and trainings take the highest of several goals, unless they are told otherwise.
        conflict: unroll.GoalConflictMode = "refuse" if self.topic is not None else "max"
        usual = game_spec.GameSpec(self.game.spec, goal_conflict=conflict, rules=self.game.rules)
        other = [f"{name} {value}" for name, value in self.game._asdict().items() if value != getattr(usual, name)]
        options = f" ({', '.join(other)})" if other else ""
        is_restricted = self.topic is not None and self.topic.is_restricted
        return f"{self.game.spec}{options}{', opponents modelled' if is_restricted else ''}"


def _sections(gathered: gather.GatheredRuns) -> list[_Section]:
    """Matches and trainings stand beside the first solutions of their game, or alone where there are none."""
    topics = configurations.group_comparable(gathered.runs)
    sections: list[_Section] = []
    done: set[str] = set()
    for topic, runs in topics.items():
        is_first = not topic.is_restricted and topic.game.spec not in done
        done |= {topic.game.spec} if is_first else set()
        sections.append(_Section(topic.game, topic, runs, *_others(gathered, topic.game.spec if is_first else None)))
    for record in gathered.others:
        if record.game.spec not in done:
            done.add(record.game.spec)
            sections.append(_Section(record.game, None, (), *_others(gathered, record.game.spec)))
    return sections


def _others(
    gathered: gather.GatheredRuns, spec: str | None
) -> tuple[list[contest_records.ContestRecord], list[contest_records.TrainingRecord]]:
    contests = [record for record in gathered.contests if record.game.spec == spec]
    return contests, [record for record in gathered.trainings if record.game.spec == spec]


def page(gathered: gather.GatheredRuns, now: datetime.datetime) -> str:
    sections = _sections(gathered)
    names = [section.name for section in sections]
    title = f"gdlx report: {', '.join(names[:4])}{' ..' * (len(names) > 4)}"
    contents = [element("li", element("a", name, href=f"#game{n}")) for n, name in enumerate(names)]
    body = [
        element("h1", title),
        element("p", *_about(gathered, len({section.game.spec for section in sections}), now), class_="soft"),
        element("nav", element("ul", *contents), aria_label="games") if len(sections) > 1 else "",
        *(_section(f"game{n}", section) for n, section in enumerate(sections)),
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
    counts = {"run": len(gathered.runs), "training": len(gathered.trainings)}
    for kind in ("match", "tournament"):
        counts[kind] = sum(record.kind == kind for record in gathered.contests)
    contents = ", ".join(plurals.count(count, what) for what, count in counts.items() if count)
    yield f"{contents} of {plurals.count(games, 'game')}. Made by gdlx {gdlx.__version__} on "
    yield element("time", f"{now:%Y-%m-%d %H:%M} {now.tzname() or ''}".strip(), datetime=now.isoformat())
    solved_with = {", ".join(_versions(run)) for run in gathered.runs}
    yield f"; solved with {'; '.join(sorted(solved_with))}." if solved_with else "."


def _versions(run: gather.RunRecord) -> list[str]:
    versions = run.raw_config.get("versions")
    texts = [f"{name} {version}" for name, version in versions.items()] if isinstance(versions, dict) else []
    return texts or ["unknown versions"]


def _section(anchor: str, section: _Section) -> markup.Markup:
    grouped = configurations.group_by_configuration(section.runs)
    subject = facts.load_game(section.game)
    is_restricted = section.topic is not None and section.topic.is_restricted
    return element(
        "section",
        element("h2", section.name),
        element("p", _RESTRICTED, class_="remark") if is_restricted else "",
        _known(section, subject),
        *(_solved(grouped, section.topic.players, subject) if section.topic is not None else ()),
        contest_sections.trainings(section.trainings),
        contest_sections.contests(section.contests),
        _configs(grouped) if grouped else "",
        id=anchor,
    )


def _known(section: _Section, subject: facts.LoadedGame | str) -> markup.Markup:
    """Facts of a game, its propnet and its rules."""
    if isinstance(subject, str):
        missing = "its facts, rules and policies are missing"
        return element("p", f"The game cannot be loaded, so {missing}: {subject}", class_="remark")
    pairs = (element("div", element("dt", name), element("dd", text)) for name, text in facts.describe_game(subject))
    return element("div", element("dl", *pairs), _rules(section, subject), _drawing(subject))


def _rules(section: _Section, subject: facts.LoadedGame) -> markup.Markup:
    """The rules, if something on the page was made with them: a file of the same name may be about something else."""
    if not subject.rules:
        return markup.Markup()
    digests = [run.config.digest for run in section.runs]
    digests += [record.digest for record in section.contests] + [record.digest for record in section.trainings]
    if not any(map(subject.is_that_of, digests)):
        return element("p", "The rules have changed since, so they are not shown.", class_="remark")
    return element("details", element("summary", "The rules"), element("pre", subject.rules))


def _drawing(subject: facts.LoadedGame) -> markup.Markup:
    if subject.propnet is None:
        return markup.Markup()
    drawing = propnet_figure.draw(subject.propnet)
    if drawing is None:
        return element("p", "The propnet is too large for a drawing here: gdlx show GAME --dot", class_="soft")
    explained = (
        "From left to right: registers (blue) and moves (ochre), gates, outputs (green). A dashed line inverts. "
        "Point at a dot to see what it is."
    )
    return element("details", element("summary", "The propnet"), drawing, element("p", explained, class_="soft"))


def _solved(
    grouped: Sequence[configurations.Configuration], players: Sequence[str], subject: facts.LoadedGame | str
) -> Iterable[markup.Markup]:
    yield element("h3", "Convergence")
    yield figures.convergence(grouped, len(players))
    yield element("h3", "Runs")
    yield _runs(grouped, players)
    if any(run.config.together > 1 for one in grouped for run in one.runs):
        yield element("p", _TOGETHER, class_="soft")
    if not isinstance(subject, str):
        yield _policies(grouped, subject)


def _runs(grouped: Sequence[configurations.Configuration], players: Sequence[str]) -> markup.Markup:
    """The least exploitable first."""
    error = "exploitability" if len(players) == 2 else "largest improvement"
    values = f"value of {', '.join(players)}"
    names = ("algorithm", "changed settings", error, "iterations", "seconds", values, "seeds")
    rows = [_cells(one, style) for one, style in zip(grouped, figures.styles(grouped), strict=True)]

    def table(part: Sequence[Sequence[str]]) -> markup.Markup:
        return markup.scrolling(markup.table(names, part, _COLUMNS, class_="runs"), "table of runs")

    if len(rows) <= _ROWS:
        return table(rows)
    rest = element("details", element("summary", f"{len(rows) - _ROWS:,} more"), table(rows[_ROWS:]))
    return element("div", table(rows[:_ROWS]), rest)


def _cells(one: configurations.Configuration, style_name: str) -> tuple[str, ...]:
    runs = one.runs
    mark = [svg.swatch(style_name), " "] if style_name else []
    return (
        markup.join([*mark, one.algorithm]),
        ", ".join(one.changes),
        _range([run.error for run in runs if run.error is not None], "{:.3g}"),
        _range([run.last.iterations for run in runs], "{:,.0f}"),
        _seconds(runs),
        _values(runs),
        _seeds(one),
    )


def _seconds(runs: Sequence[gather.RunRecord]) -> str:
    together = max(run.config.together for run in runs)
    shown = _range([run.last.seconds for run in runs], "{:.3g}")
    return markup.join([shown, element("small", f" 1/{together:,}")]) if together > 1 else shown


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
    return f"{shown}; {plurals.count(len(one.repeats), 'shorter run')} not counted" if one.repeats else shown


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
    rows = [(choice.history, markup.join(_options(choice.options))) for choice in table.choices]
    if rows:
        yield markup.table(("actions and observations", "policy"), rows, class_="policy")


def _options(options: Sequence[tuple[str, float]]) -> Iterable[markup.Markup]:
    shown = [option for option in options[:_OPTIONS] if option[1] >= _LEAST]
    rest = options[len(shown) :]
    if len(rest) == 1:
        shown += rest
    elif rest:
        shown.append((plurals.count(len(rest), "other"), sum(probability for _, probability in rest)))
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
    return element("details", element("summary", f"The full configuration of {plurals.count(len(runs), 'run')}"), *each)


def _left_out(left_out: Sequence[gather.SkippedFolder]) -> markup.Markup:
    if not left_out:
        return markup.Markup()
    each = (element("li", one.reason) for one in left_out)
    return element("section", element("h2", "Left out"), element("ul", *each), id="left_out")
