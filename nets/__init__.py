"""Encoders of states and information sets, networks, and memories for what they learn from. Training is to come.

May import `gdlx.solvers` and what lies below it.
"""
