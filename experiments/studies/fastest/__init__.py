"""Which algorithm is the first to solve a game."""
