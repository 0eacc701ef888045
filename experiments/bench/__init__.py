"""Benchmarks: figures beside the installed peers, with targets that are computed."""
