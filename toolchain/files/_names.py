"""Names of files made from names of models."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Container
from itertools import islice
from pathlib import Path

from toolchain.errors import did_you_mean

_LONGEST = 120
_MOST_BESIDE = 2000
"""So many names of a folder are read."""


def file_stem(text: str) -> str:
    """`text` as the beginning of a file's name: no separators, not hidden, not too long."""
    safe = re.sub(r"[^\w.+=@-]", "_", text, flags=re.ASCII).lstrip(".-")
    return safe[:_LONGEST] or "model"


def did_you_mean_beside(path: Path, holding: str = "") -> str:
    """As `did_you_mean`, for the name of a file that is not there: files beside it; or, with
    `holding`, folders beside it with a file of that name.
    """
    with contextlib.suppress(OSError, ValueError):
        entries = list(islice(path.absolute().parent.iterdir(), _MOST_BESIDE))
        named = [one.name for one in entries if not holding or (one / holding).is_file()]
        return did_you_mean(path.name, named)
    return ""


def free_name(stem: str, taken: Container[str]) -> str:
    """`stem`, numbered if its lower case is among `taken`, since file systems may ignore case."""
    name, number = stem, 2
    while name.lower() in taken:
        name, number = f"{stem}_{number}", number + 1
    return name
