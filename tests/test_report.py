"""Reports: their numbers against the files they are made of, read in another way, and their look in a real browser."""

import csv
import html.parser
import json
import math
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import hypothesis
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st

from gdlx.envs import trees
from gdlx.experiments import markup, report, svg
from gdlx.experiments.reporting import configurations, curves, figures, gather, style
from gdlx.solvers import driver, presets, problems, profiles, results, table_policy
from gdlx.tests import browser, samples

GDLX = [sys.executable, "-m", "gdlx.cli"]
Floats = npt.NDArray[np.float64]


class Element:
    """Of a parsed page."""

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name, self.attributes = name, attributes
        self.children: list[Element | str] = []

    def find(self, name: str, class_: str = "") -> Iterator["Element"]:
        for child in self.children:
            if isinstance(child, Element):
                if child.name == name and (not class_ or class_ in child.attributes.get("class", "").split()):
                    yield child
                yield from child.find(name, class_)

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class Parser(html.parser.HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open = [Element("", {})]
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(made)
        if tag not in ("meta", "br"):
            self.open.append(made)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().name == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parsed(path: pathlib.Path) -> Element:
    parser = Parser(path.read_text())
    assert len(parser.open) == 1  # every element is closed
    return parser.open[0]


def falling(iterations: Sequence[int], scale: float = 1.0, speed: float = 0.01) -> list[driver.Metrics]:
    """Made up metrics of two players."""
    rng = np.random.default_rng(int(1e6 * scale))
    rows = []
    for n in iterations:
        gain = scale / (n + 1) * rng.uniform(0.5, 1.5)
        rows.append(driver.Metrics(n, speed * n, (-0.05 - gain, 0.05 + gain), (gain, 2 * gain)))
    return rows


def write_run(
    folder: pathlib.Path,
    metrics: Sequence[driver.Metrics],
    algorithm: str = "dcfr",
    game: str = "kuhn_poker",
    own: profiles.Policies | None = None,
    **changes: Any,
) -> pathlib.Path:
    """A result folder as gdlx writes it."""
    tree = samples.tree_of(game)
    chosen = presets.configured(presets.find(algorithm), None, changes)
    folder.mkdir(parents=True)
    results.write_config(folder, results.Config(trees.Game(game), problems.tree_digest(tree), chosen, x64=False))
    results.write_metrics(folder, [player.name for player in tree.players], metrics)
    results.write_policy(folder, own or tuple(profiles.uniform(player) for player in tree.players))
    return folder


def reported(folder: pathlib.Path) -> Element:
    report.write([folder], folder / "report.html")
    return parsed(folder / "report.html")


def last_row(folder: pathlib.Path) -> dict[str, float]:
    """Of the metrics, read without gdlx."""
    with open(folder / "metrics.csv") as file:
        return {name: float(text) for name, text in list(csv.DictReader(file))[-1].items() if text}


def rows_of(page: Element) -> list[list[str]]:
    (table,) = page.find("table", "runs")
    return [[cell.text.strip() for cell in row.find("td")] for row in table.find("tr") if list(row.find("td"))]


def test_the_table_of_runs_has_the_numbers_of_the_metrics(tmp_path: pathlib.Path) -> None:
    slow = write_run(tmp_path / "a", falling([0, 1, 10, 1000]), "cfr")
    good = write_run(tmp_path / "b", falling([0, 1, 10, 500], 0.01), alpha=2.0)
    seeds = [
        write_run(tmp_path / f"c{n}", falling([0, 1, 100 + n], 20.0 + n), "os-mccfr", seed=n, batch=64)
        for n in range(3)
    ]
    first, second, third = rows_of(reported(tmp_path))
    for row, folder, name, settings in ((first, good, "dcfr", "alpha 2"), (second, slow, "cfr", "")):
        told = last_row(folder)
        assert row[:2] == [name, settings]
        assert float(row[2]) == pytest.approx((told["gain_player1"] + told["gain_player2"]) / 2, rel=0.01)
        assert float(row[3].replace(",", "")) == told["iterations"]
        assert float(row[4]) == pytest.approx(told["seconds"], rel=0.01)
        assert [float(text) for text in row[5].split(", ")] == pytest.approx(
            [told["value_player1"], told["value_player2"]], abs=1e-4
        )
        assert row[6] == "none"
    errors = [last_row(folder)["exploitability"] for folder in seeds]
    middle, low, high = map(float, re.findall(r"[\d.e-]+", third[2]))
    assert (middle, low, high) == pytest.approx((np.median(errors), min(errors), max(errors)), rel=0.01)
    assert third[:2] == ["os-mccfr", "batch 64"]
    assert third[3] == "101 (100 to 102)"
    assert third[6] == "0, 1, 2"


class Chart:
    """Reads values off a drawn chart, by its ticks."""

    def __init__(self, chart: Element) -> None:
        self.chart = chart
        self.scales = {}
        for axis in "xy":
            ticks = list(chart.find("text", axis))
            at = [float(tick.attributes[axis]) for tick in ticks]
            assert len(ticks) >= 2
            self.scales[axis] = np.polyfit(at, [math.log10(float(tick.attributes["data-value"])) for tick in ticks], 1)

    def points(self, drawn: Element) -> tuple[Floats, Floats]:
        x, y = np.array([pair.split(",") for pair in drawn.attributes["points"].split()], float).T
        return 10 ** np.polyval(self.scales["x"], x), 10 ** np.polyval(self.scales["y"], y)

    def line(self, style_name: str) -> Element:
        (found,) = self.chart.find("g", style_name)
        return found

    def curve(self, style_name: str) -> tuple[Floats, Floats]:
        (drawn,) = self.line(style_name).find("polyline")
        return self.points(drawn)


def charts_of(page: Element) -> list[Chart]:
    return [Chart(chart) for chart in page.find("svg", "chart")]


def test_curves_are_the_logarithms_of_the_metrics(tmp_path: pathlib.Path) -> None:
    folder = write_run(tmp_path / "a", falling([0, 1, 2, 5, 17, 100, 4000]))
    write_run(tmp_path / "b", falling([0, 1, 3, 40], 50.0), "cfr")
    over_iterations, over_seconds = charts_of(reported(tmp_path))
    with open(folder / "metrics.csv") as file:
        rows = [{name: float(text or 0) for name, text in row.items()} for row in csv.DictReader(file)][1:]
    for chart, across in ((over_iterations, "iterations"), (over_seconds, "seconds")):
        x, y = chart.curve("colour0")
        np.testing.assert_allclose(x, [row[across] for row in rows], rtol=2e-3)
        np.testing.assert_allclose(y, [row["exploitability"] for row in rows], rtol=2e-3)
        assert len(chart.curve("colour1")[0]) == 3


def test_a_band_goes_from_the_lowest_seed_to_the_highest(tmp_path: pathlib.Path) -> None:
    times = [0, 1, 4, 20, 300]
    runs = [falling(times, 1.0 + n) for n in range(4)]
    for n, metrics in enumerate(runs):
        write_run(tmp_path / f"{n}", metrics, "os-mccfr", seed=n)
    page = reported(tmp_path)
    chart = charts_of(page)[0]
    errors = np.array([[row.exploitability for row in metrics[1:]] for metrics in runs], float)
    x, y = chart.curve("colour0")
    np.testing.assert_allclose(x, times[1:], rtol=2e-3)
    np.testing.assert_allclose(y, np.median(errors, axis=0), rtol=3e-3)
    (band,) = chart.line("colour0").find("polygon")
    x, y = chart.points(band)
    np.testing.assert_allclose(x, [*times[1:], *times[:0:-1]], rtol=2e-3)
    np.testing.assert_allclose(y[:4], errors.min(axis=0), rtol=3e-3)
    np.testing.assert_allclose(y[:3:-1], errors.max(axis=0), rtol=3e-3)
    (caption,) = page.find("figcaption")
    assert "median, in a band from the lowest to the highest" in caption.text


def configuration_of(tmp_path: pathlib.Path) -> configurations.Configuration:
    (found,) = configurations.grouped(gather.gather([tmp_path]).runs)
    return found


def test_seeds_measured_at_different_times_are_compared_where_all_are(tmp_path: pathlib.Path) -> None:
    times = ([0, 2, 9, 100, 900], [0, 1, 30, 400], [0, 3, 50, 500])
    runs = [falling(own, 1.0 + n) for n, own in enumerate(times)]
    for n, metrics in enumerate(runs):
        write_run(tmp_path / f"{n}", metrics, "os-mccfr", seed=n)
    found = curves.curve(configuration_of(tmp_path), curves.iterations, 100)
    assert found is not None
    assert found.x.tolist() == [3, 9, 30, 50, 100, 400]
    at = [
        [
            math.exp(np.interp(math.log(x), np.log(own[1:]), [math.log(row.error) for row in metrics[1:]]))
            for own, metrics in zip(times, runs, strict=True)
        ]
        for x in found.x
    ]
    np.testing.assert_allclose(found.median, np.median(at, axis=1))
    np.testing.assert_allclose(found.low, np.min(at, axis=1))
    np.testing.assert_allclose(found.high, np.max(at, axis=1))


def test_seeds_that_were_never_measured_at_the_same_time(tmp_path: pathlib.Path) -> None:
    write_run(tmp_path / "a", falling([0, 1, 2]), "os-mccfr", seed=1)
    write_run(tmp_path / "b", falling([0, 50, 70]), "os-mccfr", seed=2)
    found = curves.curve(configuration_of(tmp_path), curves.iterations, 100)
    assert found is not None
    assert (found.x.tolist(), found.runs, found.left_out) == ([50, 70], 1, 1)
    (caption,) = reported(tmp_path).find("figcaption")
    assert "1 runs that have no iterations in common" in caption.text


def test_a_run_done_twice_counts_once(tmp_path: pathlib.Path) -> None:
    long = write_run(tmp_path / "a", falling([0, 1, 900]))
    write_run(tmp_path / "b", falling([0, 1, 90], 30.0))
    page = reported(tmp_path)
    ((_, _, error, iterations, *_, seeds),) = rows_of(page)
    assert float(error) == pytest.approx(last_row(long)["exploitability"], rel=0.01)
    assert (iterations, seeds) == ("900", "none; 1 shorter run not counted")
    assert f"{tmp_path / 'b'}" in page.text  # its configuration is there all the same


def test_of_many_configurations_the_best_are_in_colour(tmp_path: pathlib.Path) -> None:
    for n in range(12):
        write_run(tmp_path / f"{n}", falling([0, 1, 10, 100], 2.0 ** (11 - n)), gamma=float(n))
    page = reported(tmp_path)
    (legend,) = page.find("ul", "legend")
    named = [item.text.strip() for item in legend.find("li")]
    ranked = sorted(range(12), key=lambda n: last_row(tmp_path / f"{n}")["exploitability"])
    assert named == [*("dcfr" if n == 2 else f"dcfr (gamma {n})" for n in ranked[:8]), "all others"]
    for chart in charts_of(page):
        assert len(list(chart.chart.find("g", "other"))) == 4
        for rank, number in enumerate(ranked[:8]):
            _, y = chart.curve(f"colour{rank}")
            assert y[-1] == pytest.approx(last_row(tmp_path / f"{number}")["exploitability"], rel=3e-3)
    (caption,) = page.find("figcaption")
    assert "best 8 of 12 configurations are in colour" in caption.text


def test_configurations_differ_in_what_has_an_effect(tmp_path: pathlib.Path) -> None:
    metrics = falling([0, 1, 10])
    write_run(tmp_path / "a", metrics, "cfr+", horizon=10.0)
    write_run(tmp_path / "b", metrics, "cfr+", horizon=20.0)  # has no schedule
    write_run(tmp_path / "c", metrics, "hs-dcfr", horizon=10.0)
    write_run(tmp_path / "d", metrics, "hs-dcfr", horizon=20.0)
    write_run(tmp_path / "e", metrics, "es-mccfr", exploration=0.1, width=4.0)
    names = {one.name for one in configurations.grouped(gather.gather([tmp_path]).runs)}
    assert names == {
        "cfr+",
        "hs-dcfr (horizon 10)",
        "hs-dcfr (horizon 20)",
        "es-mccfr (sampling exploration 0.1, width 4)",
    }


def test_runs_against_a_model_are_of_another_game(tmp_path: pathlib.Path) -> None:
    write_run(tmp_path / "a", falling([0, 1, 10]))
    bound = {"player": "player2", "p": 0.25, "model": "abc"}
    patch(modelled=bound)(write_run(tmp_path / "b", falling([0, 1, 10], 0.1)))
    page = reported(tmp_path)
    assert [head.text for head in page.find("h2")] == ["kuhn_poker", "kuhn_poker, opponents modelled"]
    tables = [[cell.text for cell in table.find("td")] for table in page.find("table", "runs")]
    assert [table[1] for table in tables] == ["", "modelled player player2, p 0.25, model abc"]


def test_an_exact_solution_is_drawn_over_time_only(tmp_path: pathlib.Path) -> None:
    write_run(tmp_path / "a", [driver.Metrics(0, 0.02, (-0.05, 0.05), (0.0, 0.0))], "lp")
    write_run(tmp_path / "b", falling([0, 1, 10, 100]))
    page = reported(tmp_path)
    over_iterations, over_seconds = charts_of(page)
    assert not list(over_iterations.chart.find("g", "colour0"))
    x, y = over_seconds.curve("colour0")
    assert x == pytest.approx([0.02], rel=3e-3)
    assert y == pytest.approx([last_row(tmp_path / "b")["exploitability"]], rel=3e-3)  # the lowest there is but for 0
    (caption,) = page.find("figcaption")
    assert "only over time: lp" in caption.text
    assert "is drawn there" in caption.text


@pytest.mark.parametrize("gain", [(), (0.0, 0.0)])
def test_without_anything_to_draw(tmp_path: pathlib.Path, gain: tuple[float, ...]) -> None:
    write_run(tmp_path / "a", [driver.Metrics(n, 0.1 * n, (0.0, 0.0), gain) for n in range(3)])
    page = reported(tmp_path)
    assert not charts_of(page)
    ((_, _, error, *_),) = rows_of(page)
    assert error == ("0" if gain else "not measured")


def test_three_players(tmp_path: pathlib.Path) -> None:
    game = "smallest:numbers=3,steps=1"
    metrics = [driver.Metrics(n, 0.1 * n, (1.0, 2.0, 3.0), (0.3 / (n + 1), 0.7 / (n + 1), 0.1)) for n in (0, 1, 5)]
    write_run(tmp_path / "a", metrics, game=game)
    page = reported(tmp_path)
    ((_, _, error, _, _, values, _),) = rows_of(page)
    assert float(error) == pytest.approx(0.7 / 6, rel=0.01)
    assert values == "1.0000, 2.0000, 3.0000"
    assert "largest gain of a player over iterations" in page.text


def random_policies(game: str, seed: int) -> profiles.Policies:
    rng = np.random.default_rng(seed)
    return tuple(
        profiles.normalised(player, rng.uniform(0.01, 1, player.sequences)) for player in samples.tree_of(game).players
    )


def shown_policies(page: Element) -> list[dict[str, dict[str, float]]]:
    """Histories, moves and probabilities of every table of policies."""
    found = []
    for table in page.find("table", "policy"):
        rows = [list(row.find("td")) for row in table.find("tr")][1:]
        found.append({history.text: options_of(options) for history, options in rows})
    return found


def options_of(cell: Element) -> dict[str, float]:
    found = {}
    for option in cell.find("div", "option"):
        name, meter, _, told = option.find("span")
        (bar,) = meter.find("span")
        width = float(bar.attributes["style"].removeprefix("width:").removesuffix("%"))
        assert width == pytest.approx(float(told.text.removesuffix("%")), abs=0.06)
        found[name.text] = width / 100
    return found


def expected_policies(game: str, own: profiles.Policies, most: int) -> list[dict[str, dict[str, float]]]:
    found = []
    for player, policy in zip(samples.tree_of(game).players, own, strict=True):
        table = {}
        for number in range(min(most, player.sets)):
            chosen = policy[player.first[number] : player.first[number + 1]]
            table[player.labels[number]] = dict(zip(player.options(number), chosen.tolist(), strict=True))
        found.append(table)
    return found


def assert_same_policies(found: Sequence[Any], expected: Sequence[Any]) -> None:
    assert [list(table) for table in found] == [list(table) for table in expected]
    for one, other in zip(found, expected, strict=True):
        for history, options in other.items():
            assert one[history] == pytest.approx(options, abs=6e-4)


def test_policies_of_the_best_run_of_each_algorithm(tmp_path: pathlib.Path) -> None:
    own = [random_policies("kuhn_poker", n) for n in range(3)]
    write_run(tmp_path / "a", falling([0, 100]), own=own[0])
    write_run(tmp_path / "b", falling([0, 100], 0.1), own=own[1], gamma=3.0)
    write_run(tmp_path / "c", falling([0, 100], 10.0), "cfr", own=own[2])
    found = shown_policies(reported(tmp_path))
    assert_same_policies(found[:2], expected_policies("kuhn_poker", own[1], 40))
    assert_same_policies(found[2:], expected_policies("kuhn_poker", own[2], 40))


def test_only_the_first_information_sets_are_shown(tmp_path: pathlib.Path) -> None:
    own = random_policies("goofspiel:cards=4", 1)
    write_run(tmp_path / "a", falling([0, 100]), game="goofspiel:cards=4", own=own)
    page = reported(tmp_path)
    assert_same_policies(shown_policies(page), expected_policies("goofspiel:cards=4", own, 40))
    assert page.text.count("The first 40 of 81 information sets.") == 2


def test_policies_in_a_hash_table(tmp_path: pathlib.Path) -> None:
    """Against the look-up in the table itself; some sets are not in it."""
    folder = write_run(tmp_path / "a", falling([0, 100]), "os-mccfr", table=6)
    task = problems.table_problem(trees.Game("kuhn_poker"))
    config = json.loads((folder / "config.json").read_text()) | {"digest": task.digest}
    (folder / "config.json").write_text(json.dumps(config))
    keys, probability = table_policy.to_arrays(
        table_policy.of_policies(random_policies("kuhn_poker", 5), task.env, task.tree)
    )
    kept = table_policy.from_arrays(keys[:, 2:], probability[2:])
    results.write_table_policy(folder, kept)
    own, known = table_policy.at_sets(kept, task.env, task.tree)
    assert known == 10
    page = reported(tmp_path)
    found, expected = shown_policies(page), expected_policies("kuhn_poker", own, 40)
    assert sum(map(len, found)) == 10
    assert_same_policies(
        found, [{name: other[name] for name in one} for one, other in zip(found, expected, strict=True)]
    )
    left = [int(n) for n in re.findall(r"Left out: (\d+) information sets", page.text)]
    assert sum(left) == 2


def test_facts_of_a_game(tmp_path: pathlib.Path) -> None:
    write_run(tmp_path / "a", falling([0, 100]))
    page = reported(tmp_path)
    told = {name.text: fact.text for name, fact in zip(page.find("dt"), page.find("dd"), strict=True)}
    # Kuhn poker: three cards for two players, 12 information sets, an ante of 1 and a bet of 1.
    assert told["payoffs"] == "from -2 to 2, zero-sum"
    assert told["decisions of player1"] == told["decisions of player2"] == "6 information sets with a choice"
    assert re.fullmatch(r"\d+ gates, \d+ registers", told["network"])
    assert "role random" in told


HOSTILE = """
(role <script>) (role b)
(<= (legal ?p <img/src=x>) (role ?p) (not (true <b>)))
(<= (legal ?p "onload="x) (role ?p) (not (true <b>)))
(<= (next <b>) (does b ?m))
(<= terminal (true <b>))
(<= (goal ?p 50) (role ?p))
"""


def write_hostile(folder: pathlib.Path) -> pathlib.Path:
    """Every name is one that would do something, were it not taken for text."""
    sheet = folder / "<script>alert(1);'&amp;.gdl"
    sheet.write_text(HOSTILE)
    run = write_run(folder / "<img src=x onerror=alert(2)>", falling([0, 1, 10]), game=str(sheet))
    config = json.loads((run / "config.json").read_text())
    config["versions"] = {"<script>": "</style><script>alert(3)</script>"}
    config["settings"]["alpha"] = ["</pre><script>alert(4)</script>"]
    (run / "config.json").write_text(json.dumps(config))
    (folder / "</li><script>").mkdir(parents=True)
    (folder / "</li><script>" / "config.json").write_text('"<script>alert(5)</script>"')
    return folder


def test_names_are_text_whatever_they_say(tmp_path: pathlib.Path) -> None:
    page = reported(write_hostile(tmp_path))
    for name in ("script", "img", "b", "link", "iframe"):
        assert not list(page.find(name)), name
    every = {attribute for element in page.find("div") for attribute in element.attributes}
    assert not {name for name in every if name.startswith("on")}
    (table, _) = page.find("table", "policy")
    assert {option.text.rpartition(">")[0] + ">" for option in table.find("div", "option")} >= {"<img/src=x>"}
    for text in ("role <script>", "<script>alert(1);'&amp;.gdl", "</style><script>alert(3)", "onerror=alert(2)"):
        assert text in page.text
    ((_, settings, *_),) = rows_of(page)
    assert "</pre><script>alert(4)</script>" in settings
    (left_out,) = [section for section in page.find("section") if section.attributes.get("id") == "left_out"]
    assert "</li><script>" in left_out.text


@pytest.mark.parametrize(
    ("given", "escaped"), [("<&>", "&lt;&amp;&gt;"), ('"', "&quot;"), ("'", "&#x27;"), (markup.Markup("<b>"), "<b>")]
)
def test_only_markup_is_not_escaped(given: str, escaped: str) -> None:
    assert markup.element("p", given) == f"<p>{escaped}</p>"
    assert "<b>" not in markup.element("p", title=given)


def spoil_version(folder: pathlib.Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"format": 999}))


