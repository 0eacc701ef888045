"""A compiled game as a batched environment: `make` and `Env`, packed random playouts, bridges to other libraries.

`unroll` goes from a propnet to a `GameTree`, and `sequence_form` from there to what solvers run on. May import
`gdlx.propnet`.
"""
