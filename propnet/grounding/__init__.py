"""Rules -> ground rules by clingo's grounder, after rewrites that keep the ground program small."""
