"""Search from where a match is: beliefs over histories, UCT, rollouts, CFR on small subtrees."""
