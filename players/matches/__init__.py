"""Matches between agents: the referee and its clocks, the games in lockstep, scores, records, tournaments."""
