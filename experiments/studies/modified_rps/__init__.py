"""How searches find the equilibrium of modified rock-paper-scissors, beside West (2024)."""
