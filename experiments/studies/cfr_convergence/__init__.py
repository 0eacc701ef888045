"""How fast CFR converges in three games of simultaneous moves, beside Shafiei Khadem (2010)."""
