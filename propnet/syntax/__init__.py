"""Text of a rulesheet -> terms and rules, each with its place in the file, and diagnostics that point there."""
