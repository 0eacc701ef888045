"""Sweeps: games x algorithms x settings x seeds from one file, compiled to as few programs as possible."""
