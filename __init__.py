"""gdlx compiles the rules of any GDL-II game to a boolean network, and runs and solves it with JAX.

Today it reads, checks and interprets rulesheets; README.md says what is still to come. Import the room you
need (`from gdlx.propnet import library`): this module itself imports nothing heavy.
"""

import importlib.metadata

__version__ = importlib.metadata.version("gdlx")
