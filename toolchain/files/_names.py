"""Names of files made from names of models."""

from __future__ import annotations

import re
from collections.abc import Container

_LONGEST = 120


def file_stem(text: str) -> str:
    """`text` as the beginning of a file's name: no separators, not hidden, not too long."""
    safe = re.sub(r"[^\w.+=@-]", "_", text, flags=re.ASCII).lstrip(".-")
    return safe[:_LONGEST] or "model"


def free_name(stem: str, taken: Container[str]) -> str:
    """`stem`, numbered if its lower case is among `taken`, since file systems may ignore case."""
    name, number = stem, 2
    while name.lower() in taken:
        name, number = f"{stem}_{number}", number + 1
    return name
