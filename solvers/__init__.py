"""Solvers on `SequenceForm` and `Env`: the CFR and MCCFR families, best response, linear programs.

Empty so far. Solvers never see GDL. May import `gdlx.envs` and what lies below it.
"""
