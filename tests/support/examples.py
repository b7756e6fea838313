"""The digits model in an export's example, with an input that tells kernels apart.

The example's own pattern is far from any digit: all scores but one are 0, whatever the last bits of
the layers before. With this one the ten scores have nine values, the largest -36.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

GRADED = ((np.arange(64) * 33) % 64 - 128).astype(np.int8).reshape(1, 8, 8, 1)
_EXAMPLES, _OURS = "(i * 7u + 3u) % 128u", "(int)(i * 33u % 64u) - 128"


def graded(example: Path) -> None:
    """Have an example's C file write GRADED to the inputs of int8."""
    text = example.read_text()
    own = f"(int8_t)({_EXAMPLES})"
    assert own in text
    example.write_text(text.replace(own, f"(int8_t)({_OURS})"))
