"""Environment variables that make XLA compile fast, for programs that tests run only for moments."""

import mmap
import os
import pathlib

import jaxlib

# LLVM code for whole fusions directly, without MLIR, and in one piece: half of the compile time of small programs.
_FAST_FLAGS = {"xla_cpu_use_fusion_emitters": "false", "xla_cpu_parallel_codegen_split_count": "1"}
_DEVICES = "--xla_force_host_platform_device_count"


def compile_fast() -> None:
    """Turns most optimisations off here and in processes started from here, unless the environment says otherwise.

    Call before jax initialises its devices. `make test-optimised` sets JAX_DISABLE_MOST_OPTIMIZATIONS=0 and runs what
    users run.
    """
    if os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1") != "0" and "XLA_FLAGS" not in os.environ:
        os.environ["XLA_FLAGS"] = " ".join(f"--{name}={value}" for name, value in _FAST_FLAGS.items() if _is_flag(name))


def _is_flag(name: str) -> bool:
    """Whether this jaxlib knows a flag: XLA aborts on one it does not, and its flags come and go."""
    for library in pathlib.Path(jaxlib.__file__).parent.glob("libjax_common.*"):
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content.find(name.encode() + b"\0") >= 0:
                return True
    return False


def environment_with_devices(count: int | None) -> dict[str, str]:
    """The environment of a process with so many CPU devices; None leaves the number to the process."""
    flags = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if not flag.startswith(_DEVICES)]
    if count is not None:
        flags.append(f"{_DEVICES}={count}")
    return os.environ | {"XLA_FLAGS": " ".join(flags)}
