"""Solvers on the sequence form: the CFR family, fictitious play, linear programs, best responses, batches of runs."""
