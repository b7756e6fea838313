"""The power of a board on a bench: off and on again, by a command of the bench's owner."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence

from toolchain.errors import LinkError, MissingToolError

_SECONDS = 120


def cycle_power(label: str, command: Sequence[str]) -> None:
    """Run the command that takes the power away and gives it back.

    `label`: the board's name on the bench, for messages. Raises MissingToolError where the program
    is not installed, LinkError where it fails or takes longer than two minutes.
    """
    line = shlex.join(command)
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise MissingToolError(
            f"{label}: power_cycle names {command[0]!r}, which is not installed"
        ) from error
    except OSError as error:
        raise LinkError(f"{label}: power_cycle cannot run {line}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise LinkError(f"{label}: power_cycle took longer than {_SECONDS} s: {line}") from error
    if done.returncode:
        last = (done.stdout.strip().splitlines() or ["it said nothing"])[-1]
        raise LinkError(f"{label}: power_cycle failed with {done.returncode}: {line}\n{last}")
