"""`thimble_convolve_1x1_s8`, and `thimble_convolve_1x1_s4` of weights of four bits: windows of one
pixel, whose channels are whole words.

All pixels are one run; of strided views, a loop around the call goes line by line.
"""

from __future__ import annotations

from types import MappingProxyType

from toolchain.ops import kit
from toolchain.ops.convolution import parts
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import blocks

FUNCTIONS = MappingProxyType({8: "thimble_convolve_1x1_s8", 4: "thimble_convolve_1x1_s4"})


def kernel(op: kit.Operator[Convolution], window: kit.Window, width: blocks.Width) -> kit.Kernel:
    """The kernel of an operator without groups, strides and padding."""
    x, y = op.x.shape, op.y.shape

    def call(at_once: int, lines: tuple[int, int]) -> kit.Call:
        lined = any(lines)
        steps = [
            (("y", line or shape[2] * shape[3]),) for line, shape in zip(lines, (x, y), strict=True)
        ]
        arguments: dict[str, kit.Argument] = {
            "pixels": y[2] if lined else y[0] * y[1] * y[2],
            "depth": x[3],
            "channels": y[3],
            "at_once": at_once,
            "requant": parts.requant(op),
            "input": kit.Input(0, steps=steps[0] if lined else ()),
            "parameters": kit.Packed("parameters"),
            "scratch": kit.Scratch(),
            "output": kit.Output(0, steps=steps[1] if lined else ()),
        }
        loops = (kit.Loop("y", y[1]),) if lined else ()
        return kit.Call(FUNCTIONS[width.bits], arguments, loops)

    def gathered() -> blocks.Gathered:
        pixels, words = y[0] * y[1] * y[2], -(-x[3] // 4)
        return blocks.Gathered({"call": 1.0, "gathered words": pixels * words}, 1, pixels, words)

    return blocks.blocked_kernel(
        op,
        FUNCTIONS,
        window,
        width,
        calls=call,
        scratch_bytes=lambda at_once: 2 * at_once * x[3],
        gathered=gathered,
        extents=lambda touched: _extents(touched, width),
        batches_join=True,
    )


def _extents(touched: kit.Touched, width: blocks.Width) -> kit.Extents:
    call = touched.call
    pixels, depth, channels = call["pixels"], call["depth"], call["channels"]
    constants = {"parameters": width.parameter_bytes(channels, depth)}
    scratch = 2 * call["at_once"] * depth
    read, written = kit.whole(pixels * depth), kit.whole(pixels * channels)
    for loop in call.loops:
        read = kit.Extent(0, read.end, _step(call, "input"), loop.count)
        written = kit.Extent(0, written.end, _step(call, "output"), loop.count)
    return kit.Extents({0: read}, {0: written}, constants, scratch)


def _step(call: kit.Call, name: str) -> int:
    """How far the only loop around a call moves a pointer on."""
    pointer = call.arguments[name]
    assert isinstance(pointer, kit.Input | kit.Output)
    ((_, elements),) = pointer.steps
    return elements
