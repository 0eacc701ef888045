"""Matches between agents: the referee and its clocks, vectorised games, scores, records, tournaments."""
