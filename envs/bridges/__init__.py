"""Games of gdlx in OpenSpiel and pgx, and games of OpenSpiel in gdlx."""
