"""Every error that Thimble raises on purpose, and the exit code each one means.

A message names the operator, tensor or byte at fault and says what to do about it;
the command line prints it as it stands, without a traceback.
"""

from __future__ import annotations


class ThimbleError(Exception):
    """Base of all errors that a user can act on."""

    exit_code = 2


class InputError(ThimbleError):
    """The input is bad: a corrupt file, an unknown board, a contradictory option."""


class UnsupportedError(InputError):
    """The model is well formed but uses what Thimble has no kernel for."""


class MissingToolError(ThimbleError):
    """A compiler, emulator or library is not installed; the message says how to get it."""


class NotJudgedError(ThimbleError):
    """The outputs were computed, and no runtime but Thimble's own arithmetic could judge them."""


class ResultError(ThimbleError):
    """The work was done and its result is a failure: does not fit, does not match."""

    exit_code = 1


class DoesNotFitError(ResultError):
    """The plan needs more RAM or flash than the board has."""


class LinkError(ResultError):
    """The board did not answer, or answered with a fault."""
