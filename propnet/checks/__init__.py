"""What is checked of a rulesheet, one file per kind of mistake. Each check is a function (facts, log)."""
