"""The command line: `main`, which handles signals before anything slow is imported. `application` has the commands."""

import codecs
import gc
import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gdlx.propnet.common import interrupts, lazy

if TYPE_CHECKING:
    from gdlx.cli.application import app as app
    from gdlx.cli.application import hoist as hoist

_ASCII = {"±": "+-", "…": "..", "≤": "<=", "≥": ">=", "→": "->"}
_ERRORS = "gdlx.ascii"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    Args:
      arguments: the arguments after `gdlx`; by default those of this process, which then also handles signals, and
        exits at once if it was interrupted or if threads of agents still run.

    Returns:
      0 on success, 1 on an error, 2 on wrong usage, 70 on a bug in gdlx; after a signal 130 (Ctrl-C), 143 (SIGTERM) or
      129 (SIGHUP).

    >>> main(["--version", "--quiet"])  # doctest: +ELLIPSIS
    gdlx ...
    0
    """
    if arguments is not None:
        return _run(arguments)
    code = 130
    try:
        interrupts.handle()
        code = _run(sys.argv[1:])
    except KeyboardInterrupt:  # while the application was imported, or just after the command
        sys.stderr.write("interrupted\n")
        code = interrupts.exit_code()
    interrupts.exit_at_once()
    # An interrupted call leaves XLA's compiler running in a thread of its own, and the usual shutdown of Python would
    # destroy what it works on; so it would with threads of agents that still compute.
    if interrupts.is_interrupted() or _has_running_threads():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _run(arguments: Sequence[str]) -> int:
    # Importing jax allocates many objects and no garbage; collecting it would take a fifth of the import time.
    gc.set_threshold(50_000)
    # Python sets closed standard streams to None; discard their output, as other programs do.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    codecs.register_error(_ERRORS, to_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # do not fail on a character that the terminal lacks
            stream.reconfigure(errors=_ERRORS)
    from gdlx.cli import application, console

    try:
        code = application.run(list(arguments) or ["--help"])
        sys.stdout.flush()
    except OSError as error:
        # stdout cannot be written. Python flushes it again at exit; send that to /dev/null.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # the reader has closed the pipe: `gdlx games | head -1`
            console.fail(f"cannot write the output: {error.strerror}", as_json=False)
        code = 1
    return code


def to_ascii(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that an encoding lacks by ASCII, or by their code: the handler of encoding errors.

    >>> codecs.register_error("to_ascii", to_ascii)
    >>> "0.5 ± 0.1 ♠".encode("ascii", "to_ascii")
    b'0.5 +- 0.1 \\\\u2660'
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    known = (_ASCII.get(character) for character in lacking)
    text = (
        ascii_text or character.encode("ascii", "backslashreplace").decode()
        for ascii_text, character in zip(known, lacking, strict=True)
    )
    return "".join(text), error.end


def _has_running_threads() -> bool:
    """Whether threads of agents still compute."""
    if "gdlx.players.matches.clock_worker" not in sys.modules:
        return False
    from gdlx.players.matches import clock_worker

    return clock_worker.has_running_threads()


__getattr__, __dir__ = lazy.attach(__name__, {"app": "gdlx.cli.application", "hoist": "gdlx.cli.application"})
