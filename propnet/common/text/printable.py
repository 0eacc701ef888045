"""The one sanitiser of text for people: what comes from files may move the cursor, hide text or reverse it."""


def printable(text: str) -> str:
    r"""Replaces each character that a terminal does not print by one character, so that columns stay aligned.

    Control characters, bidirectional overrides, characters of no width and lone surrogates become U+FFFD, and other
    blanks become a space.

    >>> printable("a\x1b[2Jb\u202ec\td")
    'a�[2Jb�c d'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)


def printable_lines(text: str) -> str:
    """Like `printable`, and keeps line ends."""
    return "\n".join(map(printable, text.split("\n")))
