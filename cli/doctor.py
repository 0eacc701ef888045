"""The command `doctor`: describe the installation and its devices."""

import dataclasses
import importlib.metadata
import re
from typing import Annotated

import typer

import gdlx
from gdlx.cli import console
from gdlx.envs import devices
from gdlx.experiments.bench.measuring import host_machine


def doctor(
    context: typer.Context,
    clear_cache: Annotated[
        bool, typer.Option("--clear-cache", help="Delete all cached propnets, unrolled trees and compiled programs.")
    ] = False,
) -> None:
    """Show versions, devices, memory, cores, the cache, and the optional peers."""
    from gdlx.envs import compilation_cache
    from gdlx.envs.trees import tree_cache
    from gdlx.propnet.io import cache

    options = console.options(context)
    if clear_cache:
        freed = cache.clear() + tree_cache.clear() + compilation_cache.clear()
        if options.json:
            console.emit({"cache": str(cache.cache_dir()), "freed_bytes": freed})
        else:
            console.say(f"removed {freed / 2**20:.1f} MB from {cache.cache_dir()}")
        return
    names, problem = _devices()
    cached = (*cache.list_entries(), *tree_cache.entries(), *compilation_cache.entries())
    report = {
        "gdlx": gdlx.__version__,
        **dataclasses.asdict(host_machine.describe()),
        "devices": names,
        "devices_error": problem,
        "cache": str(cache.cache_dir()),
        "cache_mb": round(sum(size for _, size in cached) / 2**20, 1),
        "dependencies": _versions(extra=None),
        "peers": _versions(extra="peers"),
    }
    if options.json:
        console.emit(report)
        return
    for key, value in report.items():
        if isinstance(value, dict):
            console.say(f"{key}:")
            for name, version in value.items():
                console.say(f"  {name:18}{version or 'not installed'}")
        elif isinstance(value, list):
            console.say(f"{key:20}{', '.join(value) or 'none'}")
        elif value is not None:
            console.say(f"{key:20}{value}")


def _versions(extra: str | None) -> dict[str, str | None]:
    """Return the installed version of each package that gdlx, or one of its extras, requires."""
    versions: dict[str, str | None] = {}
    for requirement in importlib.metadata.requires("gdlx") or ():
        required_by = re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
        name = re.match(r"[\w.-]+", requirement)
        if name and (required_by and required_by.group(1)) == extra:
            try:
                versions[name.group()] = importlib.metadata.version(name.group())
            except importlib.metadata.PackageNotFoundError:
                versions[name.group()] = None
    return versions


def _devices() -> tuple[list[str], str | None]:
    """Return the devices of jax, and why those that were asked for are missing: a broken driver is no error here."""
    import jax

    problem = devices.explain_missing()
    try:
        present = jax.devices()
    except RuntimeError:
        present = []
    return [f"{device.platform}:{device.id} {device.device_kind}" for device in present], (
        None if problem is None else console.in_options(problem)
    )
