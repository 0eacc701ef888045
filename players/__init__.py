"""Agents that decide online, and matches between them.

Empty so far. May import `gdlx.nets` and what lies below it.
"""
