"""Which algorithm solves a game first."""
