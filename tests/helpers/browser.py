"""Renders pages of gdlx in a real browser: console messages and screenshots."""

import pathlib
import shutil
import subprocess
from typing import Any, NamedTuple

import matplotlib.image
import numpy as np
import numpy.typing as npt
import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--enable-logging=stderr", "--v=0"),
)


class RenderedPage(NamedTuple):
    """Axes: H height, W width."""

    console_messages: list[str]  # lines of the console
    screenshot: npt.NDArray[np.uint8]  # [H, W, 3] red, green, blue


def find() -> str:
    """The path of Chromium; skips the test if it is not installed."""
    for name in _NAMES:
        if path := shutil.which(name):
            return path
    pytest.skip("there is no Chromium to open the page with; install it, e.g. with apt-get install chromium")


def open_page(page: pathlib.Path, scratch: pathlib.Path, *, dark: bool, width: int, height: int) -> RenderedPage:
    """Renders a page with a fresh browser profile, which is created in the folder `scratch`."""
    program, shot = find(), scratch / "picture.png"
    shot.unlink(missing_ok=True)
    ran = subprocess.run(
        [
            program,
            *_FLAGS,
            f"--user-data-dir={scratch / 'profile'}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            f"--window-size={width},{height}",
            f"--screenshot={shot}",
            page.resolve().as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    messages = [line for line in ran.stderr.splitlines() if "CONSOLE" in line]
    pixels: Any = matplotlib.image.imread(shot)
    return RenderedPage(messages, np.rint(pixels[..., :3] * 255).astype(np.uint8))


def count(picture: npt.NDArray[np.uint8], colour: str) -> int:
    """The number of pixels of a colour such as #0072b2."""
    rgb = [int(colour[n : n + 2], 16) for n in (1, 3, 5)]
    return int((picture == rgb).all(axis=-1).sum())
