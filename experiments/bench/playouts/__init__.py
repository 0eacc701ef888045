"""Parts of the benchmark `playout`: the same step as C, and pictures of speeds."""
