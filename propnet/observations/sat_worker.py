"""The child process that finds histories with clingo: it has its own limits on time and memory.

Reads one JSON request on stdin: the number of atoms, gates [node, literals..], clauses of which not all literals are
true, groups of nodes of which one is true, how many models are wanted (0: all), and the limits. Writes one JSON line,
then uint16 for every model and group: which node of the group is true.

The program goes to the solver through its backend, without text: an atom for every node.
"""

import array
import contextlib
import json
import os
import resource
import sys
import threading
import time
from typing import Any

import clingo


def _limit_memory(most: int) -> None:
    """Limits the memory that this process takes in addition to what it has."""
    if sys.platform == "darwin":  # does not support this limit
        return
    with contextlib.suppress(OSError), open("/proc/self/statm", "rb") as status:
        most += int(status.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _end_with_parent() -> None:
    """Exits when the parent does, which closes the pipe."""
    while os.read(0, 4096):
        pass
    os._exit(1)


def _build(control: clingo.Control, request: dict[str, Any]) -> None:
    """Adds the atoms and rules; the n-th node of all groups together is shown as the number n."""
    with control.backend() as backend:
        atoms = [backend.add_atom() for _ in range(request["nodes"])]

        def literal(number: int) -> int:
            atom: int = atoms[number >> 1]
            return -atom if number & 1 else atom

        position = 0
        for group in request["groups"]:
            members = [backend.add_atom(clingo.Function("m", [clingo.Number(position + n)])) for n in range(len(group))]
            position += len(group)
            for node, member in zip(group, members, strict=True):
                atoms[node] = member
            backend.add_rule(members, [], choice=True)
            backend.add_rule([], [-member for member in members])
            backend.add_weight_rule([], 2, [(member, 1) for member in members])
        for node, *gate in request["gates"]:
            backend.add_rule([atoms[node]], [literal(number) for number in gate])
        for clause in request["clauses"]:
            backend.add_rule([], [literal(number) for number in clause])


def _solve(request: dict[str, Any]) -> tuple[str, "array.array[int]"]:
    """Returns why the search stopped ("" if there are no more models), and the models."""
    wanted = request["wanted"]
    options = ["--warn=none", str(wanted), f"--seed={request['seed']}"]
    if request["random"]:
        options += ["--rand-freq=1", "--sign-def=rnd", "--restart-on-model"]
    control = clingo.Control(options, logger=lambda code, message: None)
    _build(control, request)
    codes = [(number, code) for number, group in enumerate(request["groups"]) for code in range(len(group))]
    found = array.array("H")
    end = time.monotonic() + request["seconds"]

    def record(model: clingo.Model) -> bool:
        true = [0] * len(request["groups"])
        for symbol in model.symbols(atoms=True):
            number, code = codes[symbol.arguments[0].number]
            true[number] = code
        found.extend(true)
        return bool(time.monotonic() < end)

    with control.solve(on_model=record, async_=True) as handle:
        if not handle.wait(max(0.0, end - time.monotonic())):
            handle.cancel()
            return "seconds", found
        result = handle.get()
    return ("" if result.exhausted else "seconds" if time.monotonic() >= end else "wanted"), found


def main() -> None:
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return
    request: dict[str, Any] = json.loads(line)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _limit_memory(request["bytes"])
    try:
        stopped, found = _solve(request)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "bad_alloc" not in str(error):
            raise
        stopped, found = "memory", array.array("H")
    sys.stdout.buffer.write(json.dumps({"stopped": stopped, "bytes": 2 * len(found)}).encode() + b"\n")
    found.tofile(sys.stdout.buffer)
    sys.stdout.buffer.flush()
    os._exit(0)  # a search that was cancelled may still hold threads


if __name__ == "__main__":
    main()
