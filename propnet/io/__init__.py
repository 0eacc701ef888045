"""Propnets as files: own formats, the JSON layout of ggp-base, drawings, and the cache on disk."""
