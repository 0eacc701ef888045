"""Evaluates rules without grounding: joins, safety, stratification, and the reference interpreter."""
