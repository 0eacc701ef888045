"""The child process that grounds: clingo ignores interrupts and may run out of memory, so it has its own process.

Reads one JSON request on stdin: the program, the relations whose atoms are returned by name, and the limits.
Writes one JSON line on stdout, then raw int32 arrays: heads of the ground rules, lengths of their bodies, the literals
of all bodies, and pairs (atom, number of its relation).

The program consists of integers, `f(..)` and `r0(..)`, `r1(..)`: nothing of a rulesheet's text is in it.
"""

import array
import collections
import contextlib
import json
import os
import resource
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import clingo

_CHECK_EVERY = 4096


class _LimitReachedError(Exception):
    """Raised if a limit is reached; the message says which."""


class _Observer(clingo.Observer):
    """Collects ground rules. Choice rules only declare atoms, so they are skipped."""

    def __init__(self, max_rules: int, max_bytes: int, deadline: float) -> None:
        self.heads, self.sizes, self.body = array.array("i"), array.array("i"), array.array("i")
        self.count = 0
        self._max_rules, self._max_bytes, self._deadline = max_rules, max_bytes, deadline
        self.stopped = ""
        self.is_grounding = True

    def rule(self, choice: bool, head: Sequence[int], body: Sequence[int]) -> None:
        if choice:
            return
        self.heads.append(head[0])
        self.sizes.append(len(body))
        self.body.extend(body)
        self.count += 1
        if self.count % _CHECK_EVERY == 0:
            self.check()

    def check(self) -> None:
        """Raises _LimitReachedError at a limit; not called for every rule, which would cost more than grounding."""
        if self.count > self._max_rules:
            self.stopped = "rules"
        elif time.monotonic() > self._deadline:
            self.stopped = "seconds"
        elif _peak_bytes() > self._max_bytes:
            self.stopped = "memory"
        if self.stopped:
            raise _LimitReachedError(self.stopped)


def _peak_bytes() -> int:
    """Peak memory of this process. On Linux ru_maxrss includes the parent's memory at the fork, VmHWM does not."""
    with contextlib.suppress(OSError), open("/proc/self/status", "rb") as status:
        for line in status:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _limit_memory(most: int | None) -> None:
    """Limits the memory of this process; None removes the limit, so that the results so far can be reported."""
    if sys.platform == "darwin":  # does not support this limit
        return
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]  # cannot be raised
    soft = hard if most is None else min(most, 2**62)
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _end_with_parent() -> None:
    """Exits when the parent does, which closes the pipe; grounding itself would not notice."""
    while os.read(0, 4096):
        pass
    os._exit(1)


def _stop_silent_joins(observer: _Observer, seconds: float) -> None:
    """Stops a join without results, which never calls the observer; grounding holds no lock, so a thread can."""
    time.sleep(min(seconds + 1, 1e8))  # some systems do not accept infinity
    if observer.is_grounding and not observer.stopped:
        _write_header({"stopped": "seconds", "count": observer.count, "counts": {}})
        os._exit(0)


def _write_header(header: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):  # whoever asks was stopped before the request was complete
        return
    request: dict[str, Any] = json.loads(line)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _limit_memory(int(request["max_bytes"] * 1.25) + 2**28)  # the observer stops before that, if it is called
    observer = _Observer(request["max_rules"], request["max_bytes"], time.monotonic() + request["max_seconds"])
    threading.Thread(target=_stop_silent_joins, args=[observer, request["max_seconds"]], daemon=True).start()
    control = clingo.Control(["--warn=none"], logger=lambda code, message: None)
    control.register_observer(observer, replace=True)
    control.add("base", [], request["program"])
    try:
        control.ground([("base", [])])
        observer.check()
    except (_LimitReachedError, RuntimeError, MemoryError):
        observer.stopped = observer.stopped or "memory"
    observer.is_grounding = False
    relations = array.array("i")
    names: dict[str, list[tuple[int, str]]] = {}
    counts: dict[str, int] = {}
    shown = set(request["shown"])
    if observer.stopped:
        _limit_memory(None)
        counts = _heads_per_relation(control, observer.heads)
    else:
        for name, arity, positive in control.symbolic_atoms.signatures:
            number = int(name[1:])
            for atom in control.symbolic_atoms.by_signature(name, arity, positive):
                relations.append(atom.literal)
                relations.append(number)
                if number in shown:
                    names.setdefault(str(number), []).append((atom.literal, str(atom.symbol)))
    header = {
        "stopped": observer.stopped,
        "count": observer.count,
        "literals": len(observer.body),
        "relations": len(relations),
        "names": names,
        "counts": counts,
        "peak_bytes": _peak_bytes(),
    }
    _write_header(header)
    if not observer.stopped:
        for part in (observer.heads, observer.sizes, observer.body, relations):
            part.tofile(sys.stdout.buffer)


def _heads_per_relation(control: clingo.Control, rules: "array.array[int]") -> dict[str, int]:
    """Counts the ground rules of each relation so far, to find the one that explodes."""
    heads = collections.Counter(rules)
    counts: dict[str, int] = {}
    for name, arity, positive in control.symbolic_atoms.signatures:
        for atom in control.symbolic_atoms.by_signature(name, arity, positive):
            counts[name[1:]] = counts.get(name[1:], 0) + heads[atom.literal]
    return counts


if __name__ == "__main__":
    main()