def cut(name: str, part: float) -> Any:
    def spoil(folder: pathlib.Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: int(len(data) * part)])

    return spoil


def put(name: str, data: bytes) -> Any:
    def spoil(folder: pathlib.Path) -> None:
        (folder / name).write_bytes(data)

    return spoil


def patch(**changes: Any) -> Any:
    def spoil(folder: pathlib.Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | changes))

    return spoil


SPOILT = {
    "another version": (spoil_version, "another version of gdlx"),
    "half a configuration": (cut("config.json", 0.5), "config.json cannot be read"),
    "a list": (put("config.json", b"[1]"), "config.json cannot be read"),
    "very deep": (put("config.json", b"[" * 100_000), "recursion"),
    "no settings": (patch(settings=[]), "config.json cannot be read"),
    "a game that is no text": (patch(game={"spec": [1]}), "of no known kind"),
    "a game with a zero": (patch(game={"spec": "a\0b/c"}), "of no known kind"),
    "an unknown algorithm": (patch(algorithm="magic"), "there is no algorithm 'magic'"),
    "half metrics": (cut("metrics.csv", 0.9), "metrics.csv cannot be read"),
    "no metrics": (lambda folder: (folder / "metrics.csv").unlink(), "has no metrics.csv"),
    "empty metrics": (put("metrics.csv", b""), "metrics.csv cannot be read"),
    "metrics in no code": (put("metrics.csv", b"\xff\xfe"), "metrics.csv cannot be read"),
    "only a head": (cut("metrics.csv", 0.3), "metrics.csv cannot be read"),
    "no rows": (put("metrics.csv", b"a,b,c,d,e,value_x,gain_x,value_error_x\n"), "has no metrics yet"),
    "half a policy": (cut("policy.npz", 0.5), "policy.npz cannot be read"),
    "a match": (patch(agents=["uct", "uniform"]), "games between agents"),
}


