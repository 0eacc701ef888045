"""The one kind of exception that a user is told in a paragraph: a mistake in what was given, not in gdlx."""

from typing import ClassVar


class UserError(Exception):
    """Its text names the place and the fix.

    Where the fix is an argument, the text has it as in a call, between backticks: `max_nodes=`, or `payoff='goal'`. The
    command line shows its option instead, unless what is mistaken is written in that way there too.
    """

    names_options: ClassVar[bool] = True


class MissingPackageError(UserError, ImportError):
    """An optional package that is needed here is not installed."""
