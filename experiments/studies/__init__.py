"""Published studies done again, ours beside theirs; a folder each."""
