"""Which chips the versions of a flashing tool know, from the tools' sources.

`openocd`: `case`, `.id` and `DEVID_` of src/flash/nor/stm32f1x.c, stm32f2x.c, stm32h7x.c,
stm32lx.c, stm32l4x.c and stm32l4x.h at v0.11.0 (f342aac) and v0.12.0 (9ea7f3d). `stlink`:
src/stlink-lib/chipid.c at v1.7.0 (179650d) and config/chips at v1.8.0 (40948aa). pyocd knows what
its packs know.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping

Version = tuple[int, int, int]
_SECONDS = 20.0
_VERSION = re.compile(r"\bv?(\d+)\.(\d+)\.(\d+)(\+dev|-rc)?")


def _devices(text: str) -> frozenset[int]:
    return frozenset(int(word, 16) for word in text.split())


_OPENOCD_11 = _devices(
    "410 411 412 413 414 415 416 417 418 419 420 421 422 423 425 427 428 429 430 431 432 433 434 "
    "435 436 437 438 439 440 441 442 444 445 446 447 448 449 450 451 452 457 458 460 461 462 463 "
    "464 466 468 469 470 471 472 479 480 483 495 496 497"
)
_STLINK_17 = _devices(
    "410 411 412 413 414 415 416 417 418 419 420 421 422 423 425 427 428 429 430 431 432 433 434 "
    "435 436 437 438 439 440 441 442 444 445 446 447 448 449 450 451 452 457 458 460 461 462 463 "
    "464 466 468 469 470 480 483 495"
)
KNOWN: Mapping[str, Mapping[Version, frozenset[int]]] = {
    "openocd": {
        (0, 11, 0): _OPENOCD_11,
        (0, 12, 0): _OPENOCD_11 | _devices("456 467 482 494"),
    },
    "stlink": {
        (1, 7, 0): _STLINK_17,
        (1, 8, 0): _STLINK_17 | _devices("443 453 455 456 467 471 472 476 479 481 482 484 497"),
    },
}
"""DEV_ID of the chips that each version of a tool can flash, by the runner's name."""


def lacks(runner: str, program: str, device_id: int) -> str:
    """Why the installed `program` cannot flash a chip with this DEV_ID; '' where it can, or where
    its version is newer than those that are known here.

    Asks the program for its version only where one of the known versions lacks the chip.
    """
    versions = KNOWN.get(runner, {})
    if all(device_id in known for known in versions.values()):
        return ""
    version = _installed(program)
    if version is None or version > max(versions):
        return ""
    at_most = max((v for v in versions if v <= version), default=min(versions))
    if device_id in versions[at_most]:
        return ""
    since = next((v for v, known in sorted(versions.items()) if device_id in known), None)
    newer = f"; {_text(since)} does" if since else ""
    return f"{program} {_text(version)} does not know the chip, device 0x{device_id:03x}{newer}"


def _installed(program: str) -> Version | None:
    """None for a version between releases, whose chips are not known."""
    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(done.stdout + done.stderr)
    if match is None or match[4]:
        return None
    return int(match[1]), int(match[2]), int(match[3])


def _text(version: Version) -> str:
    return ".".join(map(str, version))
