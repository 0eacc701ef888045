"""Exceptions that are neither a mistake in the input nor a bug: the machine lacks a device or memory."""

# As jax, XLA and numpy call it, the loader of libraries, and Python when it starts a thread.
_OUT_OF_MEMORY = (
    *("RESOURCE_EXHAUSTED", "Out of memory", "out of memory", "Unable to allocate", "bad_alloc"),
    *("failed to map segment", "annot allocate memory", "can't start new thread"),
)
_SMALLER = (
    "take a smaller game or `batch=`, or for sampling a smaller `table=`; `gdlx doctor` shows how much memory there is"
)


def explain(error: Exception) -> str | None:
    """Return what the machine lacks and what to try; None if the error has another cause."""
    if isinstance(error, MemoryError) or any(text in str(error) for text in _OUT_OF_MEMORY):
        return f"there is not enough memory for this ({_first_line(error)}); {_SMALLER}"
    if not isinstance(error, AssertionError | RuntimeError):  # what jax raises
        return None
    from gdlx.envs import devices

    return devices.explain_missing()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200] or type(error).__name__
