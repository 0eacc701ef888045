"""Mutated sheets, files and command lines: nothing may crash, hang or grow. `make test-fuzz MINUTES=10`."""
