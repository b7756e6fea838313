"""Amounts as people write them: bytes and clocks."""

from __future__ import annotations

import re

from toolchain.errors import InputError


def amount(text: str, name: str) -> int:
    """Bytes: `98304`, `96K` or `96KB` or `96KiB`, `1M`; K is 1024 bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KM]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None:
        raise InputError(f"{name} {text!r} is no amount of memory; write it as 98304 or 96K")
    return int(float(match[1]) * {"": 1, "K": 1024, "M": 1024**2}[match[2].upper()])


def hertz(text: str, name: str) -> int:
    """A clock: `64000000`, `64M` or `64MHz`; K is 1000 Hz. Raises InputError for another text, and
    for none."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?)(?:Hz)?", text.strip(), re.IGNORECASE)
    clock = match and float(match[1]) * {"": 1, "K": 1e3, "M": 1e6, "G": 1e9}[match[2].upper()]
    if not clock or clock < 1:
        raise InputError(f"{name} {text!r} is no clock; write it as 64M or 64000000")
    return int(clock)
