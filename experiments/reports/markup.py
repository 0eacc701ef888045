"""HTML and SVG built from elements. All other text is escaped: names of games, moves and folders are not trusted."""

import html
from collections.abc import Iterable


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


_VOID = {"br", "meta"}


def _attribute(key: str, value: str | float | bool) -> str:
    name = key.rstrip("_").replace("_", "-")
    if isinstance(value, bool):
        return f" {name}" if value else ""
    return f' {name}="{html.escape(str(value))}"'
