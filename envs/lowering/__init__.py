"""From the gates of a propnet to JAX operations: tapes, three ways to run them, random legal moves in words."""
