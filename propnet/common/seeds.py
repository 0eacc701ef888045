"""Seeds: the generators of numpy take no negative numbers, those of jax do."""


def non_negative(seed: int) -> int:
    """Returns a seed for numpy; different 64-bit seeds stay different.

    >>> non_negative(3), non_negative(-5)
    (3, 18446744073709551611)
    """
    return seed % 2**64
