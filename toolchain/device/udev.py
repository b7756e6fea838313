"""Linux's access to debug probes, serial ports and Edge TPUs: rules for udev, as in udev(7)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from toolchain.errors import InputError, MissingToolError, ThimbleError
from toolchain.files import write_file

RULES = Path(__file__).with_name("60-thimble.rules")
INSTALLED = Path("/etc/udev/rules.d") / RULES.name
_RELOAD = ("udevadm", "control", "--reload")
_TRIGGER = ("udevadm", "trigger", "--subsystem-match=usb", "--subsystem-match=tty")


def by_hand(installed: Path = INSTALLED) -> str:
    """The command line that does as `install`, for who is not root."""
    steps = (("install", "-m", "644", str(RULES), str(installed)), _RELOAD, _TRIGGER)
    return " && ".join(f"sudo {' '.join(step)}" for step in steps)


def is_installed(installed: Path = INSTALLED) -> bool:
    """Whether the rules in place are these."""
    try:
        return installed.read_bytes() == RULES.read_bytes()
    except OSError:
        return False


def install(installed: Path = INSTALLED) -> None:
    """Write the rules and have udev read them. Raises InputError where there is no udev,
    ThimbleError with the command for root where this user may not write there.
    """
    if sys.platform != "linux":
        raise InputError("udev is Linux's: other systems need no rules for debug probes")
    if not installed.parent.is_dir():
        raise MissingToolError(f"{installed.parent} does not exist: is udev installed?")
    try:
        write_file(installed, RULES.read_text())
    except (OSError, ThimbleError) as error:
        raise InputError(f"{error}; as root it works:\n{by_hand(installed)}") from error
    if shutil.which("udevadm"):
        for command in (_RELOAD, _TRIGGER):
            subprocess.run(command, capture_output=True, check=False, timeout=60)
