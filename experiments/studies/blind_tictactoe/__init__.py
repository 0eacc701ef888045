"""Openings, value and bound of three blind tic-tac-toes."""
