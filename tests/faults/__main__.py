"""Stops commands, or takes disk and memory away from them, for some minutes, and prints counts:

python -m gdlx.tests.faults --minutes 10 --counts faults.json
"""

import functools
import sys

from gdlx.tests.faults import kills, resources, scenarios
from gdlx.tests.helpers import trials

_SECONDS = 600.0  # of processor time for a trial, which is that of comparing
PARTS = (
    *(
        trials.Part(f"stopped: {one.name}", one.trials, functools.partial(kills.make_trial, one), _SECONDS)
        for one in scenarios.SCENARIOS
    ),
    *(
        trials.Part(kind, 40, functools.partial(resources.make_trial, kind, scenarios.SCENARIOS), _SECONDS)
        for kind in resources.KINDS
    ),
)

if __name__ == "__main__":
    sys.exit(trials.main(__doc__, PARTS))
