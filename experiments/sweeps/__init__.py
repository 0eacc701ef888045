"""Sweeps: games x algorithms x settings x seeds from one file, in as few programs as can be."""
