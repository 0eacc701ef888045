"""Named text and positions in it, so that messages can point at a mistake."""

import bisect
import dataclasses
import functools
import pathlib
import re
from typing import NamedTuple

from gdlx.propnet.common import bounded_files
from gdlx.propnet.common.text import printable

MAX_BYTES = 4 * 2**20
_LINE_END = re.compile(r"\r\n|\r|\n")
_EXCERPT_WIDTH = 100


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """A text and its name in messages.

    `undecodable` has the offsets of bytes that are not UTF-8. If `oversized`, the text was too large and is left out.
    """

    name: str
    text: str
    undecodable: tuple[int, ...] = ()
    oversized: bool = False

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> "Source":
        """Decodes leniently: a stray byte in a comment must not make a sheet unreadable."""
        if len(data) > MAX_BYTES:
            return cls(name, "", oversized=True)
        try:
            return cls(name, data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            text = data.decode("utf-8-sig", errors="replace")
            return cls(name, text, tuple(m.start() for m in re.finditer("\ufffd", text)))

    @classmethod
    def from_path(cls, path: pathlib.Path | str) -> "Source":
        with bounded_files.open_regular(path) as file:
            data = file.read(MAX_BYTES + 1)
        return cls.from_bytes(str(path), data)

    @functools.cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(m.end() for m in _LINE_END.finditer(self.text))]

    def position(self, offset: int) -> tuple[int, int]:
        """Returns line and column of an offset, both counted from 1."""
        line = bisect.bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line_bounds(self, number: int) -> tuple[int, int]:
        """Returns the offsets of the start and the end of a line, without its line break."""
        start = self._line_starts[number - 1]
        if number == len(self._line_starts):
            return start, len(self.text)
        end = self._line_starts[number] - 1
        return start, end - self.text.startswith("\r\n", end - 1)


class Span(NamedTuple):
    """The characters start..end of a source."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.position(self.start)[1]

    def excerpt(self) -> str:
        """Returns the line of the span with carets below it; a very long line is cut to a window around the span."""
        line, _ = self.source.position(self.start)
        left, end = self.source.line_bounds(line)
        if end - left > _EXCERPT_WIDTH:
            left = max(left, self.start - _EXCERPT_WIDTH // 2)
        # Only the window is copied: a line may be megabytes long and have thousands of messages.
        window = printable.printable(self.source.text[left : min(end, left + _EXCERPT_WIDTH)])
        available = len(window) - (self.start - left)
        carets = "^" * max(1, min(self.end - self.start, available))
        label = f"  {line} | "
        return f"{label}{window}\n{' ' * (len(label) + self.start - left)}{carets}"
