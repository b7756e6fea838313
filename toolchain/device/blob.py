"""Weights that lie outside of the code, in a program that holds them all the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from toolchain.files.templates import rendered
from toolchain.ir import Sources


def write_blob(sources: Sources, folder: Path) -> Path | None:
    """Write `<name>_weights.bin`, and a C file that holds it; the path of this one.

    None where the weights are in the code.
    """
    if sources.weights is None:
        return None
    data = sources.weights.data
    (folder / sources.weights_file).write_bytes(data)
    file = folder / f"{sources.name}_blob.c"
    words = np.frombuffer(data, "<u8").tolist()
    text = rendered("firmware/weights_blob.c.j2", name=sources.name, words=words)
    file.write_text(text, encoding="utf-8")
    return file
