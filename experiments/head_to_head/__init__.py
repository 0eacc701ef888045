"""Players against each other, in the games of two theses."""
