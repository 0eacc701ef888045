"""The one kind of exception that a user is told in a paragraph: a mistake in what was given, not in gdlx."""


class UserError(Exception):
    """Its text names the place and the fix."""
