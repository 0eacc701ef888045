"""Reports: their numbers, curves and policies against the files they are made of, read in another way."""

import csv
import json
import math
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from gdlx.envs import game_spec
from gdlx.experiments.reports import configurations, curves, figures, gather
from gdlx.experiments.reports.drawing import style, svg
from gdlx.solvers import tabular_policies, tasks
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.runs import driver, result_folder
from gdlx.tests.helpers import reports, samples


def test_the_table_of_runs_has_the_numbers_of_the_metrics(tmp_path: pathlib.Path) -> None:
    slow = reports.write_run(tmp_path / "a", reports.make_metrics([0, 1, 10, 1000]), "cfr")
    good = reports.write_run(tmp_path / "b", reports.make_metrics([0, 1, 10, 500], 0.01), alpha=2.0)
    seeds = [
        reports.write_run(
            tmp_path / f"c{n}", reports.make_metrics([0, 1, 100 + n], 20.0 + n), "os-mccfr", seed=n, batch=64
        )
        for n in range(3)
    ]
    first, second, third = reports.rows_of(reports.write_and_parse_report(tmp_path))
    for row, folder, name, settings in ((first, good, "dcfr", "alpha 2"), (second, slow, "cfr", "")):
        reported = reports.last_row(folder)
        assert row[:2] == [name, settings]
        assert float(row[2]) == pytest.approx(
            (reported["improvement_player1"] + reported["improvement_player2"]) / 2, rel=0.01
        )
        assert float(row[3].replace(",", "")) == reported["iterations"]
        assert float(row[4]) == pytest.approx(reported["seconds"], rel=0.01)
        assert [float(text) for text in row[5].split(", ")] == pytest.approx(
            [reported["value_player1"], reported["value_player2"]], abs=1e-4
        )
        assert row[6] == "none"
    errors = [reports.last_row(folder)["exploitability"] for folder in seeds]
    middle, low, high = map(float, re.findall(r"[\d.e-]+", third[2]))
    assert (middle, low, high) == pytest.approx((np.median(errors), min(errors), max(errors)), rel=0.01)
    assert third[:2] == ["os-mccfr", "batch 64"]
    assert third[3] == "101 (100 to 102)"
    assert third[6] == "0, 1, 2"


def test_curves_are_the_logarithms_of_the_metrics(tmp_path: pathlib.Path) -> None:
    folder = reports.write_run(tmp_path / "a", reports.make_metrics([0, 1, 2, 5, 17, 100, 4000]))
    reports.write_run(tmp_path / "b", reports.make_metrics([0, 1, 3, 40], 50.0), "cfr")
    over_iterations, over_seconds = reports.charts_of(reports.write_and_parse_report(tmp_path))
    with open(folder / "metrics.csv") as file:
        rows = [{name: float(text or 0) for name, text in row.items()} for row in csv.DictReader(file)][1:]
    for chart, across in ((over_iterations, "iterations"), (over_seconds, "seconds")):
        x, y = chart.curve("colour0")
        np.testing.assert_allclose(x, [row[across] for row in rows], rtol=2e-3)
        np.testing.assert_allclose(y, [row["exploitability"] for row in rows], rtol=2e-3)
        assert len(chart.curve("colour1")[0]) == 3


def test_a_band_goes_from_the_lowest_seed_to_the_highest(tmp_path: pathlib.Path) -> None:
    times = [0, 1, 4, 20, 300]
    runs = [reports.make_metrics(times, 1.0 + n) for n in range(4)]
    for n, metrics in enumerate(runs):
        reports.write_run(tmp_path / f"{n}", metrics, "os-mccfr", seed=n)
    page = reports.write_and_parse_report(tmp_path)
    chart = reports.charts_of(page)[0]
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
    (gathered,) = configurations.group_by_configuration(gather.gather_runs([tmp_path]).runs)
    return gathered


def test_seeds_measured_at_different_times_are_compared_where_all_are(tmp_path: pathlib.Path) -> None:
    times = ([0, 2, 9, 100, 900], [0, 1, 30, 400], [0, 3, 50, 500])
    runs = [reports.make_metrics(own, 1.0 + n) for n, own in enumerate(times)]
    for n, metrics in enumerate(runs):
        reports.write_run(tmp_path / f"{n}", metrics, "os-mccfr", seed=n)
    actual = curves.build_curve(configuration_of(tmp_path), curves.iterations, 100)
    assert actual is not None
    assert actual.x.tolist() == [3, 9, 30, 50, 100, 400]
    at = [
        [
            math.exp(np.interp(math.log(x), np.log(own[1:]), [math.log(row.error) for row in metrics[1:]]))
            for own, metrics in zip(times, runs, strict=True)
        ]
        for x in actual.x
    ]
    np.testing.assert_allclose(actual.median, np.median(at, axis=1))
    np.testing.assert_allclose(actual.low, np.min(at, axis=1))
    np.testing.assert_allclose(actual.high, np.max(at, axis=1))


