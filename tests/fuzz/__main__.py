"""Tries mutated sheets, files, caches, checkpoints and command lines for some minutes, and prints counts:

python -m gdlx.tests.fuzz --minutes 5 --counts fuzz.json
"""

import functools
import sys

from gdlx.envs import compilation_cache
from gdlx.tests.fuzz import bits, command_lines, readers, sheets
from gdlx.tests.helpers import trials

_GB = 2**30
PARTS = (
    trials.Part("sheets, checked", 100_000, lambda folder: sheets.check),
    trials.Part("sheets, compiled", 2_000, sheets.compile_accepted),
    *(
        trials.Part(f"files of {name}", round(3_000 * reader.share), functools.partial(readers.make_trial, name))
        for name, reader in readers.READERS.items()
    ),
    *(trials.Part(f"bits of {name}", 1_000, functools.partial(bits.make_trial, name)) for name in bits.KEPT),
    trials.Part("command lines", 2_000, command_lines.make_trial),
    trials.Part("commands on damaged files", 1_000, command_lines.make_damaged_trial),
)

if __name__ == "__main__":
    compilation_cache.enable()  # new processes of the same parts compile nothing again
    sys.exit(trials.main(__doc__, PARTS, limits=trials.Limits(peak_bytes=2 * _GB, data_bytes=6 * _GB)))