@pytest.mark.parametrize("case", SPOILT)
def test_what_cannot_be_read_is_left_out_and_named(tmp_path: pathlib.Path, case: str) -> None:
    spoil, why = SPOILT[case]
    write_run(tmp_path / "good", falling([0, 1, 10]))
    spoil(write_run(tmp_path / "spoilt", falling([0, 1, 10], 2.0)))
    written = report.write([tmp_path], tmp_path / "report.html")
    assert written.runs == 1
    (left,) = written.left_out
    assert left.folder == tmp_path / "spoilt"
    assert why in left.why
    page = parsed(tmp_path / "report.html")
    assert len(rows_of(page)) == 1
    (section,) = [section for section in page.find("section") if section.attributes.get("id") == "left_out"]
    assert left.why in section.text


def test_numbers_that_cannot_be(tmp_path: pathlib.Path) -> None:
    for number, row in enumerate(["1,0.1,nan,0,,0,0,nan,nan,,", "-1,0,1,0,,0,0,1,1,,", f"{10**400},0,1,0,,0,0,1,1,,"]):
        folder = write_run(tmp_path / f"{number}", falling([0, 1]))
        with open(folder / "metrics.csv", "a") as file:
            file.write(f"{row}\n")
    found = gather.gather([tmp_path])
    assert not found.runs
    assert len(found.left_out) == 3


