"""Players against each other, in the games of West (2024) and Schlindenbuch (2019)."""
