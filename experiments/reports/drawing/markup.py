"""HTML and SVG built from elements. All other text is escaped: names of games, moves and folders are not trusted."""

import html
from collections.abc import Iterable, Sequence


class Markup(str):
    """Text that is already HTML."""


def escape(given: str) -> Markup:
    """Escapes text, unless it is markup.

    >>> escape("<bet>")
    '&lt;bet&gt;'
    """
    return given if isinstance(given, Markup) else Markup(html.escape(given))


def join(parts: Iterable[str]) -> Markup:
    return Markup("".join(map(escape, parts)))


def element(name: str, /, *children: str, **attributes: str | float | bool) -> Markup:
    """An element. `class_` is the attribute class, `stroke_width` is stroke-width; True and False set and omit one.

    >>> element("p", "a < b", element("br"), class_="small")
    '<p class="small">a &lt; b<br></p>'
    """
    attribute_text = "".join(_attribute(key, value) for key, value in attributes.items())
    end = "" if name in _VOID else f"</{name}>"
    return Markup(f"<{name}{attribute_text}>{join(children)}{end}")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], columns: Sequence[str] = (), *, class_: str) -> Markup:
    """A table with a row of headings; `columns` are the classes of the cells of each column, if they have any.

    >>> table(["game"], [["rps"]], class_="runs")
    '<table class="runs"><thead><tr><th scope="col">game</th></tr></thead><tbody><tr><td>rps</td></tr></tbody></table>'
    """
    styles: list[dict[str, str]] = [{"class_": name} for name in columns] or [{} for _ in header]
    head = (element("th", name, scope="col", **style) for name, style in zip(header, styles, strict=True))
    body = (
        element("tr", *(element("td", cell, **style) for cell, style in zip(row, styles, strict=True))) for row in rows
    )
    return element("table", element("thead", element("tr", *head)), element("tbody", *body), class_=class_)


def scrolling(wide: Markup, label: str) -> Markup:
    """A part of the page that scrolls by itself where the page is too narrow for it."""
    return element("div", wide, class_="wide", tabindex=0, role="region", aria_label=label)


_VOID = {"br", "meta"}


def _attribute(key: str, value: str | float | bool) -> str:
    name = key.rstrip("_").replace("_", "-")
    if isinstance(value, bool):
        return f" {name}" if value else ""
    return f' {name}="{html.escape(str(value))}"'
