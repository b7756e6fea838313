"""The header on the order of elements, where the model file has another: NCHW of ONNX."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.support.graphs import dense_chain
from tests.support.host import plan_of
from toolchain.boards import HOST
from toolchain.codegen import generate
from toolchain.codegen.header import Accessor
from toolchain.ir import Boundary, DType, Tensor
from toolchain.ir.boundary import End
from toolchain.kernels import cmsis_nn


def accessor(shape: tuple[int, ...], permutation: tuple[int, ...]) -> Accessor:
    end = End(Tensor("x", shape, DType.INT8), Boundary("x", DType.INT8, permutation=permutation))
    return Accessor("input", "x", end, "arena", "", "", 0, 0)


@pytest.mark.parametrize(
    ("shape", "permutation", "layout"),
    [
        ((2, 3, 4, 5), (0, 2, 3, 1), "NCHW, here NHWC"),
        ((1, 6, 7), (0, 2, 1), "NCW, here NWC"),
        ((1, 2, 3, 4, 5), (0, 2, 3, 4, 1), "NCDHW, here NDHWC"),
        ((4, 2, 3), (2, 0, 1), "its axes 2, 0, 1 are the axes here in their order"),
    ],
)
def test_places_are_where_inputs_are_put(
    shape: tuple[int, ...], permutation: tuple[int, ...], layout: str
) -> None:
    one = accessor(shape, permutation)
    assert one.layout == layout
    model_shape = one.end.model_shape
    values = np.arange(np.prod(model_shape)).reshape(model_shape)
    ours = one.end.to_graph(values).ravel()
    indices, number = one.places
    names = re.findall(r"\[(\w+)\]", indices)
    for at in product(*map(range, model_shape)):
        assert ours[eval(number, dict(zip(names, at, strict=True)))] == values[at]


def test_the_header_says_so_where_orders_differ() -> None:
    plan = plan_of(dense_chain("net", (3, 2)))
    turned = replace(plan, boundaries=(Boundary("x", DType.FLOAT32, permutation=(1, 0)),))
    said = "The model's own is float32 [3x1]: its axes 1, 0 are the axes here in their order."
    texts = [generate(p, HOST, cmsis_nn.find()).files["net.h"] for p in (plan, turned)]
    assert [said in text for text in texts] == [False, True]
    assert "Its element [i0][i1] is element i1 * 3 + i0 here." in texts[1]
