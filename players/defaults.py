"""What is taken if nothing else is said; apart, because the command line tells it before anything heavy is imported."""

START_SECONDS, PLAY_SECONDS = 5.0, 1.0  # of clocks
GAMES = 1_000  # of a match