def test_seeds_that_were_never_measured_at_the_same_time(tmp_path: pathlib.Path) -> None:
    reports.write_run(tmp_path / "a", reports.make_metrics([0, 1, 2]), "os-mccfr", seed=1)
    reports.write_run(tmp_path / "b", reports.make_metrics([0, 50, 70]), "os-mccfr", seed=2)
    actual = curves.build_curve(configuration_of(tmp_path), curves.iterations, 100)
    assert actual is not None
    assert (actual.x.tolist(), actual.runs, actual.excluded_runs) == ([50, 70], 1, 1)
    (caption,) = reports.write_and_parse_report(tmp_path).find("figcaption")
    assert "1 runs that have no iterations in common" in caption.text


def test_a_run_done_twice_counts_once(tmp_path: pathlib.Path) -> None:
    long = reports.write_run(tmp_path / "a", reports.make_metrics([0, 1, 900]))
    reports.write_run(tmp_path / "b", reports.make_metrics([0, 1, 90], 30.0))
    page = reports.write_and_parse_report(tmp_path)
    ((_, _, error, iterations, *_, seeds),) = reports.rows_of(page)
    assert float(error) == pytest.approx(reports.last_row(long)["exploitability"], rel=0.01)
    assert (iterations, seeds) == ("900", "none; 1 shorter run not counted")
    assert f"{tmp_path / 'b'}" in page.text  # its configuration is there all the same


def test_of_many_configurations_the_best_are_in_colour(tmp_path: pathlib.Path) -> None:
    for n in range(12):
        reports.write_run(tmp_path / f"{n}", reports.make_metrics([0, 1, 10, 100], 2.0 ** (11 - n)), gamma=float(n))
    page = reports.write_and_parse_report(tmp_path)
    (legend,) = page.find("ul", "legend")
    named = [item.text.strip() for item in legend.find("li")]
    ranked = sorted(range(12), key=lambda n: reports.last_row(tmp_path / f"{n}")["exploitability"])
    assert named == [*("dcfr" if n == 2 else f"dcfr (gamma {n})" for n in ranked[:8]), "all others"]
    for chart in reports.charts_of(page):
        assert len(list(chart.chart.find("g", "other"))) == 4
        for rank, number in enumerate(ranked[:8]):
            _, y = chart.curve(f"colour{rank}")
            assert y[-1] == pytest.approx(reports.last_row(tmp_path / f"{number}")["exploitability"], rel=3e-3)
    (caption,) = page.find("figcaption")
    assert "best 8 of 12 configurations are in colour" in caption.text


def test_every_algorithm_has_a_colour_and_so_a_band(tmp_path: pathlib.Path) -> None:
    for n in range(10):
        reports.write_run(tmp_path / f"{n}", reports.make_metrics([0, 1, 10, 100], 1 + n), gamma=float(n))
    for seed in range(2):  # the worst
        metrics = reports.make_metrics([0, 1, 10, 100], 1_000.0 * (1 + seed))
        reports.write_run(tmp_path / f"os-{seed}", metrics, "os-mccfr", seed=seed)
    page = reports.write_and_parse_report(tmp_path)
    (legend,) = page.find("ul", "legend")
    named = [item.text.strip() for item in legend.find("li")]
    assert (len(named), named[-2:]) == (9, ["os-mccfr", "all others"])
    for chart in reports.charts_of(page):
        assert list(chart.line("colour7").find("polygon", "band"))


def test_configurations_differ_in_what_has_an_effect(tmp_path: pathlib.Path) -> None:
    metrics = reports.make_metrics([0, 1, 10])
    reports.write_run(tmp_path / "a", metrics, "cfr+", horizon=10.0)
    reports.write_run(tmp_path / "b", metrics, "cfr+", horizon=20.0)  # has no schedule
    reports.write_run(tmp_path / "c", metrics, "hs-dcfr", horizon=10.0)
    reports.write_run(tmp_path / "d", metrics, "hs-dcfr", horizon=20.0)
    reports.write_run(tmp_path / "e", metrics, "es-mccfr", exploration=0.1, width=4.0)
    names = {one.name for one in configurations.group_by_configuration(gather.gather_runs([tmp_path]).runs)}
    assert names == {
        "cfr+",
        "hs-dcfr (horizon 10)",
        "hs-dcfr (horizon 20)",
        "es-mccfr (sampling exploration 0.1, width 4)",
    }


