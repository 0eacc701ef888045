"""Children of benchmarks: they end with the process that started them, also if it is killed."""

import os
import signal
import subprocess
import sys
import time

import pytest

from gdlx.experiments.bench.measuring import children

SLEEP = "import time; time.sleep(600)"
COMMAND = f"""
import sys
from gdlx.experiments.bench.measuring import children
children.run([sys.executable, "-c", "import os; print(os.getpid(), flush=True); {SLEEP}"], stdout=None)
"""
FUNCTION = """
import os, time
from gdlx.experiments.bench.measuring import children
from gdlx.tests.experiments.bench.measuring import test_children
if __name__ == "__main__":
    children.call(test_children.report_and_sleep)
"""


def report_and_sleep() -> None:
    print(os.getpid(), flush=True)
    time.sleep(600)


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as status:
            return status.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
@pytest.mark.parametrize("script", [COMMAND, FUNCTION], ids=["command", "function"])
def test_a_killed_benchmark_leaves_no_child(script: str) -> None:
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        for _ in range(200):
            if not is_running(child):
                return
            time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the child runs on")


def test_a_command_that_fails_raises() -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        children.run([sys.executable, "-c", "import sys; sys.exit('wrong')"])
    assert raised.value.stderr == "wrong\n"


def test_a_function_in_a_fresh_process() -> None:
    assert children.call(os.path.basename, "a/b") == "b"
