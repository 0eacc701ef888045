"""What learns: self-play with search, Deep CFR, supervised learning; one protocol, one registry."""
