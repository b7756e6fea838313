"""ONNX operators grouped by what they do to their values."""

from __future__ import annotations

RENAMING = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
COPYING = frozenset({"Identity", "Dropout"})
BLOCKS = frozenset({"DepthToSpace", "SpaceToDepth"})
STRUCTURAL = (
    RENAMING | COPYING | BLOCKS | {"Cast", "Transpose", "QuantizeLinear", "DequantizeLinear"}
)
"""Operators that the front end itself handles."""

KEEPS_VALUES = (
    RENAMING
    | COPYING
    | BLOCKS
    | {"Clip", "Concat", "Gather", "GlobalMaxPool", "MaxPool", "Pad", "Relu", "Resize", "Slice"}
    | {"Expand", "Split", "Tile", "Transpose"}
)
"""Operators whose results are among their inputs, so that quantising before or after is the
same."""

TAKES_PARTS = frozenset({"Gather", "Slice", "Split"})
"""Those whose results may lack some of the values."""

PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})

MOVES_INTEGERS = (KEEPS_VALUES - {"Relu", "Clip"}) | {"ArgMax", "ArgMin"}
"""Operators that treat stored integers exactly as they treat real values."""
ENLARGING = frozenset(
    {"ConstantOfShape", "Expand", "Pad", "Range", "Resize", "Tile", "OneHot", "EyeLike"}
)
"""Operators whose outputs may be of any size, however small their inputs are."""
