"""The structs that CMSIS-NN's functions of several families take (`arm_nn_types.h`)."""

from __future__ import annotations

from toolchain.ops.kernel import NULL, Argument, Packed, Scratch, Struct


def dims(n: int = 1, h: int = 1, w: int = 1, c: int = 1) -> Struct:
    """The dimensions of a tensor, by CMSIS-NN's names."""
    return Struct("cmsis_nn_dims", {"n": n, "h": h, "w": w, "c": c})


def tile(height: int, width: int) -> Struct:
    """A stride, a padding or a dilation."""
    return Struct("cmsis_nn_tile", {"h": height, "w": width})


def context(size_bytes: int, at_bytes: int = 0, kept: str = "") -> Struct:
    """So many bytes of scratch, or the constant `kept`; NULL where nothing is needed."""
    buffer: Argument = Scratch(at_bytes) if size_bytes else NULL
    if kept:
        buffer = Packed(kept, writable=True)
    return Struct("cmsis_nn_context", {"buf": buffer, "size": size_bytes})


def limits(low: int, high: int) -> Struct:
    """The range that results are clamped to."""
    return Struct("cmsis_nn_activation", {"min": low, "max": high})


def factor(multiplier: int, shift: int) -> Struct:
    """One factor of all sums: Q0.31 and a left shift."""
    members: dict[str, Argument] = {"multiplier": multiplier, "shift": shift}
    return Struct("cmsis_nn_per_tensor_quant_params", members)
