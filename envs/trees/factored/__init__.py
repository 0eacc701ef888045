"""Unrolling in blocks: histories that differ only in what players keep to themselves are stored as products of sets."""
