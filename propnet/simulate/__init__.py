"""Evaluates propnets in numpy: straight-line code, batches of states, random play."""