def test_runs_against_a_model_are_of_another_game(tmp_path: pathlib.Path) -> None:
    reports.write_run(tmp_path / "a", reports.make_metrics([0, 1, 10]))
    bound = {"player": "player2", "p": 0.25, "model": "abc"}
    reports.patch(modelled=bound)(reports.write_run(tmp_path / "b", reports.make_metrics([0, 1, 10], 0.1)))
    page = reports.write_and_parse_report(tmp_path)
    assert [head.text for head in page.find("h2")] == ["kuhn_poker", "kuhn_poker, opponents modelled"]
    tables = [[cell.text for cell in table.find("td")] for table in page.find("table", "runs")]
    assert [table[1] for table in tables] == ["", "modelled player player2, p 0.25, model abc"]


def test_an_exact_solution_is_drawn_over_time_only(tmp_path: pathlib.Path) -> None:
    reports.write_run(tmp_path / "a", [driver.Metrics(0, 0.02, (-0.05, 0.05), (0.0, 0.0))], "lp")
    reports.write_run(tmp_path / "b", reports.make_metrics([0, 1, 10, 100]))
    page = reports.write_and_parse_report(tmp_path)
    over_iterations, over_seconds = reports.charts_of(page)
    assert not list(over_iterations.chart.find("g", "colour0"))
    x, y = over_seconds.curve("colour0")
    assert x == pytest.approx([0.02], rel=3e-3)
    assert y == pytest.approx(
        [reports.last_row(tmp_path / "b")["exploitability"]], rel=3e-3
    )  # the lowest there is but for 0
    (caption,) = page.find("figcaption")
    assert "only over time: lp" in caption.text
    assert "is drawn there" in caption.text


@pytest.mark.parametrize("gain", [(), (0.0, 0.0)])
def test_without_anything_to_draw(tmp_path: pathlib.Path, gain: tuple[float, ...]) -> None:
    reports.write_run(tmp_path / "a", [driver.Metrics(n, 0.1 * n, (0.0, 0.0), gain) for n in range(3)])
    page = reports.write_and_parse_report(tmp_path)
    assert not reports.charts_of(page)
    ((_, _, error, *_),) = reports.rows_of(page)
    assert error == ("0" if gain else "not measured")


def test_three_players(tmp_path: pathlib.Path) -> None:
    game = "smallest:numbers=3,steps=1"
    metrics = [driver.Metrics(n, 0.1 * n, (1.0, 2.0, 3.0), (0.3 / (n + 1), 0.7 / (n + 1), 0.1)) for n in (0, 1, 5)]
    reports.write_run(tmp_path / "a", metrics, game=game)
    page = reports.write_and_parse_report(tmp_path)
    ((_, _, error, _, _, values, _),) = reports.rows_of(page)
    assert float(error) == pytest.approx(0.7 / 6, rel=0.01)
    assert values == "1.0000, 2.0000, 3.0000"
    assert "largest improvement of a player over iterations" in page.text


def random_policies(game: str, seed: int) -> tabular_policies.Policies:
    rng = np.random.default_rng(seed)
    return tuple(
        tabular_policies.normalise(player, rng.uniform(0.01, 1, player.sequences))
        for player in samples.load_tree(game).players
    )


def shown_policies(page: reports.Element) -> list[dict[str, dict[str, float]]]:
    """Histories, moves and probabilities of every table of policies."""
    collected = []
    for table in page.find("table", "policy"):
        rows = [list(row.find("td")) for row in table.find("tr")][1:]
        collected.append({history.text: options_of(options) for history, options in rows})
    return collected


def options_of(cell: reports.Element) -> dict[str, float]:
    collected = {}
    for option in cell.find("div", "option"):
        name, meter, _, reported = option.find("span")
        (bar,) = meter.find("span")
        width = float(bar.attributes["style"].removeprefix("width:").removesuffix("%"))
        assert width == pytest.approx(float(reported.text.removesuffix("%")), abs=0.06)
        collected[name.text] = width / 100
    return collected


def expected_policies(game: str, policies: tabular_policies.Policies, most: int) -> list[dict[str, dict[str, float]]]:
    collected = []
    for player, policy in zip(samples.load_tree(game).players, policies, strict=True):
        table = {}
        for number in range(min(most, player.sets)):
            chosen = policy[player.first[number] : player.first[number + 1]]
            table[player.labels[number]] = dict(zip(player.options(number), chosen.tolist(), strict=True))
        collected.append(table)
    return collected


