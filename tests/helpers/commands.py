"""Runs commands of gdlx in this process, because importing jax in another one takes longer than most commands."""

import contextlib
import io
import pathlib
import subprocess

from gdlx import cli


def run(*arguments: str, cwd: pathlib.Path, merge: bool = False) -> subprocess.CompletedProcess[str]:
    """What a command prints in that folder, and its exit code. `merge` adds errors to the output, where they happen.

    Not for options that change jax for the whole process, such as --x64.
    """
    out = io.StringIO()
    err = out if merge else io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main(list(arguments))
    return subprocess.CompletedProcess(["gdlx", *arguments], code, out.getvalue(), "" if merge else err.getvalue())
