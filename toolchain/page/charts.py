"""Vega-Lite, which draws the charts, as the text of one script.

The package `vl-convert-python` carries Vega, Vega-Lite and vega-embed, so nothing is fetched when a
page is made or opened. To make one script of them takes seconds; it is kept in the user's cache.
"""

from __future__ import annotations

import contextlib
from importlib import metadata
from typing import TYPE_CHECKING

from toolchain.errors import ThimbleError
from toolchain.files import write_file
from toolchain.kernels.cmsis_nn import cache_folder
from toolchain.packages import REPORT, lazy

if TYPE_CHECKING:
    import vl_convert
else:
    vl_convert = lazy("vl_convert", REPORT)

PACKAGE = "vl-convert-python"


def version() -> str:
    """The version of the package. Raises MissingToolError if it is not installed."""
    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError as error:
        raise REPORT.lacks(PACKAGE) from error


def script() -> str:
    """JavaScript that defines `vegaEmbed`. Raises MissingToolError."""
    kept = cache_folder() / f"vega-{version()}.js"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        text = kept.read_text(encoding="utf-8")
        if text.rstrip().endswith(";"):
            return text
    text = str(vl_convert.javascript_bundle())
    with contextlib.suppress(OSError, ThimbleError):  # a cache that cannot be written is none
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_file(kept, text)
    return text
