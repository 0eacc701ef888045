"""Values of public states given ranges: exact subgame values, networks that predict them, depth-limited solving."""
