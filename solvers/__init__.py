"""Solvers on `SequenceForm`, `SamplingForm` and `Env`: the CFR and MCCFR families, best response, linear programs.

Algorithms work on arrays and environments; only the entry points (`solve`, `problems`, `results`) take the name of a
game, or compare the digest of its propnet with a saved one. May import `gdlx.envs` and what lies below it.
"""
