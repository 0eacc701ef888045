"""Information sets of Racko, Battleship and GOPS, beside Richards (2012)."""
