"""Agents that decide online, and matches between them.

May import `gdlx.nets` and what lies below it.
"""
