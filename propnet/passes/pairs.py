"""Two literals that several gates join are joined once: the pair that saves most first.

Every pair taken out adds a gate and saves an operation for each gate that used it but one.
"""

import heapq
import itertools

from gdlx.propnet import circuit

_WIDEST = 64  # the number of pairs grows with the square of a gate's width

Pair = tuple[circuit.Literal, circuit.Literal]


def extract_pairs(gates: circuit.Circuit, least_uses: int = 2) -> circuit.Circuit:
    first = gates.inputs + 1
    sets = [set(gate) for gate in gates.gates]
    users: dict[Pair, set[int]] = {}
    for number, gate in enumerate(gates.gates):
        if len(gate) <= _WIDEST:
            for pair in itertools.combinations(gate, 2):
                users.setdefault(pair, set()).add(number)
    heap = [(-len(found), pair) for pair, found in users.items() if len(found) >= least_uses]
    heapq.heapify(heap)
    while heap:
        count, pair = heapq.heappop(heap)
        found = users.get(pair, set())
        if len(found) < least_uses:
            continue
        if -count != len(found):
            heapq.heappush(heap, (-len(found), pair))
            continue
        # A gate that is exactly this pair becomes the shared one; else a new gate does.
        exact = min((number for number in found if len(sets[number]) == 2), default=None)
        if exact is None:
            exact = len(sets)
            sets.append(set(pair))
        literal = 2 * (first + exact)
        touched: set[Pair] = set()
        for number in sorted(found - {exact}):
            rest = sets[number] - set(pair)
            for other in rest:
                for old in pair:
                    users[_pair(old, other)].discard(number)
                if other != literal:
                    new = _pair(literal, other)
                    users.setdefault(new, set()).add(number)
                    touched.add(new)
            sets[number] = rest | {literal}
        users[pair] = set()
        for new in touched:
            if len(users[new]) >= least_uses:
                heapq.heappush(heap, (-len(users[new]), new))
    return circuit.ordered(gates.inputs, [tuple(sorted(s)) for s in sets], gates.outputs)


def _pair(a: circuit.Literal, b: circuit.Literal) -> Pair:
    return (a, b) if a < b else (b, a)
