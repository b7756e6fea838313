"""Every error that Thimble raises on purpose, and its exit code.

A message names the operator, tensor or byte at fault and says what to do. The command line prints
it as it is, without a traceback.
"""

from __future__ import annotations


class ThimbleError(Exception):
    """Base of all errors that a user can act on."""

    exit_code = 2


class InputError(ThimbleError):
    """The input is bad: a corrupt file, an unknown board, a contradictory option."""


class UnsupportedError(InputError):
    """The model is well formed but uses something that Thimble has no kernel for."""


class MissingToolError(ThimbleError):
    """A compiler, emulator or library is not installed; the message says how to get it."""


class NotJudgedError(ThimbleError):
    """The outputs were computed, but only Thimble's own arithmetic could judge them."""


class ResultError(ThimbleError):
    """The work was done and its result is a failure: it does not fit, or does not match."""

    exit_code = 1


class DoesNotFitError(ResultError):
    """The plan needs more RAM or flash than the board has."""


class LinkError(ResultError):
    """The board did not answer, or answered with a fault."""
