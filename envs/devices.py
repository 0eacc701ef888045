"""The devices of jax. On a CPU, XLA runs a loop on one core only, so each core becomes a separate device."""

import os
import sys
from typing import Any

from gdlx.propnet.common import errors

_DEVICE_COUNT = "xla_force_host_platform_device_count"
_LEAST_ADDRESS_SPACE = 2**31  # bytes: with less, threads of XLA cannot start, and abort the process


class AddressSpaceError(errors.UserError, MemoryError):
    """The process may allocate too little memory for JAX."""


def available_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def use_one_device_per_core() -> None:
    """Call before jax initialises its devices; later calls have no effect. A number in XLA_FLAGS is not changed."""
    flags = os.environ.get("XLA_FLAGS", "")
    if _DEVICE_COUNT not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --{_DEVICE_COUNT}={available_cores()}".strip()


def require_address_space() -> None:
    """Raises AddressSpaceError if the process may allocate too little to compute anything. Call before jax starts."""
    try:
        import resource
    except ImportError:  # not on this system
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _LEAST_ADDRESS_SPACE:
        raise AddressSpaceError(
            f"computing takes more than {_LEAST_ADDRESS_SPACE / 2**30:g} GiB of address space, and this process may "
            f"have {limit / 2**30:.1f} GiB; raise the limit, e.g. with: ulimit -v unlimited"
        )


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


def explain_missing() -> str | None:
    """Says that the platform that `JAX_PLATFORMS` names has no devices, and which there are; None if it has some.

    Call it after jax has failed: jax then uses the devices that it finds.
    """
    if "jax" not in sys.modules:
        return None
    import jax
    import jax.extend

    config: Any = jax.config
    platforms = config.jax_platforms
    try:
        jax.devices()
        return None
    except (AssertionError, RuntimeError) as error:  # without a message if no plugin for the platform is installed
        reason = f" ({error})" if str(error) else ""
    if not platforms:
        return f"jax finds no device{reason}"
    config.update("jax_platforms", None)
    clear_backends: Any = jax.extend.backend.clear_backends
    clear_backends()
    available = ", ".join(f"{device.platform}:{device.id}" for device in jax.devices())
    return (
        f"jax finds no device of the platform {platforms}{reason}. It finds {available}: choose another `device=`, or "
        "install the driver and the variant of jax for the one that you want"
    )
