"""From the gates of a propnet to JAX operations: tapes, how CPUs and accelerators run them, random legal moves."""
