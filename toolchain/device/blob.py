"""Weights that lie outside of the code, in a program that holds them all the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from toolchain.ir import Sources
from toolchain.packages import lazy
from toolchain.resources import TEMPLATES

if TYPE_CHECKING:
    import jinja2
else:
    jinja2 = lazy("jinja2")


def write_blob(sources: Sources, folder: Path) -> Path | None:
    """Write `<name>_weights.bin`, and a C file that holds it; the path of this one.

    None where the weights are in the code.
    """
    if sources.weights is None:
        return None
    data = sources.weights.data
    (folder / sources.weights_file).write_bytes(data)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES / "firmware"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    file = folder / f"{sources.name}_blob.c"
    words = np.frombuffer(data, "<u8").tolist()
    text = environment.get_template("weights_blob.c.j2").render(name=sources.name, words=words)
    file.write_text(text, encoding="utf-8")
    return file
