"""Saves, loads, caches and draws propnets, and converts them to and from the JSON layout of ggp-cpp."""
