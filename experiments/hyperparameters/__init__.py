"""Settings of CFR and of outcome sampling, one at a time, beside those that a thesis chose."""
