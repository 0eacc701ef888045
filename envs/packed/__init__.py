"""Batches of games that stay in words, 32 games each: the environment of samplers, and random playouts."""
