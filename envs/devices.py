"""Devices on a CPU: XLA runs a loop on one core only, so each core is made a device of its own."""

import os


def available_cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_one_device_per_core() -> None:
    """Before jax looks for its devices; afterwards it changes nothing. Who has set XLA_FLAGS keeps them."""
    os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count={available_cores()}")


def machine_memory_bytes() -> int | None:
    """Of the whole machine; None where that cannot be told."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def memory_bytes_per_device() -> int | None:
    """What a device has for itself: memory of its own, or its part of the machine's."""
    import jax

    own = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")  # CPUs tell nothing
    whole = machine_memory_bytes()
    return own or (None if whole is None else whole // jax.local_device_count())
