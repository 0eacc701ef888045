"""Default values, in a module of their own because the command line shows them before heavy imports."""

START_SECONDS, PLAY_SECONDS = 5.0, 1.0  # of the start clock and the play clock
GAMES = 1_000  # of a match
