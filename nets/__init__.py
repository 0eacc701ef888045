"""Networks of policies and values: what they see of a game, what trains them, and how they are kept and measured.

May import `gdlx.solvers` and what lies below it.
"""
