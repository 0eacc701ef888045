"""What every layer uses: errors that users cause, limits, options given as texts, small graphs."""
