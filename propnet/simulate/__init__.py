"""Propnets evaluated in numpy: straight-line code, many copies of a game at once, random play."""
