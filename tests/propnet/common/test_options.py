"""Option values: formatting and parsing gives the same value, and invalid text is refused."""

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as some

from gdlx.propnet.common import options

_NUMBERS = some.floats(allow_nan=False, allow_infinity=False)


@given(some.integers(), _NUMBERS, some.booleans(), some.lists(some.integers(), min_size=1))
def test_values_come_back(whole: int, number: float, is_so: bool, many: list[int]) -> None:
    assert options.parse_value(str(whole), int | None) == whole
    assert options.parse_value(repr(number), float) == number
    assert options.parse_value(str(is_so).lower(), bool) is is_so
    assert options.parse_value(", ".join(map(str, many)), tuple[int, ...]) == tuple(many)
    assert options.parse_value(f"{number!r},{whole}", tuple[float, int]) == (number, whole)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("1.5", int),
        ("inf", float),
        ("nan", float | None),
        ("yes", bool),
        ("slow", Literal["fast", "exact"]),
        ("", tuple[int, ...]),
        ("1,", tuple[int, ...]),
        ("1", tuple[float, float]),
        ("1,2,3", tuple[float, float]),
        ("1,inf", tuple[float, float]),
    ],
)
def test_other_texts_are_refused(text: str, hint: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (what python says)
        options.parse_value(text, hint)


def test_what_is_taken_in_words() -> None:
    assert options.describe_type(Literal["fast", "exact"]) == "fast or exact"
    assert options.describe_type(tuple[float, float]) == "2 numbers with commas between"
    assert options.describe_type(float | None) == "a number"
