"""What callers convert at a model's ends is what QUANTIZE and DEQUANTIZE compute there."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolchain.ir import Boundary, DType, End, Graph, Op, Quantisation, Tensor
from toolchain.ops import spec_of
from toolchain.report.ends import end_from_json, end_json

SCALES = st.floats(2.0**-12, 2.0**4, width=32)
ZERO_POINTS = st.integers(-128, 127)


def int8_tensor(scale: float, zero_point: int, shape: tuple[int, ...] = (2, 40)) -> Tensor:
    return Tensor("end", shape, DType.INT8, Quantisation((float(scale),), (zero_point,)))


def single(kind: str, source: Tensor, target: Tensor) -> tuple[Op, Graph]:
    attributes = spec_of(kind).plain_attributes()
    op = Op(kind, kind, (source.name,), (target.name,), attributes)
    return op, Graph.build("g", [source, target], [op], [source.name], [target.name])


@given(SCALES, ZERO_POINTS, st.integers(0, 2**32 - 1))
def test_a_float_input_is_quantised_as_the_operator_does(
    scale: float, zero_point: int, seed: int
) -> None:
    tensor = int8_tensor(scale, zero_point)
    end = End(tensor, Boundary("end", DType.FLOAT32))
    values = end.random(np.random.default_rng(seed))
    values[0, :8] = (np.arange(8) - 4 + np.float32(0.5)) * np.float32(scale)  # ties
    op, graph = single("quantize", Tensor("real", tensor.shape, DType.FLOAT32), tensor)
    (expected,) = spec_of("quantize").reference(op, graph, [values])
    assert np.array_equal(end.to_graph(values), expected)


@given(SCALES, ZERO_POINTS, st.integers(0, 2**32 - 1))
def test_a_float_output_is_dequantised_as_the_operator_does(
    scale: float, zero_point: int, seed: int
) -> None:
    tensor = int8_tensor(scale, zero_point)
    stored = np.random.default_rng(seed).integers(-128, 128, tensor.shape).astype(np.int8)
    op, graph = single("dequantize", tensor, Tensor("real", tensor.shape, DType.FLOAT32))
    (expected,) = spec_of("dequantize").reference(op, graph, [stored])
    real = End(tensor, Boundary("end", DType.FLOAT32)).to_model(stored)
    assert real.tobytes() == expected.tobytes()


def test_onnx_rounds_halves_to_even() -> None:
    tensor = int8_tensor(1.0, 0, (4,))
    values = np.array([0.5, 1.5, -0.5, -2.5], np.float32)
    even = End(tensor, Boundary("end", DType.FLOAT32, halves_to_even=True))
    away = End(tensor, Boundary("end", DType.FLOAT32))
    assert even.to_graph(values).tolist() == [0, 2, 0, -2]
    assert away.to_graph(values).tolist() == [1, 2, -1, -3]


def test_uint8_and_layout_go_there_and_back() -> None:
    tensor = int8_tensor(0.5, -28, (1, 2, 3, 5))
    boundary = Boundary("end", DType.UINT8, Quantisation((0.5,), (100,)), (0, 2, 3, 1))
    end = End(tensor, boundary)
    assert end.model_shape == (1, 5, 2, 3)
    values = np.arange(30).astype(np.uint8).reshape(end.model_shape)
    stored = end.to_graph(values)
    assert stored.shape == tensor.shape
    assert int(stored[0, 1, 2, 4]) == int(values[0, 4, 1, 2]) - 128
    assert np.array_equal(end.to_model(stored), values)


@pytest.mark.parametrize(
    "boundary",
    [
        None,
        Boundary("end", DType.FLOAT32, halves_to_even=True),
        Boundary("end", DType.UINT8, Quantisation((0.25,), (131,)), (1, 0)),
    ],
)
def test_an_end_survives_its_json(boundary: Boundary | None) -> None:
    end = End(int8_tensor(0.25, 3), boundary)
    read = end_from_json(json.loads(json.dumps(end_json(end))), "plan.json")
    assert read.boundary == end.boundary
    assert (read.tensor.name, read.tensor.shape, read.tensor.dtype) == ("end", (2, 40), DType.INT8)
    assert read.tensor.quantisation == end.tensor.quantisation
