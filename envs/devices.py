"""Devices on a CPU: XLA runs a loop on one core only, so each core becomes a separate device."""

import os


def available_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_one_device_per_core() -> None:
    """Call before jax initialises its devices; later calls have no effect. An existing XLA_FLAGS is not changed."""
    os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count={available_cores()}")


def machine_memory_bytes() -> int | None:
    """Physical memory of the machine; None if unknown."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def memory_bytes_per_device() -> int | None:
    """Memory of a device: dedicated memory, or its share of the machine's; None if unknown."""
    import jax

    dedicated = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")  # CPUs report none
    total = machine_memory_bytes()
    return dedicated or (None if total is None else total // jax.local_device_count())
