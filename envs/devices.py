"""Devices on a CPU: XLA runs a loop on one core only, so each core is made a device of its own."""

import os


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def one_per_core() -> None:
    """Before jax looks for its devices; afterwards it changes nothing. Who has set XLA_FLAGS keeps them."""
    os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count={cores()}")


def memory_bytes() -> int | None:
    """Of the whole machine; None where that cannot be told."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
