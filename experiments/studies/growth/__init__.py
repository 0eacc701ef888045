"""What an iteration costs as games grow by six orders of magnitude."""
