"""`gdlx doctor`: what this installation consists of, and what it can compute on."""

import dataclasses
import importlib.metadata
import re

import typer

import gdlx
from gdlx.cli import console
from gdlx.experiments import machine


def doctor(context: typer.Context) -> None:
    """Show versions, devices, memory, cores, and which optional peers are installed."""
    options = console.options(context)
    devices, trouble = _devices(options)
    report = {
        "gdlx": gdlx.__version__,
        **dataclasses.asdict(machine.describe()),
        "devices": devices,
        "devices_error": trouble,
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
                console.say(f"  {name:14}{version or 'missing'}")
        elif isinstance(value, list):
            console.say(f"{key:16}{', '.join(value) or 'none'}")
        elif value is not None:
            console.say(f"{key:16}{value}")


def _versions(extra: str | None) -> dict[str, str | None]:
    """The installed version of each package that gdlx itself, or one of its extras, asks for."""
    versions: dict[str, str | None] = {}
    for requirement in importlib.metadata.requires("gdlx") or ():
        wanted_by = re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
        name = re.match(r"[\w.-]+", requirement)
        if name and (wanted_by and wanted_by.group(1)) == extra:
            try:
                versions[name.group()] = importlib.metadata.version(name.group())
            except importlib.metadata.PackageNotFoundError:
                versions[name.group()] = None
    return versions


def _devices(options: console.Options) -> tuple[list[str], str | None]:
    """What jax finds, or why it finds nothing: a broken driver is what one asks the doctor about."""
    try:
        import jax

        return [f"{device.platform}:{device.id} {device.device_kind}" for device in jax.devices()], None
    except Exception as error:
        return [], str(error) or f"jax finds no {options.device or 'device'}"
