"""Kernels to time that no model has: single operators from a JSON list of shapes.

    [{"kind": "conv2d", "input": [1, 32, 32, 8], "channels": 8, "kernel": [3, 3],
      "stride": [1, 1], "padding": "same"}, ...]

`kind` is conv2d, depthwise_conv2d, fully_connected, add, mul, average_pool2d, max_pool2d or
softmax; `channels` is for conv2d and fully_connected; `kernel`, `stride` (default 1) and `padding`
("same" or "valid", the default) are for convolutions and pools. Weights are pseudo-random.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from toolchain.errors import InputError
from toolchain.files.records import read_json
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import spec_of
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.forms import OpSpec
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.window import UNPADDED, Padding, same_padding

_Q = Quantisation((0.05,), (-3,))
_WINDOWS: Mapping[str, type[Conv2D] | type[DepthwiseConv2D]] = {
    "conv2d": Conv2D,
    "depthwise_conv2d": DepthwiseConv2D,
}
_POOLS = ("average_pool2d", "max_pool2d")
_PAIRS = ("add", "mul")
_KINDS = (*_WINDOWS, *_POOLS, *_PAIRS, "fully_connected", "softmax")


def read_shapes(file: Path) -> tuple[Graph, ...]:
    """One graph of one operator for each entry. Raises InputError naming the invalid entry."""
    entries = read_json(file)
    if not isinstance(entries, list):
        raise InputError(f"{file} is to hold a list of kernels")
    graphs = []
    for number, entry in enumerate(entries):
        try:
            graphs.append(graph_of_shape(entry))
        except (KeyError, TypeError, ValueError, AttributeError, InputError) as error:
            why = f"the field {error} is missing" if isinstance(error, KeyError) else error
            raise InputError(f"{file}: kernel {number}: {why}") from error
    return tuple(graphs)


def _numbers(entry: Mapping[str, Any], name: str, count: int | None = None) -> tuple[int, ...]:
    values = entry[name]
    good = isinstance(values, list) and all(type(v) is int and v > 0 for v in values)
    if not good or (count is not None and len(values) != count):
        raise ValueError(f"{name} is {values!r}, not {count or 'some'} positive numbers")
    return tuple(values)


def _pair(entry: Mapping[str, Any], name: str) -> tuple[int, int]:
    first, second = _numbers(entry, name, 2)
    return first, second


def graph_of_shape(entry: Mapping[str, Any]) -> Graph:
    """A graph of one operator for an entry. Raises ValueError or KeyError where the entry is
    invalid."""
    kind = entry["kind"]
    if kind not in _KINDS:
        raise ValueError(f"there are no shapes of kind {kind!r}, only of {', '.join(_KINDS)}")
    x = Tensor("x", _numbers(entry, "input"), DType.INT8, _Q)
    tensors = [x]
    attributes: Attributes
    if kind in _WINDOWS:
        kernel, stride, padding = _window(entry, x)
        attributes = _WINDOWS[kind](stride=stride, padding=padding)
        depth = x.shape[3]
        channels = int(entry["channels"]) if kind == "conv2d" else depth
        shape = (channels, *kernel, depth) if kind == "conv2d" else (1, *kernel, depth)
        tensors += _weights(shape, channels)
    elif kind == "fully_connected":
        attributes, channels = FullyConnected(), int(entry["channels"])
        tensors += _weights((channels, x.shape[-1]), channels)
    elif kind in _POOLS:
        kernel, stride, padding = _window(entry, x)
        attributes = Pool2D(*kernel, *stride, padding)
    else:
        attributes = spec_of(kind).plain_attributes()
        if kind in _PAIRS:
            tensors.append(Tensor("b", x.shape, DType.INT8, Quantisation((0.04,), (5,))))
    inputs = [tensor.name for tensor in tensors]
    result = Quantisation((1 / 256,), (-128,)) if kind == "softmax" else _Q
    return _finished(spec_of(kind), tensors, inputs, attributes, result)


def _window(
    entry: Mapping[str, Any], x: Tensor
) -> tuple[tuple[int, int], tuple[int, int], Padding]:
    if len(x.shape) != 4:
        raise ValueError(f"input is {list(x.shape)}, not batch, height, width, channels")
    kernel = _pair(entry, "kernel")
    stride = _pair(entry, "stride") if "stride" in entry else (1, 1)
    named = entry.get("padding", "valid")
    if named not in ("same", "valid"):
        raise ValueError(f"padding is {named!r}, not 'same' or 'valid'")
    size = (x.shape[1], x.shape[2])
    padding = same_padding(size, kernel, stride, (1, 1)) if named == "same" else UNPADDED
    return kernel, stride, padding


def _weights(shape: tuple[int, ...], channels: int) -> list[Tensor]:
    rng = np.random.default_rng(1)
    axis = 3 if shape[0] == 1 and len(shape) == 4 and shape[3] == channels else 0
    per_channel = len(shape) == 4
    count = channels if per_channel else 1
    w_q = Quantisation((0.01,) * count, (0,) * count, axis if count > 1 else None)
    scale = float(np.float32(0.05) * np.float32(0.01))
    b_q = Quantisation((scale,) * count, (0,) * count, 0 if count > 1 else None)
    weights = rng.integers(-127, 128, shape).astype(np.int8)
    bias = rng.integers(-1000, 1000, channels).astype(np.int32)
    return [
        Tensor("weights", shape, DType.INT8, w_q, weights),
        Tensor("bias", (channels,), DType.INT32, b_q, bias),
    ]


def _finished(
    spec: OpSpec,
    tensors: list[Tensor],
    inputs: list[str],
    attributes: Attributes,
    quantisation: Quantisation,
) -> Graph:
    ends = [tensor.name for tensor in tensors if not tensor.is_constant]
    op = Op(spec.kind, spec.kind, tuple(inputs), ("y",), attributes)
    unknown = Tensor("y", (1,), DType.INT8, quantisation)
    (result,) = spec.infer(op, Graph.build("k", [*tensors, unknown], [op], ends, ["y"]))
    if any(dim < 1 for dim in result.shape):
        raise ValueError(f"the result would have the shape {list(result.shape)}")
    y = Tensor("y", result.shape, result.dtype, quantisation)
    return Graph.build("k", [*tensors, y], [op], ends, ["y"])
