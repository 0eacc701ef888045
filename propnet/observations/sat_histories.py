"""Histories that agree with a player's observations, found by the SAT solver of clingo in a process of its own.

The solver finds histories where sampling finds none, or proves that there is none. If it finds all of them, the belief
is exact. Otherwise those that it finds first are a biased sample: their distribution is unknown, so that no weights can
correct it.
"""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO, NamedTuple, cast

import numpy as np

from gdlx.propnet.observations import choices as choosing
from gdlx.propnet.observations import history_enumeration

_GRACE_SECONDS = 5.0  # after which a child that does not keep its limit is killed


class SatResult(NamedTuple):
    """What the solver found.

    Attributes:
      histories: Some histories that agree, each once; their probabilities are not known here (NaN).
      complete: Whether there are no others.
      stopped: Why the search stopped: "" if it is complete, "wanted", "seconds" or "memory".
    """

    histories: history_enumeration.Histories
    complete: bool
    stopped: str


def find_histories(
    left: choosing.Choices,
    *,
    wanted: int = 0,
    seconds: float = 10.0,
    memory_mb: int = 2_000,
    seed: int = 0,
    random: bool = False,
) -> SatResult:
    """Finds histories that agree.

    Args:
      left: The choices that the observations leave.
      wanted: How many; 0 for all.
      seconds: The limit on time.
      memory_mb: The limit on the memory of the solver's process.
      seed: The seed of the solver.
      random: Decide at random. The histories are more diverse, but not uniformly distributed.

    Returns:
      The histories, and whether these are all.

    >>> from gdlx.propnet.observations import positions
    >>> from gdlx.propnet import games
    >>> from gdlx.propnet.observations import plausible_moves
    >>> kuhn = games.compile_game("kuhn_poker")
    >>> plausible = plausible_moves.PlausibleMoves(kuhn, player=1, legal=(4,))
    >>> plausible.extend(positions.Event(4, (), (4,)))  # a card is dealt to the other player
    >>> result = find_histories(choosing.find_choices(plausible))
    >>> sorted(result.histories.codes[0].tolist()), result.complete
    ([0, 1, 2], True)
    """
    if not left.choices:
        return SatResult(_histories(np.zeros((0, 1), np.uint16)), True, "")
    request = _program(left) | {
        "wanted": wanted,
        "seconds": seconds,
        "bytes": memory_mb * 2**20,
        "seed": seed % 2**31,
        "random": random,
    }
    stopped, data = _run_child(json.dumps(request).encode() + b"\n", seconds + _GRACE_SECONDS)
    codes = np.frombuffer(data, np.uint16).reshape(-1, len(left.choices)).T
    return SatResult(_histories(codes), not stopped, stopped)


def first_impossible(
    beginning: Callable[[int], choosing.Choices], possible: int, impossible: int, seconds: float = 10.0
) -> int:
    """Returns after how many joint actions no history agrees any more; the solver proves it of few beginnings.

    Args:
      beginning: What the observations of the first n joint actions leave open.
      possible: A number of joint actions after which some history agrees.
      impossible: One after which none does.
      seconds: The limit on the solver's time, each time. What is not decided is taken to be possible.
    """
    while impossible - possible > 1:
        middle = (possible + impossible) // 2
        result = find_histories(beginning(middle), wanted=1, seconds=seconds)
        if result.complete and not result.histories.codes.shape[1]:
            impossible = middle
        else:
            possible = middle
    return impossible


def _histories(codes: history_enumeration.Codes) -> history_enumeration.Histories:
    return history_enumeration.Histories(codes, np.full(codes.shape[1], np.nan))


def _program(left: choosing.Choices) -> dict[str, object]:
    """The choices as the child reads them, with nodes numbered in order."""
    number: dict[int, int] = {}

    def rename(literal: int) -> int:
        return 2 * number.setdefault(literal >> 1, len(number)) + (literal & 1)

    groups = [[rename(2 * node) >> 1 for node in choice.nodes] for choice in left.choices]
    gates = [[rename(2 * node) >> 1, *map(rename, gate)] for choice in left.choices for node, gate in choice.gates]
    clauses = [list(map(rename, clause)) for choice in left.choices for clause in choice.clauses]
    return {"groups": groups, "gates": gates, "clauses": clauses, "nodes": len(number)}


def _run_child(request: bytes, seconds: float) -> tuple[str, bytes]:
    """Returns why the child stopped, and its data."""
    # -P: modules in the current folder must not shadow those of gdlx.
    command = [sys.executable, "-P", "-m", "gdlx.propnet.observations.sat_worker"]
    # A new process group: Ctrl-C interrupts only this process, which kills the child.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0) as child:
        timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), child.kill)
        timer.daemon = True
        timer.start()
        try:
            with contextlib.suppress(BrokenPipeError):
                stdin, stdout = cast(BinaryIO, child.stdin), cast(BinaryIO, child.stdout)
                stdin.write(request)
                stdin.flush()  # not closed: the child exits when it is, also if this process is killed
                line = stdout.readline()
                if line.endswith(b"\n"):
                    header, data = json.loads(line), stdout.read()
                    if len(data) == header["bytes"]:  # otherwise it was killed while writing
                        return str(header["stopped"]), data
        finally:
            timer.cancel()
            child.kill()
    if child.returncode == 1:  # neither killed nor aborted without memory: its traceback is on stderr
        raise RuntimeError("the SAT solver's process failed")
    return "seconds" if child.returncode == -9 else "memory", b""
