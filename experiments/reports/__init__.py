"""What `report` is made of: runs gathered and grouped, curves, facts of games, policies in words, and the page."""
