"""HTML and SVG made of elements. Whatever is not made here is text, and is escaped: names of games, moves and folders
may come from anywhere.
"""

import html
from collections.abc import Iterable


class Markup(str):
    """Text that is HTML already."""


def escape(given: str) -> Markup:
    """
    >>> escape("<bet>")
    '&lt;bet&gt;'
    """
    return given if isinstance(given, Markup) else Markup(html.escape(given))


def join(parts: Iterable[str]) -> Markup:
    return Markup("".join(map(escape, parts)))


def element(name: str, /, *children: str, **attributes: str | float | bool) -> Markup:
    """`class_` stands for class and `stroke_width` for stroke-width; an attribute may be True, or False for none.

    >>> element("p", "a < b", element("br"), class_="small")
    '<p class="small">a &lt; b<br></p>'
    """
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    end = "" if name in _VOID else f"</{name}>"
    return Markup(f"<{name}{given}>{join(children)}{end}")


_VOID = {"br", "meta"}


def _attribute(key: str, value: str | float | bool) -> str:
    name = key.rstrip("_").replace("_", "-")
    if isinstance(value, bool):
        return f" {name}" if value else ""
    return f' {name}="{html.escape(str(value))}"'
