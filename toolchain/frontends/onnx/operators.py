"""ONNX operators grouped by what they do to their values."""

from __future__ import annotations

RENAMING = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
COPYING = frozenset({"Identity", "Dropout"})
BLOCKS = frozenset({"DepthToSpace", "SpaceToDepth"})
STRUCTURAL = RENAMING | COPYING | BLOCKS | {"Transpose", "QuantizeLinear", "DequantizeLinear"}
"""What the front end itself understands."""

KEEPS_VALUES = (
    RENAMING
    | COPYING
    | BLOCKS
    | {"Clip", "Concat", "Gather", "GlobalMaxPool", "MaxPool", "Pad", "Relu", "Resize", "Slice"}
    | {"Expand", "Split", "Tile", "Transpose", "Upsample"}
)
"""Operators whose results are among their inputs: quantising before or after is the same."""

MOVES_INTEGERS = (KEEPS_VALUES - {"Relu", "Clip"}) | {"ArgMax", "ArgMin"}
"""Operators that do to stored integers what they do to the real values."""
