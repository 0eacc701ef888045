"""How many trajectories of outcome sampling to draw at once."""
