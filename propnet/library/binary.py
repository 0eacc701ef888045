"""Rules for numbers whose digits are binary: counters, sums and comparisons.

A number is the sum of the places that hold: after 5 rounds `(rounds 1)` and `(rounds 4)` are true. The places are
powers of two and, where numbers may be negative, last a negative one: -3 is the sum of -4 and 1 (two's complement).
Fluents and rules are one for every place instead of one for every value.

Numbers are given to the functions below as a literal with the variable `?i`, which holds for the places of the number:
`(true (rounds ?i))`, or `(points ?i)` of any relation.
"""

import itertools
from collections.abc import Iterable

from gdlx.propnet.library import kif


def places(lowest: int, highest: int) -> tuple[int, ...]:
    """Returns the places of which every number from lowest to highest is a sum: at least two.

    >>> places(0, 9)
    (1, 2, 4, 8)
    >>> places(-4, 3)
    (1, 2, -4)
    """
    width = max(highest, -1 - lowest, 1 if lowest < 0 else 2).bit_length()
    positive = tuple(1 << n for n in range(width))
    return (*positive, -(1 << width)) if lowest < 0 else positive


def digits(number: int, within: Iterable[int]) -> tuple[int, ...]:
    """Returns the places of which a number is the sum.

    >>> digits(-3, places(-4, 3))
    (1, -4)
    """
    return tuple(place for place in within if number & abs(place))


def constants(relation: str, numbers: Iterable[int]) -> str:
    """Returns facts `(relation n ?i)`, the places of each of the numbers, which are not negative.

    >>> print(constants("worth", (2, 3)))
    (worth 2 2)
    (worth 3 1)
    (worth 3 2)
    """
    return kif.facts(relation, ((n, place) for n in numbers for place in digits(n, places(0, n))))


def counter(name: str, last: int, tick: str = "", of: str = "") -> str:
    """Returns rules of the fluents `(NAME ?i)`: a number that starts at 0 and grows by one in every step.

    It counts to `last`, where the game should end (see `reached`).

    Args:
      name: Name of the fluents, a plural.
      last: The number to which it counts.
      tick: A literal that holds in the steps that count; every step does without it.
      of: A variable of `tick`, such as `?p`: then `(NAME ?p ?i)` is a number for each of its values.
    """
    key = f"{of} " if of else ""
    counts = f"(<= ({name}_carry {key}1)\n    {tick})" if tick else f"({name}_carry 1)"
    return f"""
; {name.capitalize()} are counted in binary: the sum of all ?i of which ({name} {key}?i) is true.

{_doubling(name, places(0, last))}

{counts}

(<= ({name}_carry {key}?j)
    ({name}_carry {key}?i)
    (true ({name} {key}?i))
    ({name}_doubled ?i ?j))

(<= (next ({name} {key}?i))
    (true ({name} {key}?i))
    (not ({name}_carry {key}?i)))

(<= (next ({name} {key}?i))
    ({name}_carry {key}?i)
    (not (true ({name} {key}?i))))
"""


def reached(name: str, last: int, of: str = "") -> str:
    """Returns literals that hold when a counter has reached `last`, the first number that has all of its places.

    >>> print(reached("rounds", 5))
    (true (rounds 1))
        (true (rounds 4))
    """
    key = f"{of} " if of else ""
    return "\n    ".join(f"(true ({name} {key}{place}))" for place in digits(last, places(0, last)))


def equals(name: str, number: int, last: int, of: str = "") -> str:
    """Returns literals that hold when a counter that counts to `last` is at a number.

    >>> print(equals("rounds", 1, 3))
    (true (rounds 1))
        (not (true (rounds 2)))
    """
    key = f"{of} " if of else ""
    within = places(0, last)
    held = digits(number, within)
    atoms = {place: f"(true ({name} {key}{place}))" for place in within}
    return "\n    ".join(atom if place in held else f"(not {atom})" for place, atom in atoms.items())


def account(name: str, lowest: int, highest: int, amount: str, adds: str, subtracts: str) -> str:
    """Returns rules of the fluents `(NAME ?i)`: a number that starts at 0, to which amounts are added and subtracted.

    Args:
      name: Name of the fluents.
      lowest: The lowest number that can occur; negative.
      highest: The highest.
      amount: The number that is added or subtracted, a literal of `?i`; not negative.
      adds: A literal that holds in the steps in which the amount is added.
      subtracts: A literal that holds in those in which it is subtracted, never together with `adds`.
    """
    return f"""
; The {name} is counted in binary: the sum of all ?i of which ({name} ?i) is true.

{kif.values(f"{name}_place", places(lowest, highest))}

(<= ({name}_change ?i)
    {adds}
    {amount})

(<= ({name}_change ?i)
    {subtracts}
    ({name}_place ?i)
    (not {amount}))

(<= (next ({name} ?i))
    ({name}_sum ?i))

{plus(f"{name}_sum", f"(true ({name} ?i))", f"({name}_change ?i)", places(lowest, highest), carry=subtracts).strip()}
"""


def plus(total: str, first: str, second: str, within: tuple[int, ...], carry: str = "") -> str:
    """Returns rules of `(TOTAL ?i)`, the sum of two numbers, and of one more if the literal `carry` holds.

    The carry ripples from place to place. What exceeds the last place is lost, so that `plus` with the complement of a
    number and a carry subtracts it.
    """
    carries_in = f"\n(<= ({total}_carry 1)\n    {carry})\n" if carry else ""
    return f"""
{_doubling(total, within)}
{carries_in}
(<= ({total}_carry ?j)
    {first}
    {second}
    ({total}_doubled ?i ?j))

(<= ({total}_carry ?j)
    ({total}_differs ?i)
    ({total}_carry ?i)
    ({total}_doubled ?i ?j))

(<= ({total}_differs ?i)
    {first}
    (not {second}))

(<= ({total}_differs ?i)
    {second}
    (not {first}))

(<= ({total} ?i)
    ({total}_differs ?i)
    (not ({total}_carry ?i)))

(<= ({total} ?i)
    ({total}_carry ?i)
    (not ({total}_differs ?i)))
"""


def greater(name: str, first: str, second: str, within: tuple[int, ...]) -> str:
    """Returns rules of `NAME`, which holds if the first number is greater than the second; neither is negative.

    `(NAME_upto ?i)` holds if it is greater as far as the places up to ?i count.
    """
    return f"""
{_doubling(name, within)}

(<= ({name}_upto ?i)
    {first}
    (not {second}))

(<= ({name}_upto ?j)
    ({name}_upto ?i)
    ({name}_doubled ?i ?j)
    (not ({name}_less ?j)))

(<= ({name}_less ?i)
    {second}
    (not {first}))

(<= {name}
    ({name}_upto {within[-1]}))
"""


def _doubling(name: str, within: tuple[int, ...]) -> str:
    """The facts `(NAME_doubled ?i ?j)` that lead from each place to the next."""
    return kif.facts(f"{name}_doubled", itertools.pairwise(within))
