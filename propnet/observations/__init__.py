"""What one player's observations say about the moves of all: circuits, propagation, enumeration and SAT. No JAX."""
