"""Symmetries of a game: permutations of moves, percepts, registers and players that keep its rules."""
