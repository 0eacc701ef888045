"""Estimates of a game's size from random play: histories, information sets, blocks; and whether it is too large."""
