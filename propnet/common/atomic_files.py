"""Files that appear whole or not at all: results, checkpoints, caches and propnets are written this way.

Checkpoints of solvers are written by `solvers/runs/result_folder.py`, those of trainings by `nets/checkpoints.py`.
"""

import contextlib
import os
import pathlib
import secrets
from collections.abc import Iterator
from typing import IO

Path = str | os.PathLike[str]


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file so that readers see the old content or the new content, never a part of it."""
    with open_atomically(path) as file:
        file.write(data)


@contextlib.contextmanager
def open_atomically(path: Path) -> Iterator[IO[bytes]]:
    """Opens a temporary file next to `path` that replaces it when the block completes."""
    target = pathlib.Path(path)
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        if error.errno is not None:
            error.filename, error.filename2 = os.fspath(path), None  # the user does not know the temporary file
        raise
    finally:
        with contextlib.suppress(OSError):  # a folder that is not writable does not allow removing either
            temporary.unlink()
