"""Thimble under its own name: the public names of `toolchain`, loaded when they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolchain import __all__ as __all__
from toolchain import __version__ as __version__

if TYPE_CHECKING:
    from toolchain import *  # noqa: F403
else:
    from toolchain import __dir__ as __dir__
    from toolchain import __getattr__ as __getattr__
