"""The drive of an ST-LINK, to which `firmware.bin` is copied: `python -m toolchain.device.drive`.

An ST-LINK/V2-1 or V3 shows a drive with DETAILS.TXT and MBED.HTM. It programs a file that is copied
there; then the drive goes and comes back, with a FAIL.TXT where programming failed (ST's UM1724,
"USB programming"; not tried here). It does not read back, and its label is all that tells the
board.

`find` prints the drives with their labels, `copy FILE LABEL` copies and waits for the drive.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

MOUNTS = Path("/proc/mounts")
_DETAILS, _FAILED = "DETAILS.TXT", "FAIL.TXT"
_BACK_SECONDS, _STEP_SECONDS = 30.0, 0.2


def drives(mounts: Path = MOUNTS) -> dict[str, Path]:
    """Mounted drives of ST-LINKs by label, which is the name of the folder."""
    lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    points = (Path(line.split()[1].replace("\\040", " ")) for line in lines if line)
    return {point.name: point for point in points if (point / _DETAILS).is_file()}


def copy(
    image: Path, label: str, mounts: Path = MOUNTS, back_seconds: float = _BACK_SECONDS
) -> str:
    """Copy `image` to the drive; '' when the drive is back without a complaint, else what is
    wrong."""
    drive = drives(mounts).get(label)
    if drive is None:
        return f"the drive {label} is not mounted"
    (drive / _FAILED).unlink(missing_ok=True)
    copied = drive / image.name
    shutil.copyfile(image, copied)
    if hasattr(os, "sync"):
        os.sync()
    until = time.monotonic() + back_seconds
    while time.monotonic() < until:
        back = drives(mounts).get(label)
        if back is not None and (back / _FAILED).is_file():
            return (back / _FAILED).read_text(encoding="utf-8", errors="replace").strip()
        if back is not None and not (back / image.name).exists():
            return ""  # programmed: the drive is a new one
        time.sleep(_STEP_SECONDS)
    return f"the drive {label} did not come back in {back_seconds:g} s"


def main(arguments: Sequence[str]) -> int:
    if arguments[0] == "find":
        found = drives() if MOUNTS.exists() else {}
        for label, point in found.items():
            sys.stdout.write(f"drive {label} at {point}\n")
        return 0 if found else 1
    wrong = copy(Path(arguments[1]), arguments[2])
    sys.stdout.write(f"{wrong or 'the ST-LINK programmed it'}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
