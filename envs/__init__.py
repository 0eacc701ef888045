"""A compiled game as a batched environment, and its unrolled tree as flat arrays.

Empty so far. To come: `Env` (init and step, vmapped at the edge), packed random playouts, and the way from
`Env` to `GameTree` to `SequenceForm`. May import `gdlx.propnet`.
"""
