"""Maximum of two int8 tensors, broadcasting: see `_extremum`."""

from __future__ import annotations

import numpy as np

from toolchain.ops.elementwise.extremum import extremum_spec

SPEC = extremum_spec("maximum", np.maximum)
