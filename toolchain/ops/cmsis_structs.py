"""The structs that CMSIS-NN's functions of several families take (`arm_nn_types.h`), and what these
say of a call.
"""

from __future__ import annotations

from toolchain.ops.kernel import NULL, Argument, Call, Packed, Scratch, Struct
from toolchain.ops.window import window_reach


def dims(n: int = 1, h: int = 1, w: int = 1, c: int = 1) -> Struct:
    """The dimensions of a tensor, by CMSIS-NN's names."""
    return Struct("cmsis_nn_dims", {"n": n, "h": h, "w": w, "c": c})


def dims_of(call: Call, name: str) -> tuple[int, ...]:
    """The dimensions of that name [n, h, w, c] among a call's arguments."""
    return tuple(call[f"{name}_dims.{axis}"] for axis in "nhwc")


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


def reach(call: Call, params: str) -> int:
    """The largest coordinate that a walk over the image computes, by the struct `params`."""
    return window_reach(
        (
            call[f"output_dims.{axis}"],
            call[f"{params}.stride.{axis}"],
            call[f"filter_dims.{axis}"],
            call.get(f"{params}.dilation.{axis}", 1),
            call[f"{params}.padding.{axis}"],
        )
        for axis in "hw"
    )
