"""The figure of all runs of a game: error over iterations and over seconds, with legend and caption."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gdlx.experiments.reports import configurations, curves
from gdlx.experiments.reports.drawing import markup, svg

COLOURS = 8  # lines that can be distinguished
_OTHERS = 200  # thin lines behind those; more would only clutter the figure
_POINTS, _FEWER_POINTS = 120, 40  # per line in colour, and per thin line

Configurations = Sequence[configurations.Configuration]


class _PlottedConfiguration(NamedTuple):
    configuration: configurations.Configuration
    style: str
    most: int  # points


def styles(configurations: Configurations) -> list[str]:
    """The style of each configuration, the best first: a colour, that of all others, or empty if it is not drawn.

    Colours are for the best of each algorithm, and then for the best of the others.
    """
    measured = [n for n, configuration in enumerate(configurations) if configuration.error is not None]
    best: dict[str, int] = {}
    for number in measured:
        best.setdefault(configurations[number].algorithm, number)
    first = list(best.values())[:COLOURS]
    others = [number for number in measured if number not in first]
    coloured = sorted([*first, *others[: COLOURS - len(first)]])
    classes = ["" if configuration.error is None else "other" for configuration in configurations]
    for rank, number in enumerate(coloured):
        classes[number] = f"colour{rank}"
    return classes


def convergence(configurations: Configurations, players: int) -> markup.Markup:
    """Draws the convergence of configurations, which are sorted, the best first."""
    named = [
        _PlottedConfiguration(one, style, _POINTS)
        for one, style in zip(configurations, styles(configurations), strict=True)
        if style
    ]
    coloured = [one for one in named if one.style != "other"]
    others = _spread([one for one in named if one.style == "other"])
    order = [*others, *reversed(coloured)]  # the best on top
    error = "exploitability" if players == 2 else "largest improvement of a player"
    over = {"iterations": curves.iterations, "seconds of solving": curves.seconds}
    made = {
        label: [(one, curves.build_curve(one.configuration, across, one.most)) for one in order]
        for label, across in over.items()
    }
    shown = [curve for pairs in made.values() for _, curve in pairs if curve is not None]
    if not shown:
        advice = "gdlx evaluate RESULT --bound estimates a lower bound on it."
        return markup.element("p", f"The {error} was not measured, so there are no curves. {advice}", class_="remark")
    if not any((curve.high > 0).any() for curve in shown):
        return markup.element("p", f"The {error} was 0 whenever it was measured: nothing to draw.", class_="remark")
    floor = curves.lowest_drawn_error(shown)
    charts = []
    for label, pairs in made.items():
        lines = [_line(one, curve, floor, error, label) for one, curve in pairs if curve is not None]
        if lines:
            about = (
                f"One line for each of {len(lines)} configurations; the numbers at their ends are in the table of runs."
            )
            title = f"{error} over {label}"
            charts.append(svg.chart(lines, x_label=label, y_label=f"{error} (payoff units)", title=title, about=about))
    caption = _caption(configurations, coloured, named, others, made, floor, error)
    return markup.element(
        "figure",
        _legend(coloured, len(others)),
        markup.element("div", *charts, class_="charts"),
        markup.element("figcaption", caption),
    )


def _spread(others: Sequence[_PlottedConfiguration]) -> list[_PlottedConfiguration]:
    """All of them, or a sample over all ranks."""
    chosen = np.linspace(0, len(others) - 1, min(_OTHERS, len(others))).round().astype(int)
    return [others[n]._replace(most=_FEWER_POINTS) for n in chosen]


def _line(one: _PlottedConfiguration, curve: curves.Curve, floor: float, error: str, label: str) -> svg.Line:
    median = f", median of {curve.runs} runs" if curve.runs > 1 else ""
    name = f"{one.configuration.name}: {error} {curve.median[-1]:.3g} at {curve.x[-1]:.3g} {label}{median}"
    median_, low, high = (np.maximum(part, floor) for part in (curve.median, curve.low, curve.high))
    return svg.Line(name, one.style, curve.x, median_, low, high)


def _legend(coloured: Sequence[_PlottedConfiguration], others: int) -> markup.Markup:
    items = [markup.element("li", svg.swatch(one.style), " ", one.configuration.name) for one in coloured]
    if others:
        items.append(markup.element("li", svg.swatch("other"), " ", "all others"))
    return markup.element("ul", *items, class_="legend")


def _caption(
    configurations: Configurations,
    coloured: Sequence[_PlottedConfiguration],
    named: Sequence[_PlottedConfiguration],
    others: Sequence[_PlottedConfiguration],
    made: dict[str, list[tuple[_PlottedConfiguration, curves.Curve | None]]],
    floor: float,
    error: str,
) -> str:
    """Explains the figure."""
    all_curves = [curve for pairs in made.values() for _, curve in pairs if curve is not None]
    says = [f"{error[0].upper()}{error[1:]} of the average policies; both axes are logarithmic."]
    if any(curve.runs > 1 for curve in all_curves):
        says.append(
            "Runs that differ only in their seed are one line, their median, in a band from the lowest to the highest "
            "of them, as far as all of them went."
        )
    if others:
        drawn = "" if len(others) + len(coloured) == len(named) else f", of which {len(others)} are drawn"
        says.append(
            f"The best {len(coloured)} of {len(named)} configurations are in colour and named, the best of each "
            f"algorithm among them; the others are thin and grey{drawn}."
        )
    if apart := sum(curve.excluded_runs for _, curve in next(iter(made.values())) if curve is not None):
        says.append(f"{apart} runs that have no iterations in common with others of their line are not drawn.")
    if exact := [one.configuration.name for one, curve in made["iterations"] if curve is None]:
        says.append(f"Without iterations, so only over time: {', '.join(exact)}.")
    if any((curve.low < floor).any() for curve in all_curves):
        says.append(f"What is below {floor:.2g} is drawn there.")
    if unknown := [one.name for one in configurations if one.error is None]:
        says.append(f"Not measured, so not drawn: {', '.join(unknown[:COLOURS])}{' ..' * (len(unknown) > COLOURS)}.")
    return " ".join(says)
