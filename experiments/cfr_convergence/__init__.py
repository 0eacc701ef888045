"""How fast CFR converges in three games of simultaneous moves, beside a thesis."""
