"""Maximum of two int16 tensors, broadcasting: see `_extremum`."""

from __future__ import annotations

import numpy as np

from toolchain.ops.elementwise.extremum import extremum_spec

SPEC = extremum_spec("maximum_s16", np.maximum)
