"""Benchmarks: `bench` is the harness, `*_bench` are the benchmarks. Sweeps, studies and reports are to come.

May import every room except `gdlx.cli`.
"""
