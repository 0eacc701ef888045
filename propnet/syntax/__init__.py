"""Parses rulesheets into terms and rules with their positions, and reports diagnostics that point to them."""