def test_a_run_is_reported_once(tmp_path: pathlib.Path) -> None:
    folder = write_run(tmp_path / "a", falling([0, 1, 10]))
    assert len(gather.gather([tmp_path, folder, tmp_path / "a" / ".." / "a"]).runs) == 1


def test_nothing_to_report(tmp_path: pathlib.Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(report.NothingToReport, match=r"empty holds no result.*gone is no folder"):
        report.write([tmp_path / "empty", tmp_path / "gone"], tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_a_run_without_policies_is_reported_without_them(tmp_path: pathlib.Path) -> None:
    (write_run(tmp_path / "a", falling([0, 1, 10])) / "policy.npz").unlink()
    page = reported(tmp_path)
    assert len(rows_of(page)) == 1
    assert "No run has written its policies." in page.text


def test_a_game_that_is_gone_or_another_now(tmp_path: pathlib.Path) -> None:
    gone = write_run(tmp_path / "gone", falling([0, 1, 10]))
    patch(game={"spec": "nowhere/gone.gdl"})(gone)
    patch(digest="0")(write_run(tmp_path / "other", falling([0, 1, 10]), "cfr"))
    page = reported(tmp_path)
    remarks = " ".join(remark.text for remark in page.find("p", "remark"))
    assert "The game cannot be loaded" in remarks
    assert "other rules of kuhn_poker than there are now" in remarks
    assert len(charts_of(page)) == 4


@hypothesis.given(st.floats(1e-12, 1e12), st.floats(0, 14))
def test_every_axis_has_ticks_that_say_where_they_are(first: float, decades: float) -> None:
    values = np.array([first, first * 10**decades])
    axis = svg.axis(values, 0, 100)
    assert all(0 <= at <= 100 for at in axis.at(values))
    found = svg.ticks(axis.first, axis.last)
    assert 2 <= len(found) <= 8
    assert found == sorted(set(found))
    for value in found:
        assert -1e-6 <= axis.at(value) <= 100 + 1e-6
        label = svg.tick_label(value)
        if "10" in label and not label.isdecimal():
            digit, _, power = label.rpartition("10")
            plain = power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
            assert float(digit.rstrip("·") or 1) * 10.0 ** int(plain) == pytest.approx(value)
        else:
            assert float(label) == pytest.approx(value)


@hypothesis.given(st.lists(st.integers(1, 10**6), min_size=1, max_size=300, unique=True), st.integers(2, 50))
def test_thinned_numbers_keep_their_ends(numbers: list[int], most: int) -> None:
    given = np.array(sorted(numbers), float)
    found = curves.thinned(given, most)
    assert set(found) <= set(given)
    assert (found[0], found[-1]) == (given[0], given[-1])
    assert len(found) <= most
    assert (np.diff(found) > 0).all()


def luminance(colour: str) -> float:
    """Of WCAG 2."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colours", [style.LIGHT, style.DARK], ids=["light", "dark"])
def test_everything_can_be_read_on_the_page(colours: dict[str, str]) -> None:
    def contrast(name: str) -> float:
        low, high = sorted(luminance(colours[n]) for n in (name, "page"))
        return (high + 0.05) / (low + 0.05)

    assert min(map(contrast, ("text", "soft", "accent"))) >= 4.5
    assert min(contrast(f"colour{n}") for n in range(figures.COLOURS)) >= 3
    assert f"colour{figures.COLOURS}" not in colours


def run(*arguments: str, cwd: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*GDLX, *arguments], capture_output=True, text=True, cwd=cwd, check=False)


def test_the_command(tmp_path: pathlib.Path) -> None:
    assert run("solve", "kuhn_poker", "--iterations", "30", "--quiet", cwd=tmp_path).returncode == 0
    spoil_version(write_run(tmp_path / "results" / "x", falling([0, 1, 10])))
    ran = run("report", "results", "--json", cwd=tmp_path)
    assert ran.returncode == 0
    found = json.loads(ran.stdout)
    assert found == {
        "report": "report.html",
        "runs": 1,
        "games": ["kuhn_poker"],
        "left_out": [{"folder": "results/x", "why": found["left_out"][0]["why"]}],
        "bytes": (tmp_path / "report.html").stat().st_size,
    }
    assert ran.stderr.startswith("remark: left out: results/x has the format of another version")
    ((name, _, error, iterations, *_),) = rows_of(parsed(tmp_path / "report.html"))
    assert (name, iterations) == ("dcfr", "30")
    told = last_row(tmp_path / "results" / "kuhn_poker" / "dcfr")["exploitability"]
    assert float(error) == pytest.approx(told, rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["gone"], 1, "gone is no folder"),
        (["."], 1, "there is no run to report on"),
        ([".", "-o", "nowhere/report.html"], 2, "there is no folder nowhere to write report.html into"),
        ([".", "-o", "report.pdf"], 2, "must end in .html"),
        ([], 2, "RESULT"),
    ],
)
def test_wrong_use_of_the_command(tmp_path: pathlib.Path, arguments: list[str], code: int, says: str) -> None:
    ran = run("report", *arguments, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (code, "")
    assert says in ran.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("dark", "width"), [(False, 1400), (True, 1400), (True, 500)])
def test_a_browser_shows_the_curves(tmp_path: pathlib.Path, dark: bool, width: int) -> None:
    browser.find()
    for n in range(3):
        write_run(tmp_path / f"{n}", falling([0, 1, 4, 20, 100, 1000], 10.0**-n), alpha=float(n))
    report.write([tmp_path], tmp_path / "report.html")
    seen = browser.opened(tmp_path / "report.html", tmp_path, dark=dark, width=width, height=1600)
    assert seen.complaints == []
    colours = style.DARK if dark else style.LIGHT
    assert browser.count(seen.picture, colours["page"]) > seen.picture[..., 0].size / 2
    # Two lines across half a page each, more than a pixel thick; legends and tables have far fewer.
    least = [browser.count(seen.picture, colours[f"colour{n}"]) for n in range(3)]
    assert min(least) > width / 2
    assert browser.count(seen.picture, colours["colour3"]) == 0


def test_a_browser_finds_nothing_to_run_in_a_hostile_report(tmp_path: pathlib.Path) -> None:
    browser.find()
    report.write([write_hostile(tmp_path)], tmp_path / "report.html")
    assert browser.opened(tmp_path / "report.html", tmp_path, dark=False, width=800, height=600).complaints == []
    # What was let through would be refused, and complained of.
    text = (tmp_path / "report.html").read_text()
    (tmp_path / "let_through.html").write_text(text.replace("</h1>", "</h1><script>alert(1)</script>", 1))
    (complaint,) = browser.opened(tmp_path / "let_through.html", tmp_path, dark=False, width=800, height=600).complaints
    assert "Content Security Policy" in complaint
