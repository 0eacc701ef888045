"""Encoders of states and information sets, networks, replay and training loops.

Empty so far. May import `gdlx.solvers` and what lies below it.
"""
