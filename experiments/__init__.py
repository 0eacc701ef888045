"""Benchmarks (`bench`), sweeps, reports, and published studies done again (`studies`).

May import every room except `gdlx.cli`.
"""
