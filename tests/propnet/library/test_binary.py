"""Binary numbers in rules against the integers of Python, in the interpreter and in the propnet at once."""

import random

import pytest

from gdlx.propnet.datalog import interpreter
from gdlx.propnet.library import binary, kif
from gdlx.propnet.syntax import ground_terms
from gdlx.tests.helpers import sheets, support

PLAYED = """
(role calculator)
(init running)
(next running)
(<= terminal (not (true running)))
(goal calculator 50)
"""


def twins(text: str) -> support.RulesAndPropnet:
    return support.RulesAndPropnet(support.read(text), sheets.compile_text(text))


def number(name: str, facts: set[str]) -> int:
    """The sum of all ?i of the facts `(NAME ?i)`."""
    return sum(int(fact[1:-1].split()[1]) for fact in facts if fact[1:-1].split()[0] == name)


def texts(found: frozenset[ground_terms.GroundTerm]) -> set[str]:
    return {ground_terms.to_text(fact) for fact in found}


@pytest.mark.parametrize(("lowest", "highest"), [(0, 1), (0, 9), (0, 16), (-1, 1), (-4, 3), (-5, 5), (-8, 2), (-1, 40)])
def test_digits_sum_up_to_the_number(lowest: int, highest: int) -> None:
    within = binary.places(lowest, highest)
    assert all(sum(binary.digits(n, within)) == n for n in range(lowest, highest + 1))
    assert len(within) == 2 or 2 ** (len(within) - 1) <= 2 * max(highest + 1, -lowest)  # no place too many


@pytest.mark.parametrize("last", [1, 2, 3, 7, 8, 21])
def test_a_counter_counts(last: int) -> None:
    text = kif.sheet(
        PLAYED,
        "(<= (legal calculator (tick ?w)) (yes_or_no ?w))\n(yes_or_no yes)\n(yes_or_no no)",
        binary.counter("rounds", last, "(does calculator (tick yes))"),
        f"(<= (next over)\n    {binary.reached('rounds', last)})",
    )
    both = twins(text)
    rng = random.Random(last)
    states, bits = both.start()
    count, was_reached = 0, False
    while not was_reached:
        both.compare_states(states, bits)
        assert number("rounds", texts(states[0])) == count
        ticks = rng.random() < 0.7
        states, bits = both.step(states, bits, [{"calculator": ("tick", "yes" if ticks else "no")}])
        was_reached = "over" in texts(states[0])
        assert was_reached == (count == last)
        count += ticks


@pytest.mark.parametrize(("lowest", "highest"), [(-1, 1), (-7, 7), (-20, 33), (-100, 5)])
def test_an_account_adds_and_subtracts(lowest: int, highest: int) -> None:
    amounts = range(max(highest, -lowest) + 1)
    text = kif.sheet(
        PLAYED,
        kif.values("amount", amounts),
        kif.values("kind", ("adds", "subtracts", "leaves")),
        "(<= (legal calculator (do ?kind ?n)) (kind ?kind) (amount ?n))",
        binary.constants("worth", amounts),
        "(<= (change ?i) (does calculator (do ?kind ?n)) (worth ?n ?i))",
        *(f"(<= {kind} (does calculator (do {kind} ?n)))" for kind in ("adds", "subtracts")),
        binary.account("balance", lowest, highest, "(change ?i)", "adds", "subtracts"),
    )
    both = twins(text)
    rng = random.Random(highest)
    states, bits = both.start()
    balance = 0
    reached = set()
    for _ in range(150):
        both.compare_states(states, bits)
        assert number("balance", texts(states[0])) == balance
        reached.add(balance)
        goal = rng.randint(lowest, highest)
        kind = "leaves" if rng.random() < 0.1 else "adds" if goal >= balance else "subtracts"
        amount = min(abs(goal - balance), max(amounts))
        states, bits = both.step(states, bits, [{"calculator": ("do", kind, str(amount))}])
        balance += {"adds": amount, "subtracts": -amount, "leaves": 0}[kind]
    assert min(reached) < 0 < max(reached)


@pytest.mark.parametrize("highest", [1, 3, 6, 12])
def test_sums_and_comparisons(highest: int) -> None:
    """Of all pairs of numbers, with and without a carry."""
    within = binary.places(0, highest)
    wide = binary.places(0, 2 * highest + 1)
    numbers = range(highest + 1)
    text = kif.sheet(
        PLAYED,
        kif.values("n", numbers),
        "(carry 0)\n(carry 1)",
        "(<= (legal calculator (set ?a ?b ?c)) (n ?a) (n ?b) (carry ?c))",
        binary.constants("worth", numbers),
        "(<= (first ?i) (does calculator (set ?a ?b ?c)) (worth ?a ?i))",
        "(<= (second ?i) (does calculator (set ?a ?b ?c)) (worth ?b ?i))",
        "(<= carries (does calculator (set ?a ?b 1)))",
        binary.plus("total", "(first ?i)", "(second ?i)", wide, carry="carries"),
        binary.greater("more", "(first ?i)", "(second ?i)", within),
        "(<= (next (sum ?i)) (total ?i))\n(<= (next was_more) more)",
    )
    both = twins(text)
    states, bits = both.start()
    cases = [(a, b, c) for a in numbers for b in numbers for c in (0, 1)]
    joints: list[interpreter.JointAction] = [{"calculator": ("set", *map(str, case))} for case in cases]
    after, following = both.step(states * len(cases), bits.repeat(len(cases), axis=1), joints)
    both.compare_states(after, following)
    for (a, b, c), state in zip(cases, after, strict=True):
        assert number("sum", texts(state)) == a + b + c
        assert ("was_more" in texts(state)) == (a > b)


def test_a_register_of_a_large_number_is_small() -> None:
    text = kif.sheet(
        PLAYED,
        "(legal calculator tick)",
        binary.counter("rounds", 10_000, "(true running)"),
        f"(<= terminal {binary.reached('rounds', 10_000)})",
    )
    propnet = sheets.compile_text(text)
    assert len(propnet.initial) <= 14
    assert propnet.gates < 100
