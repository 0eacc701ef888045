"""Shared by all layers: user errors, limits, parsing of option values, small graphs."""
