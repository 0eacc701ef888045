"""Extracts pairs of literals that several gates have in common, the pair that saves most first.

Every extracted pair adds a gate, and saves one operation for each but one of the gates that used it.
"""

import heapq
import itertools

from gdlx.propnet.circuits import aig

_WIDEST = 64  # the number of pairs grows with the square of a gate's width

Pair = tuple[aig.Literal, aig.Literal]


def extract_pairs(gates: aig.Circuit, least_uses: int = 2) -> aig.Circuit:
    first = gates.inputs + 1
    sets = [set(gate) for gate in gates.gates]
    users = _users_of_pairs(gates)
    heap = [(-len(using), pair) for pair, using in users.items() if len(using) >= least_uses]
    heapq.heapify(heap)
    while heap:
        count, pair = heapq.heappop(heap)
        using = users.get(pair, set())
        if len(using) < least_uses:
            continue
        if -count != len(using):
            heapq.heappush(heap, (-len(using), pair))
            continue
        # A gate that is exactly this pair becomes the shared one; else a new gate does.
        exact = min((number for number in using if len(sets[number]) == 2), default=None)
        if exact is None:
            exact = len(sets)
            sets.append(set(pair))
        for new in _replaced(sets, users, pair, using - {exact}, 2 * (first + exact)):
            if len(users[new]) >= least_uses:
                heapq.heappush(heap, (-len(users[new]), new))
    return aig.sort_topologically(gates.inputs, [tuple(sorted(s)) for s in sets], gates.outputs)


def _users_of_pairs(gates: aig.Circuit) -> dict[Pair, set[int]]:
    """Returns the numbers of the gates that contain each pair of literals."""
    users: dict[Pair, set[int]] = {}
    for number, gate in enumerate(gates.gates):
        if len(gate) <= _WIDEST:
            for pair in itertools.combinations(gate, 2):
                users.setdefault(pair, set()).add(number)
    return users


def _replaced(
    sets: list[set[aig.Literal]],
    users: dict[Pair, set[int]],
    pair: Pair,
    numbers: set[int],
    literal: aig.Literal,
) -> set[Pair]:
    """Replaces a pair by a literal in the gates of these numbers, in `sets` and `users`; returns the new pairs."""
    new_pairs: set[Pair] = set()
    for number in sorted(numbers):
        rest = sets[number] - set(pair)
        for other in rest:
            for old in pair:
                users[_pair(old, other)].discard(number)
            if other != literal:
                new = _pair(literal, other)
                users.setdefault(new, set()).add(number)
                new_pairs.add(new)
        sets[number] = rest | {literal}
    users[pair] = set()
    return new_pairs


def _pair(a: aig.Literal, b: aig.Literal) -> Pair:
    return (a, b) if a < b else (b, a)
