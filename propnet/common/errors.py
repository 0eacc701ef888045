"""Exceptions for mistakes in the input of a user, which the command line shows as a message without a traceback."""

from typing import ClassVar


class UserError(Exception):
    """Base class of errors that the user of gdlx can fix; the message says where the mistake is and how to fix it.

    A message names an argument as in a call, between backticks: `max_nodes=` or `payoff='goal'`. The command line
    replaces it by the option of that name, and names a command that has it if the running one has not, unless
    `names_options` is False: then the user writes it that way there too.

    >>> from gdlx.propnet import games
    >>> games.load_rulesheet("./rps.npz")
    Traceback (most recent call last):
    gdlx.propnet.common.errors.UserError: ./rps.npz is a propnet file, and this needs a rulesheet
    """

    names_options: ClassVar[bool] = True


class Remark(UserWarning):
    """A warning for the user, which the command line shows as a remark."""


class MissingPackageError(UserError, ImportError):
    """Raised if an optional package is required but not installed."""
