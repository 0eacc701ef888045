"""Benchmarks (`bench`), sweeps, reports, and reproductions of published studies (`studies`).

May import every package except `gdlx.cli`.
"""

from typing import TYPE_CHECKING

from gdlx.propnet.common import lazy

if TYPE_CHECKING:
    from gdlx.experiments.reports.report import write as write_report
    from gdlx.experiments.sweeps.config import Sweep as Sweep
    from gdlx.experiments.sweeps.config import read as read_sweep
    from gdlx.experiments.sweeps.run import SweepResult as SweepResult
    from gdlx.experiments.sweeps.run import run_sweep as run_sweep

_MODULES = {
    "Sweep": "gdlx.experiments.sweeps.config",
    "SweepResult": "gdlx.experiments.sweeps.run",
    "read_sweep": "gdlx.experiments.sweeps.config:read",
    "run_sweep": "gdlx.experiments.sweeps.run",
    "write_report": "gdlx.experiments.reports.report:write",
}
__all__ = ["Sweep", "SweepResult", "read_sweep", "run_sweep", "write_report"]
__getattr__, __dir__ = lazy.attach(__name__, _MODULES)
