"""Blocks of pixels to channels. TFLite SPACE_TO_DEPTH.

ONNX SpaceToDepth is read as reshapes and a transpose.
"""

from __future__ import annotations

from toolchain.ops.movement.depth_blocks import blocks_spec

SPEC = blocks_spec("space_to_depth", to_space=False)
