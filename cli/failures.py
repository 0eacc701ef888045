"""Exceptions that are neither a mistake in the input nor a bug: the machine lacks a device or memory."""

from collections.abc import Collection

# As jax, XLA and numpy call it, the loader of libraries, and Python when it starts a thread.
_OUT_OF_MEMORY = (
    *("RESOURCE_EXHAUSTED", "Out of memory", "out of memory", "Unable to allocate", "bad_alloc"),
    *("failed to map segment", "annot allocate memory", "can't start new thread"),
)
_BROKEN_EXTENSION = "initializing the extension"  # as numpy calls it, which has then printed why
# What takes less memory, by the parameter of a command that sets it.
_SMALLER = {
    "game": "a smaller game",
    "config": "smaller games or batches in the file",
    "--batch": "a smaller `batch=`",
    "--table": "for sampling a smaller `table=`",
    "--depth": "fewer steps with `depth=`",
    "--set": "smaller networks and replay buffers with `set=`",
}


def explain(error: Exception, options: Collection[str] = ()) -> str | None:
    """Return what the machine lacks and what to try; None if the error has another cause.

    Args:
      error: any exception.
      options: the options and arguments of the running command, one of which may help.
    """
    if isinstance(error, MemoryError) or any(text in str(error) for text in _OUT_OF_MEMORY):
        smaller = ", or ".join(text for option, text in _SMALLER.items() if option in options)
        advice = f"take {smaller}; " if smaller else ""
        return (
            f"there is not enough memory for this ({_first_line(error)}); {advice}`gdlx doctor` shows how much memory "
            "there is"
        )
    if isinstance(error, ImportError) and _BROKEN_EXTENSION in str(error):
        return (
            "a library that gdlx needs cannot be loaded: either there is not enough memory, or its installation is "
            "damaged; `gdlx doctor` shows how much memory there is"
        )
    if not isinstance(error, AssertionError | RuntimeError):  # what jax raises
        return None
    from gdlx.envs import devices

    return devices.explain_missing()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200] or type(error).__name__
