"""Faults: commands that are killed, interrupted, or run out of disk or memory. `make test-faults MINUTES=10`."""
