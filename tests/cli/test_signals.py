"""Signals: Ctrl-C, SIGTERM and SIGHUP write what there is; never a traceback; exit codes as shells have them."""

import pathlib
import signal
import subprocess
import sys
import time

import pytest

from gdlx import cli
from gdlx.propnet.common import interrupts

GDLX = [sys.executable, "-m", "gdlx.cli"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_stopped_run_leaves_its_policy(number: signal.Signals, code: int, tmp_path: pathlib.Path) -> None:
    command = [*GDLX, "solve", "kuhn_poker", "--time", "600"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    config = tmp_path / "results/kuhn_poker/dcfr/config.json"
    while not config.exists() and process.poll() is None:
        time.sleep(0.05)
    time.sleep(2.0)
    process.send_signal(number)
    _, error = process.communicate(timeout=120)
    if "Traceback" in error or process.returncode != code:
        pytest.fail(f"{process.returncode}: {error}")
    assert (config.parent / "policy.npz").exists()
    assert "--resume" in error


@pytest.mark.parametrize("pause", [0.05, 0.15, 0.3])
def test_an_early_interrupt_leaves_no_traceback(pause: float) -> None:
    # From the moment on at which `main` is called: Python's own start is not ours.
    start = "import sys; from gdlx import cli; print('ready', flush=True); sys.exit(cli.main())"
    command = [sys.executable, "-c", start, "playout", "kuhn_poker"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(pause)
        for _ in range(5):
            process.send_signal(signal.SIGINT)
            time.sleep(0.02)
        assert process.communicate(timeout=60)[1] == "interrupted\n"
    assert process.returncode == 130


def test_an_interrupted_compilation_does_not_crash_at_exit() -> None:
    """XLA's compiler goes on in its thread after the interrupt; the shutdown of Python would destroy its data."""
    start = """if True:
        import sys
        from gdlx import cli
        from gdlx.propnet import library

        def names():
            import jax
            import jax.numpy as jnp
            def slow(x):
                for n in range(2000):
                    x = jnp.sin(x @ x) + n
                return x
            print("ready", flush=True)
            jax.jit(slow)(jnp.zeros((8, 8))).block_until_ready()

        library.names = names
        sys.argv = ["gdlx", "games"]
        sys.exit(cli.main())
    """
    with subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[1] == b"interrupted\n"
    assert process.returncode == 130


def test_deferred_signals_are_collected() -> None:
    with interrupts.defer() as signals:
        signal.raise_signal(signal.SIGINT)
        assert signals == [signal.SIGINT]
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_evaluating_a_run_without_a_policy_names_resume(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["solve", "kuhn_poker", "--iterations", "5", "--quiet"]) == 0
    (tmp_path / "results/kuhn_poker/dcfr/policy.npz").unlink()
    assert cli.main(["evaluate", "results/kuhn_poker/dcfr"]) == 1
    assert "--resume results/kuhn_poker/dcfr" in capsys.readouterr().err
