"""`python -m gdlx.cli` is `gdlx`."""

import sys

from gdlx import cli

sys.exit(cli.main())
