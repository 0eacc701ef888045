"""Text of messages: counts with nouns, near names, nothing that a terminal would obey."""
