"""The version of gdlx. It is looked up when it is first asked for, since the search takes a tenth of the start."""

import importlib.metadata

__version__ = importlib.metadata.version("gdlx")
