"""Channels to blocks of pixels, as sub-pixel upsampling ends. TFLite DEPTH_TO_SPACE.

ONNX DepthToSpace is read as reshapes and a transpose.
"""

from __future__ import annotations

from toolchain.ops.movement.depth_blocks import blocks_spec

SPEC = blocks_spec("depth_to_space", to_space=True)
