"""A compiled game as a batched environment: `make` and `Env`, packed random playouts, bridges to other libraries.

To come: the way from a network to `GameTree` to `SequenceForm`. May import `gdlx.propnet`.
"""
