"""The playout step of a game as C code: a baseline for what the machine can do."""

from collections.abc import Iterator

from gdlx.envs.lowering import playout_tape, random_move
from gdlx.envs.lowering import tape as tapes
from gdlx.envs.packed import playouts

_LANES = 8  # 32-bit words of a vector
GAMES = 32 * _LANES  # per thread

_FRAME = """\
#include <pthread.h>
#include <stdint.h>
#include <string.h>
typedef uint32_t row __attribute__((vector_size({bytes})));
typedef struct {{ row a, b, c, n; }} streams;
static inline row draw(streams *s) {{
    row word = s->a + s->b + s->n;
    s->n += 1; s->a = s->b ^ (s->b >> 9); s->b = s->c + (s->c << 3);
    s->c = ((s->c << 21) | (s->c >> 11)) + word;
    return word;
}}
static void step(row *state, streams *s, row *sink) {{
    const row zero = {{0}};
{body}
}}
static long steps;
static volatile uint32_t result;
static void *run(void *seed) {{
    row state[{registers}], sink = {{0}};
    streams s;
    memset(&s, 17 + (int)(intptr_t)seed, sizeof s);
    for (int k = 0; k < {lanes}; k++) {{ s.a[k] += 977 * k; s.n[k] += k; }}
    memset(state, 0, sizeof state);
{initial}
    for (long k = 0; k < steps; k++) step(state, &s, &sink);
    result += sink[0];
    return 0;
}}
void play(long count, int threads) {{
    pthread_t started[threads];
    steps = count;
    for (int k = 0; k < threads; k++) pthread_create(&started[k], 0, run, (void *)(intptr_t)k);
    for (int k = 0; k < threads; k++) pthread_join(started[k], 0);
}}
"""


def generate_source(play: playouts.Playout) -> str:
    """Returns C source with `play(steps, threads)`: every thread plays GAMES games for so many steps."""
    registers = len(play.propnet.initial) + play.counter_bits
    initial = [
        f"    memset(&state[{n}], 255, sizeof(row));" for n, bit in enumerate(play.propnet.initial.tolist()) if bit
    ]
    return _FRAME.format(
        bytes=4 * _LANES,
        lanes=_LANES,
        registers=registers,
        initial="\n".join(initial),
        body="\n".join(f"    {line}" for line in _body(play, registers)),
    )


def _body(play: playouts.Playout, registers: int) -> Iterator[str]:
    program = play.step_tape
    yield "row r0 = zero;"
    yield from (f"row r{n + 1} = state[{n}];" for n in range(registers))
    yield from (f"row r{n} = zero;" for n in range(registers + 1, program.rows))
    counting, moving = program.segments
    yield from _operations(program, counting)
    yield from _ranks(play, program, registers)
    yield from _operations(program, moving)
    for n in range(registers):
        yield f"row o{n} = {_read(program.outputs[n], program.output_mask[n])};"
    yield from (f"state[{n}] = o{n};" for n in range(registers))
    happened = zip(program.outputs[registers:], program.output_mask[registers:], strict=True)
    yield from (f"*sink += {_read(row, mask)};" for row, mask in happened)


def _operations(program: tapes.Tape, segment: tapes.Segment) -> Iterator[str]:
    for k in range(segment.start, segment.end):
        joined = "^" if program.xor_mask[k] else "&"
        left = _read(program.left[k], program.left_mask[k])
        yield f"r{program.target[k]} = {left} {joined} {_read(program.right[k], program.right_mask[k])};"


def _ranks(play: playouts.Playout, program: tapes.Tape, registers: int) -> Iterator[str]:
    """Random numbers below the counts of legal moves, as in `envs.lowering.random_move`."""
    rank_bits = playout_tape.rank_bits(play.propnet)
    if not rank_bits:
        return
    first = 0
    for role, bits in enumerate(rank_bits):
        for bit in range(bits):
            counted = _read(program.intermediate[first + bit], program.intermediate_mask[first + bit])
            yield f"row c{role}_{bit} = {counted}, k{role}_{bit} = zero;"
        first += bits
    yield f"for (int i = 0; i < {random_move.EXTRA_BITS + max(rank_bits)}; i++) {{"
    for role, bits in enumerate(rank_bits):
        yield f"    row w{role} = draw(s), q{role} = zero, x{role}, y{role}, t{role};"
        for bit in range(bits):
            x, y, q, t = f"x{role}", f"y{role}", f"q{role}", f"t{role}"
            yield f"    {x} = k{role}_{bit}; {y} = c{role}_{bit} & w{role}; {t} = {x} ^ {y};"
            if bit:
                yield f"    k{role}_{bit - 1} = {t} ^ {q};"
            yield f"    {q} = ({x} & {y}) | ({t} & {q});"
        yield f"    k{role}_{bits - 1} = q{role};"
    yield "}"
    row = registers + 1
    for role, bits in enumerate(rank_bits):
        for bit in range(bits):
            yield f"r{row} = k{role}_{bit};"
            row += 1


def _read(row: int, mask: int) -> str:
    return f"~r{row}" if mask else f"r{row}"
