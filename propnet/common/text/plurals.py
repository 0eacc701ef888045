"""The one way to write a count with its noun."""


def count(number: int, noun: str) -> str:
    """Formats a count with its noun.

    >>> count(1, "rule"), count(2000, "gate"), count(0, "match")
    ('1 rule', '2,000 gates', '0 matches')
    """
    ending = "" if number == 1 else "es" if noun.endswith(("ch", "sh", "s", "x")) else "s"
    return f"{number:,} {noun}{ending}"
