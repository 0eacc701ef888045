"""Settings of CFR and of outcome sampling, one at a time, beside those of Schlindenbuch (2019)."""
