"""From the text of a rulesheet to a boolean network: read, check, interpret, ground, build, simplify, emit.

Nothing in here imports jax, and nothing knows of environments or solvers. docs/architecture.md leads through the
files; `gdlx.propnet.library` holds the games that come with gdlx.
"""
