"""Charts on two logarithmic axes as inline SVG, in the colours of the page around them."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.experiments.reports.drawing import markup

Floats = npt.NDArray[np.float64]

WIDTH, HEIGHT = 560, 370
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 16, 14, 58  # margins, wide enough for the larger font of small screens
_MAX_TICKS = 6
_SPARE = 1.04  # keeps lines away from the frame
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Line(NamedTuple):
    """Axes: N points. All numbers are above 0."""

    name: str
    style: str  # classes of the style sheet that give it its colour and dashes
    x: Floats  # [N] rising
    y: Floats  # [N]
    low: Floats  # [N] the band around it; equal to y if there is none
    high: Floats  # [N]

    @property
    def has_band(self) -> bool:
        return bool((self.low < self.high).any())


class Axis(NamedTuple):
    """A logarithmic axis: `first` is drawn at `start`, `last` at `end`."""

    first: float
    last: float
    start: float
    end: float

    def at(self, value: npt.ArrayLike) -> Floats:
        """The coordinates of values."""
        part = np.log(np.asarray(value, np.float64) / self.first) / math.log(self.last / self.first)
        return self.start + (self.end - self.start) * part


def axis(values: Floats, start: float, end: float) -> Axis:
    """An axis for all values with a margin, over at least one power of ten, so that it has ticks."""
    first, last = math.log(values.min()), math.log(values.max())
    middle, half = (first + last) / 2, max((last - first) / 2 * _SPARE, math.log(10) / 2)
    return Axis(math.exp(middle - half), math.exp(middle + half), start, end)


def ticks(first: float, last: float) -> list[float]:
    """Powers of ten between the two, every second or third if there are many; if few, also 2 and 5 times those.

    >>> ticks(0.5, 300)
    [1.0, 10.0, 100.0]
    >>> ticks(2, 30)
    [2.0, 5.0, 10.0, 20.0]
    """
    decades = range(math.floor(math.log10(first)), math.ceil(math.log10(last)) + 1)
    wide = last / first >= 1e2
    steps = (1.0,) if wide else (1.0, 2.0, 5.0)
    inside = [d for d in decades if first <= 10.0**d <= last] if wide else list(decades)
    apart = math.ceil(len(inside) / _MAX_TICKS) if wide else 1
    values = [step * 10.0**d for d in inside if d % apart == 0 for step in steps]
    return [value for value in values if first <= value * (1 + 1e-9) and value <= last * (1 + 1e-9)]


def tick_label(value: float) -> str:
    """
    >>> tick_label(0.02), tick_label(1e-5), tick_label(20000.0)
    ('0.02', '10⁻⁵', '2·10⁴')
    """
    exponent = math.floor(math.log10(value) + 1e-9)
    if -2 <= exponent <= 3:
        return f"{value:g}"
    digit = round(value / 10.0**exponent)
    power = f"10{str(exponent).translate(_SUPERSCRIPTS)}"
    return power if digit == 1 else f"{digit}·{power}"


def chart(lines: Sequence[Line], *, x_label: str, y_label: str, title: str, about: str) -> markup.Markup:
    """Draws lines in their order, the last on top; `title` and `about` are for screen readers."""
    x = axis(np.concatenate([line.x for line in lines]), _LEFT, WIDTH - _RIGHT)
    spread = [part for line in lines for part in (line.y, line.low, line.high)]
    y = axis(np.concatenate(spread), HEIGHT - _BOTTOM, _TOP)
    return markup.element(
        "svg",
        markup.element("title", title),
        markup.element("desc", about),
        *_grid(x, y),
        markup.element("text", x_label, class_="axis", x=(x.start + x.end) / 2, y=HEIGHT - 8, text_anchor="middle"),
        markup.element(
            "text",
            y_label,
            class_="axis",
            transform=f"translate(16 {(y.start + y.end) / 2:g}) rotate(-90)",
            text_anchor="middle",
        ),
        *(_drawn(line, x, y) for line in lines),
        class_="chart",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
    )


def _grid(x: Axis, y: Axis) -> list[markup.Markup]:
    elements = [
        markup.element("rect", class_="frame", x=x.start, y=y.end, width=x.end - x.start, height=y.start - y.end)
    ]
    for value in ticks(x.first, x.last):
        at = f"{x.at(value):.2f}"
        elements.append(markup.element("line", class_="grid", x1=at, x2=at, y1=y.start, y2=y.end))
        elements.append(_tick_text("x", value, at, f"{y.start + 20:g}", "middle"))
    for value in ticks(y.first, y.last):
        at = f"{y.at(value):.2f}"
        elements.append(markup.element("line", class_="grid", x1=x.start, x2=x.end, y1=at, y2=at))
        elements.append(_tick_text("y", value, f"{x.start - 8:g}", at, "end"))
    return elements


def _tick_text(which: str, value: float, x: str, y: str, anchor: str) -> markup.Markup:
    label = tick_label(value)
    return markup.element(
        "text", label, class_=f"tick {which}", x=x, y=y, dy="0.35em", text_anchor=anchor, data_value=repr(value)
    )


def _drawn(line: Line, x: Axis, y: Axis) -> markup.Markup:
    across = x.at(line.x)
    parts = [markup.element("title", line.name)]
    if line.has_band:
        around = _points(np.r_[across, across[::-1]], np.r_[y.at(line.low), y.at(line.high)[::-1]])
        parts.append(markup.element("polygon", class_="band", points=around))
    parts.append(markup.element("polyline", class_="curve", points=_points(across, y.at(line.y))))
    end = line.x[-1], line.y[-1]
    parts.append(markup.element("circle", class_="end", cx=f"{x.at(end[0]):.2f}", cy=f"{y.at(end[1]):.2f}", r="3.5"))
    return markup.element("g", *parts, class_=f"line {line.style}")


def _points(x: Floats, y: Floats) -> str:
    return " ".join(f"{a:.2f},{b:.2f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))


def swatch(style: str) -> markup.Markup:
    """A short line for the legend."""
    drawn = markup.element("line", class_="curve", x1=1, x2=35, y1=7, y2=7)
    return markup.element(
        "svg",
        markup.element("g", drawn, class_=f"line {style}"),
        class_="swatch",
        viewBox="0 0 36 14",
        width=36,
        height=14,
        aria_hidden="true",
    )