def assert_same_policies(actual: Sequence[Any], expected: Sequence[Any]) -> None:
    assert [list(table) for table in actual] == [list(table) for table in expected]
    for one, other in zip(actual, expected, strict=True):
        for history, options in other.items():
            assert one[history] == pytest.approx(options, abs=6e-4)


def test_policies_of_the_best_run_of_each_algorithm(tmp_path: pathlib.Path) -> None:
    policy = [random_policies("kuhn_poker", n) for n in range(3)]
    reports.write_run(tmp_path / "a", reports.make_metrics([0, 100]), policies=policy[0])
    reports.write_run(tmp_path / "b", reports.make_metrics([0, 100], 0.1), policies=policy[1], gamma=3.0)
    reports.write_run(tmp_path / "c", reports.make_metrics([0, 100], 10.0), "cfr", policies=policy[2])
    actual = shown_policies(reports.write_and_parse_report(tmp_path))
    assert_same_policies(actual[:2], expected_policies("kuhn_poker", policy[1], 40))
    assert_same_policies(actual[2:], expected_policies("kuhn_poker", policy[2], 40))


def test_only_the_first_information_sets_are_shown(tmp_path: pathlib.Path) -> None:
    policy = random_policies("goofspiel:cards=4", 1)
    reports.write_run(tmp_path / "a", reports.make_metrics([0, 100]), game="goofspiel:cards=4", policies=policy)
    page = reports.write_and_parse_report(tmp_path)
    assert_same_policies(shown_policies(page), expected_policies("goofspiel:cards=4", policy, 40))
    assert page.text.count("The first 40 of 81 information sets.") == 2


def test_policies_in_a_hash_table(tmp_path: pathlib.Path) -> None:
    """Compared with lookups in the table itself; some information sets are not in it."""
    folder = reports.write_run(tmp_path / "a", reports.make_metrics([0, 100]), "os-mccfr", table=6)
    task = tasks.make_table_task(game_spec.GameSpec("kuhn_poker"))
    config = json.loads((folder / "config.json").read_text()) | {"digest": task.digest}
    (folder / "config.json").write_text(json.dumps(config))
    keys, probability = table_policy.to_arrays(
        table_policy.from_tabular(random_policies("kuhn_poker", 5), task.env, task.tree)
    )
    kept = table_policy.from_arrays(keys[:, 2:], probability[2:])
    result_folder.write_table_policy(folder, kept)
    policy, known = table_policy.to_tabular(kept, task.env, task.tree)
    assert known == 10
    page = reports.write_and_parse_report(tmp_path)
    actual, expected = shown_policies(page), expected_policies("kuhn_poker", policy, 40)
    assert sum(map(len, actual)) == 10
    assert_same_policies(
        actual, [{name: other[name] for name in one} for one, other in zip(actual, expected, strict=True)]
    )
    left = [int(n) for n in re.findall(r"Left out: (\d+) information sets", page.text)]
    assert sum(left) == 2


def test_facts_of_a_game(tmp_path: pathlib.Path) -> None:
    reports.write_run(tmp_path / "a", reports.make_metrics([0, 100]))
    page = reports.write_and_parse_report(tmp_path)
    reported = {name.text: fact.text for name, fact in zip(page.find("dt"), page.find("dd"), strict=True)}
    # Kuhn poker: three cards for two players, 12 information sets, an ante of 1 and a bet of 1.
    assert reported["payoffs"] == "from -2 to 2, zero-sum"
    assert reported["decisions of player1"] == reported["decisions of player2"] == "6 information sets with a choice"
    assert re.fullmatch(r"\d+ gates, \d+ registers", reported["propnet"])
    assert "role random" in reported


@hypothesis.given(st.floats(1e-12, 1e12), st.floats(0, 14))
def test_every_axis_has_ticks_that_say_where_they_are(first: float, decades: float) -> None:
    values = np.array([first, first * 10**decades])
    axis = svg.axis(values, 0, 100)
    assert all(0 <= at <= 100 for at in axis.at(values))
    actual = svg.ticks(axis.first, axis.last)
    assert 2 <= len(actual) <= 8
    assert actual == sorted(set(actual))
    for value in actual:
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
    actual = curves.thin(given, most)
    assert set(actual) <= set(given)
    assert (actual[0], actual[-1]) == (given[0], given[-1])
    assert len(actual) <= most
    assert (np.diff(actual) > 0).all()


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
