"""Solvers on `SequenceForm`, `SamplingForm` and `Env`: the CFR and MCCFR families, best response, linear programs.

Solvers never see GDL. May import `gdlx.envs` and what lies below it.
"""
