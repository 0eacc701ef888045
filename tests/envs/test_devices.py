"""How many devices a CPU becomes."""

import os

import pytest

from gdlx.envs import devices

_COUNT = "--xla_force_host_platform_device_count"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (None, f"{_COUNT}=6"),
        ("--xla_cpu_enable_fast_math=false", f"--xla_cpu_enable_fast_math=false {_COUNT}=6"),
        (f"{_COUNT}=3", f"{_COUNT}=3"),
    ],
)
def test_every_core_is_a_device_unless_the_user_has_chosen(
    flags: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "available_cores", lambda: 6)
    monkeypatch.setenv("XLA_FLAGS", flags or "")
    if flags is None:
        monkeypatch.delenv("XLA_FLAGS")
    devices.use_one_device_per_core()
    assert os.environ["XLA_FLAGS"] == expected
