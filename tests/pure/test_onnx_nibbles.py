"""Weights of four bits in ONNX files (opset 21) are exact; activations and blocks are refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.onnx_models import compare, model_of, prepared_of
from toolchain.errors import UnsupportedError

LIMITS = {TensorProto.INT4: (-8, 8), TensorProto.UINT4: (0, 16)}


def _model(code: int, per_channel: bool) -> onnx.ModelProto:
    """A convolution by weights of this type, between int8 activations."""
    low, high = LIMITS[code]
    rng = np.random.default_rng(code)
    count = 5 if per_channel else 1
    scales = rng.uniform(0.02, 0.2, count).astype(np.float32)
    shape = [count] if per_channel else []
    zeros = [0 if code == TensorProto.INT4 else 7] * count
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xr"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wr"], axis=0),
        helper.make_node("Conv", ["xr", "wr"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "t", "z"], ["yq"]),
        helper.make_node("DequantizeLinear", ["yq", "t", "z"], ["y"]),
    ]
    constants = {"s": np.float32(0.02), "z": np.int8(3), "t": np.float32(0.05)}
    made = model_of(
        nodes, {"x": [1, 3, 6, 6]}, ["y"], constants | {"ws": scales.reshape(shape)}, opset=21
    )
    weights = rng.integers(low, high, 5 * 3 * 9).tolist()
    made.graph.initializer.append(helper.make_tensor("w", code, [5, 3, 3, 3], weights))
    made.graph.initializer.append(helper.make_tensor("wz", code, shape, zeros))
    return made


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("code", LIMITS)
def test_weights_of_four_bits_equal_onnx_runtime_s(code: int, per_channel: bool) -> None:
    rng = np.random.default_rng(1)
    feeds = [{"x": rng.normal(0, 1, (1, 3, 6, 6)).astype(np.float32)} for _ in range(3)]
    found = compare(_model(code, per_channel).SerializeToString(), feeds, optimise=False)
    assert (found.elements, found.largest) == (3 * 5 * 16, 0)


def test_activations_of_four_bits_are_refused() -> None:
    edited = _model(TensorProto.INT4, per_channel=False)
    edited.graph.node[0].input[2] = edited.graph.node[1].input[2] = "wz"
    with pytest.raises(UnsupportedError, match="activations quantised to int4"):
        prepared_of(edited.SerializeToString())


def test_blocks_of_weights_are_refused() -> None:
    """A sum over blocks has several scales."""
    edited = _model(TensorProto.INT4, per_channel=False)
    edited.graph.node[2].attribute.append(helper.make_attribute("block_size", 3))
    edited.graph.node[2].attribute[0].i = 1
    del edited.graph.node[2].input[2]
    scales = np.full((5, 1, 3, 3), 0.1, np.float32)
    next(t for t in edited.graph.initializer if t.name == "ws").CopyFrom(
        numpy_helper.from_array(scales, "ws")
    )
    with pytest.raises(UnsupportedError, match="of which a sum has several scales"):
        prepared_of(edited.SerializeToString())
