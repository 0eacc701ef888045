"""The parts of a page about matches, tournaments and trainings of a game."""

from collections.abc import Sequence

from gdlx.experiments.reports import contest_records
from gdlx.experiments.reports.drawing import markup
from gdlx.propnet.common.text import plurals

element = markup.element


def contests(records: Sequence[contest_records.ContestRecord]) -> markup.Markup:
    """A table for every match and tournament: the agents, the best first."""
    if not records:
        return markup.Markup()
    explained = (
        "Means over all games of an agent, with 95 % intervals. Agents rotate through the roles unless the match kept "
        "them where they were."
    )
    parts = [part for record in records for part in (_standings(record), _crosstable(record))]
    return element("section", element("h3", "Matches and tournaments"), element("p", explained, class_="soft"), *parts)


def _standings(record: contest_records.ContestRecord) -> markup.Markup:
    games = plurals.count(record.games, "game")
    title = element(
        "p", f"{record.kind.capitalize()} of {games}, seed {record.seed}: ", element("code", str(record.folder))
    )
    rows = [
        (one.agent, f"{one.games:,}", str(one.payoff), str(one.goal), f"{one.incidents:,}" if one.incidents else "none")
        for one in record.standings
    ]
    return element("div", title, _table(("agent", "games", "payoff", "goal", "incidents"), rows))


def _crosstable(record: contest_records.ContestRecord) -> markup.Markup:
    """Payoffs of the agent of a row against that of a column."""
    if len(record.table) < 3:
        return markup.Markup()  # the standings say the same
    names = [one.agent for one in record.standings if one.agent in record.table]
    rows = []
    for name in names:
        cells = (record.table[name].get(other) for other in names)
        rows.append((name, *("" if cell is None else str(cell) for cell in cells)))
    return _table(("payoff of .. against", *names), rows)


def trainings(records: Sequence[contest_records.TrainingRecord]) -> markup.Markup:
    """A row for every training: what was learnt, and how strong it was when it was last measured."""
    if not records:
        return markup.Markup()
    goals = list(dict.fromkeys(name for one in records for name in one.measured if name.startswith("goal_")))
    names = ("learner", "seed", "iterations", "seconds", "exploitability")
    header = (*names, *(f"goal as {name.removeprefix('goal_')}" for name in goals), "folder")
    rows = [
        (
            one.learner,
            f"{one.seed}",
            f"{one.iterations:,}",
            f"{one.seconds:,.3g}",
            _shown(one, "exploitability"),
            *(_shown(one, name) for name in goals),
            str(one.folder),
        )
        for one in records
    ]
    explained = "As they were last measured; goals are those against uniformly random players."
    return element(
        "section", element("h3", "Trained networks"), element("p", explained, class_="soft"), _table(header, rows)
    )


def _shown(record: contest_records.TrainingRecord, name: str) -> str:
    return f"{record.measured[name]:.4g}" if name in record.measured else "not measured"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> markup.Markup:
    """The first and, if it is a folder, the last column are text; the others are numbers."""
    classes = ["free", *(["number"] * (len(header) - 1))]
    if header[-1] == "folder":
        classes[-1] = "free"
    return markup.scrolling(markup.table(header, rows, classes, class_="scores"), "table of scores")
