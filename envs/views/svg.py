"""Lines of text as a picture, for libraries that save the states of games as SVG."""

import html
from collections.abc import Sequence

_WIDTH, _HEIGHT, _MARGIN = 8.4, 18.0, 12.0  # of a character, of a line, around a text


def draw_texts(texts: Sequence[Sequence[str]], dark: bool = False, scale: float = 1.0) -> str:
    """Texts of several lines, one below the other, as an SVG picture.

    >>> picture = draw_texts([["a < b", "c"]])
    >>> picture.count("<text"), "a &lt; b" in picture
    (2, True)
    """
    lines: list[str] = []
    for text in texts:
        lines += ["", *text] if lines else text
    width = (2 * _MARGIN + _WIDTH * max(map(len, lines), default=0)) * scale
    height = (2 * _MARGIN + _HEIGHT * len(lines)) * scale
    paper, ink = ("#1e1e1e", "#e8e8e8") if dark else ("#ffffff", "#1e1e1e")
    drawn = [
        f'<text x="{_MARGIN}" y="{_MARGIN + _HEIGHT * (number + 0.75)}" xml:space="preserve">{html.escape(line)}</text>'
        for number, line in enumerate(lines)
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}">',
            f'<rect width="100%" height="100%" fill="{paper}"/>',
            f'<g transform="scale({scale:g})" font-family="monospace" font-size="14" fill="{ink}">',
            *drawn,
            "</g></svg>",
        ]
    )
