"""Checks of rulesheets, one file per kind of mistake. Each check is a function (facts, log)."""
