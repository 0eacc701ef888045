"""Runs of solvers: the one driver, the Solver protocol and its kinds, result folders, policy files, plots."""
