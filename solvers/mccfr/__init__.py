"""Monte Carlo CFR on batches of trajectories: outcome and external sampling, on trees or into a hash table."""
