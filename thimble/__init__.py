"""Thimble under its own name: the public names of `toolchain`, loaded when they are used.

Raises ImportError, with the way on, where `toolchain` is a package of somebody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import toolchain

if getattr(getattr(toolchain, "version", None), "DISTRIBUTION", None) != "thimble-nn":
    raise ImportError(
        f"Thimble's package `toolchain` is hidden by another of that name, in "
        f"{', '.join(toolchain.__path__)}: install thimble-nn into a virtual environment of its "
        "own, or take that folder off PYTHONPATH; where both were installed into one environment, "
        "uninstall both and install one again"
    )

from toolchain import __all__ as __all__
from toolchain import __version__ as __version__

if TYPE_CHECKING:
    from toolchain import *  # noqa: F403
else:
    from toolchain import __dir__ as __dir__
    from toolchain import __getattr__ as __getattr__
