"""What tests of reports share: result folders made up, and pages read without a browser."""

import csv
import html.parser
import json
import math
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gdlx.envs import game_spec
from gdlx.experiments.reports import report
from gdlx.solvers import algorithms, tabular_policies, tasks
from gdlx.solvers.runs import driver, result_folder
from gdlx.tests.helpers import samples

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


def parse_page(path: pathlib.Path) -> Element:
    parser = Parser(path.read_text())
    assert len(parser.open) == 1  # every element is closed
    return parser.open[0]


def make_metrics(iterations: Sequence[int], scale: float = 1.0, speed: float = 0.01) -> list[driver.Metrics]:
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
    policies: tabular_policies.Policies | None = None,
    **changes: Any,
) -> pathlib.Path:
    """Writes a result folder as gdlx does."""
    tree = samples.load_tree(game)
    chosen = algorithms.configure(algorithms.find(algorithm), None, changes)
    folder.mkdir(parents=True)
    result_folder.write_config(
        folder, result_folder.Config(game_spec.GameSpec(game), tasks.tree_digest(tree), chosen, x64=False)
    )
    result_folder.write_metrics(folder, [player.name for player in tree.players], metrics)
    result_folder.write_policy(folder, policies or tuple(tabular_policies.uniform(player) for player in tree.players))
    return folder


def write_and_parse_report(folder: pathlib.Path) -> Element:
    report.write([folder], folder / "report.html")
    return parse_page(folder / "report.html")


def last_row(folder: pathlib.Path) -> dict[str, float]:
    """The last row of the metrics, read without gdlx."""
    with open(folder / "metrics.csv") as file:
        return {name: float(text) for name, text in list(csv.DictReader(file))[-1].items() if text}


def rows_of(page: Element) -> list[list[str]]:
    (table,) = page.find("table", "runs")
    return [[cell.text.strip() for cell in row.find("td")] for row in table.find("tr") if list(row.find("td"))]


class Chart:
    """Reads values off a chart by its ticks."""

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
        (actual,) = self.chart.find("g", style_name)
        return actual

    def curve(self, style_name: str) -> tuple[Floats, Floats]:
        (drawn,) = self.line(style_name).find("polyline")
        return self.points(drawn)


def charts_of(page: Element) -> list[Chart]:
    return [Chart(chart) for chart in page.find("svg", "chart")]


def patch(**changes: Any) -> Callable[[pathlib.Path], None]:
    def spoil(folder: pathlib.Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | changes))

    return spoil
