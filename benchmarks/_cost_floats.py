"""The shapes of float32 operators over which `benchmarks.cost` measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from toolchain.ir import Attributes, DType, Graph, Op, State, Tensor
from toolchain.ops import spec_of
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.convolution.conv3d import Conv3D
from toolchain.ops.normalisation.softmax_s8 import Softmax
from toolchain.ops.recurrent.recurrent_layer import Cell, Recurrent
from toolchain.ops.recurrent.rnn import Bend, Rnn
from toolchain.ops.signal.rfft2d import Kept, Rfft2d

Rng = np.random.Generator


def _graph(
    kind: str, attributes: Attributes, shape: tuple[int, ...], weights: Mapping[str, Tensor]
) -> Graph:
    """One operator alone, of an input `x` of this shape and constants."""
    x = Tensor("x", shape, DType.FLOAT32)
    given = [x, *weights.values()]
    op = Op(kind, kind, tuple(tensor.name for tensor in given), ("y",), attributes)
    found = spec_of(kind).infer(op, Graph.build("k", given, [op], ["x"], []))
    outputs = tuple(f"y{number}" for number in range(len(found)))
    made = [Tensor(n, t.shape, t.dtype) for n, t in zip(outputs, found, strict=True)]
    whole = Op(kind, kind, op.inputs, outputs, attributes)
    return Graph.build("k", [*given, *made], [whole], ["x"], outputs)


def _constants(rng: Rng, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    return {
        name: Tensor(name, shape, DType.FLOAT32, None, rng.normal(0, 0.3, shape).astype(np.float32))
        for name, shape in shapes.items()
    }


def conv3d(rng: Rng) -> Graph:
    """Volumes, sometimes padded, of up to 16 channels."""
    size = tuple(int(n) for n in rng.integers(3, 9, 3))
    kernel = tuple(int(n) for n in rng.integers(1, 4, 3))
    depth, channels = (int(n) for n in rng.integers(1, 17, 2))
    before = after = (1, 1, 1) if rng.random() < 0.5 else (0, 0, 0)
    stride = (1, 1, 1) if rng.random() < 0.7 else (2, 2, 2)
    attributes = Conv3D(stride, (1, 1, 1), before, after, Activation.RELU)
    shapes = {"w": (*kernel, depth, channels), "b": (channels,)}
    return _graph("conv3d", attributes, (1, *size, depth), _constants(rng, shapes))


def rfft2d(rng: Rng) -> Graph:
    """Frames of sound, mostly; some images."""
    kept = list(Kept)[int(rng.integers(3))]
    if rng.random() < 0.75:
        width = 2 ** int(rng.integers(2, 11))
        given = width if rng.random() < 0.5 else int(rng.integers(width // 2, width + 1))
        slices = int(rng.integers(1, max(2048 // width, 1) + 1))
        return _graph("rfft2d", Rfft2d(1, width, (kept,)), (1, slices, 1, given), {})
    height, width = (2 ** int(n) for n in rng.integers(2, 6, 2))
    return _graph("rfft2d", Rfft2d(height, width, (kept,)), (1, height, width), {})


def log_softmax(rng: Rng) -> Graph:
    shape = (int(rng.integers(1, 33)), int(rng.integers(2, 65)))
    return _graph("log_softmax", Softmax(), shape, {})


def _sequence(rng: Rng) -> tuple[int, int, int, int]:
    """Steps, batches, inputs, units."""
    steps, inputs, units = (int(n) for n in rng.integers(1, (12, 32, 24)))
    return steps, int(rng.integers(1, 3)), inputs, units


def recurrent_layer(rng: Rng) -> Graph:
    steps, batches, inputs, units = _sequence(rng)
    cell = list(Cell)[int(rng.integers(3))]
    every_step, variant = (bool(rng.random() < 0.5) for _ in range(2))
    own = Recurrent(cell, False, every_step, variant and cell is not Cell.LSTM)
    shapes = {
        "w": (cell.gates * units, inputs),
        "r": (cell.gates * units, units),
        "b": (cell.biases * units,),
    }
    return _graph("recurrent_layer", own, (steps, batches, inputs), _constants(rng, shapes))


def rnn(rng: Rng) -> Graph:
    steps, batches, inputs, units = _sequence(rng)
    bend = Bend.TANH if rng.random() < 0.5 else Bend.RELU
    shapes = {"weights": (units, inputs), "recurrent": (units, units), "bias": (units,)}
    state = (batches, units)
    tensors = [
        Tensor("x", (batches, steps, inputs), DType.FLOAT32),
        *_constants(rng, shapes).values(),
        *(Tensor(name, state, DType.FLOAT32) for name in ("hidden", "hidden_next")),
        Tensor("y", (batches, steps, units), DType.FLOAT32),
    ]
    names = ("x", *shapes, "hidden")
    op = Op("rnn", "rnn", names, ("y", "hidden_next"), Rnn(bend=bend))
    kept = State("hidden", "hidden_next", np.zeros(state, np.float32))
    return Graph.build("k", tensors, [op], ["x"], ["y"], [kept])


FLOATS: Mapping[str, tuple[Callable[[Rng], Graph], int]] = MappingProxyType(
    {
        "conv3d": (conv3d, 48),
        "rfft2d": (rfft2d, 64),
        "log_softmax.float32": (log_softmax, 24),
        "recurrent_layer": (recurrent_layer, 96),
        "rnn": (rnn, 32),
    }
)
"""As `GRID`; the names are those of forms, whose samples they replace."""
