"""Values of public states at given ranges: exact subgame values, networks that predict them, depth-limited solving."""
