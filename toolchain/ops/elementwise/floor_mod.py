"""Remainders of a division that rounds down. TFLite FLOOR_MOD: float32, int32, int64; ONNX Mod."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.elementwise.functions import BINARY
from toolchain.ops.elementwise.kinds import plain_spec
from toolchain.ops.readers.onnx_elementwise import emit_stored


def _read_onnx(node: kit.OnnxNode) -> None:
    """Operands are plain integers, divisors constants other than 0."""
    if not node.plain or node.attribute("fmod", 0):
        raise node.unsupported("its remainders have the sign of the dividend", "export fmod=0")
    if not node.constant(1).data.all():
        raise node.unsupported("it divides integers by 0")
    emit_stored(node, "floor_mod", kit.Attributes(), 2, node.plain_dtype(0))


_ROW = BINARY["floor_mod"]
SPEC = plain_spec(_ROW, kit.OnnxBinding((_ROW.onnx,), _read_onnx, plain=_read_onnx))
