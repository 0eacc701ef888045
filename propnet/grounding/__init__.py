"""Grounds rules with clingo, after rewrites that keep the ground program small."""
