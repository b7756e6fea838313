"""Operators that are written as several others, in float32 and between quantised tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import helper

from tests.support.onnx_models import compare, model_of, prepared_of, random_feeds, run, surrounded
from toolchain.errors import InputError
from toolchain.frontends.onnx.reader import read
from toolchain.ir import DType

RNG = np.random.default_rng(5)
Constants = Mapping[str, NDArray[np.generic]]


def node(operator: str, inputs: str, output: str = "y", **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), [output], **attributes)


def reals(*shape: int) -> NDArray[np.float32]:
    return (0.5 * RNG.standard_normal(shape)).astype(np.float32)


IMAGE = (2, 4, 5, 6)
CASES: dict[str, tuple[Sequence[int], onnx.NodeProto, Constants, int]] = {
    "sum": (IMAGE, node("Sum", "x c d"), {"c": reals(4, 1, 1), "d": reals(6)}, 17),
    "mean": (IMAGE, node("Mean", "x c d"), {"c": reals(4, 1, 1), "d": reals(6)}, 17),
    "ReduceL1": (IMAGE, node("ReduceL1", "x", axes=[1, 2], keepdims=0), {}, 13),
    "ReduceL2": (IMAGE, node("ReduceL2", "x", axes=[1]), {}, 17),
    "ReduceL2 of 18": (IMAGE, node("ReduceL2", "x a", keepdims=0), {"a": np.array([-1])}, 18),
    "ReduceSumSquare": (IMAGE, node("ReduceSumSquare", "x", axes=[2, 3]), {}, 11),
    "ReduceLogSumExp": (IMAGE, node("ReduceLogSumExp", "x", axes=[1], keepdims=0), {}, 17),
    "LpNormalization": (IMAGE, node("LpNormalization", "x", axis=1), {}, 17),
    "LpNormalization 1": (IMAGE, node("LpNormalization", "x", axis=3, p=1), {}, 17),
    "LogSoftmax": (IMAGE, node("LogSoftmax", "x", axis=1), {}, 13),
    "LogSoftmax of 11": (IMAGE, node("LogSoftmax", "x", axis=2), {}, 11),
    "Softmax of 11": (IMAGE, node("Softmax", "x", axis=2), {}, 11),
    "Einsum": ((2, 3, 4), node("Einsum", "x c", equation="bij,kj->bik"), {"c": reals(5, 4)}, 17),
    "Einsum of heads": (
        (2, 3, 4),
        node("Einsum", "x c", equation="abc,cde->abde"),
        {"c": reals(4, 2, 5)},
        17,
    ),
    "Einsum of itself": ((2, 3, 4), node("Einsum", "x x", equation="bqd,bkd->bqk"), {}, 17),
    "Einsum with dots": (
        (2, 3, 4, 5),
        node("Einsum", "x c", equation="...ij,...jk"),
        {"c": reals(2, 3, 5, 2)},
        17,
    ),
    "Einsum that sums": ((2, 3, 4), node("Einsum", "x", equation="bij->jb"), {}, 17),
    "Einsum of three": (
        (3, 4),
        node("Einsum", "x c d", equation="ij,jk,k->ik"),
        {"c": reals(4, 5), "d": reals(5)},
        17,
    ),
    "InstanceNormalization": (
        IMAGE,
        node("InstanceNormalization", "x c d"),
        {"c": reals(4), "d": reals(4)},
        17,
    ),
    "GroupNormalization": (
        IMAGE,
        node("GroupNormalization", "x c d", num_groups=2),
        {"c": reals(4), "d": reals(4)},
        21,
    ),
    "MeanVarianceNormalization": (IMAGE, node("MeanVarianceNormalization", "x"), {}, 17),
    "RMSNormalization": ((2, 3, 8), node("RMSNormalization", "x c"), {"c": reals(8)}, 23),
    "CumSum": (IMAGE, node("CumSum", "x a", reverse=1), {"a": np.array(1)}, 17),
    "CumSum of others": (IMAGE, node("CumSum", "x a", exclusive=1), {"a": np.array(-1)}, 17),
    "Where": (IMAGE, node("Where", "a x c"), {"a": reals(5, 6) > 0, "c": reals(4, 1, 1)}, 17),
    "Where of a mask": (
        IMAGE,
        node("Where", "a c x"),
        {"a": reals(6) > 0, "c": np.float32(-3)},
        17,
    ),
    "a cube": (IMAGE, node("Pow", "x a"), {"a": np.float32(3)}, 17),
    "a fourth power's inverse": (IMAGE, node("Pow", "x a"), {"a": np.float32(-4)}, 17),
    "Elu": (IMAGE, node("Elu", "x", alpha=0.5), {}, 17),
    "Celu": (IMAGE, node("Celu", "x", alpha=0.7), {}, 17),
    "Selu": (IMAGE, node("Selu", "x"), {}, 17),
    "Selu of other factors": (IMAGE, node("Selu", "x", alpha=1.2, gamma=0.9), {}, 17),
    "Mish": (IMAGE, node("Mish", "x"), {}, 18),
    "Softplus": (IMAGE, node("Softplus", "x"), {}, 17),
    "Softsign": (IMAGE, node("Softsign", "x"), {}, 17),
}


def model(case: str) -> onnx.ModelProto:
    shape, operator, constants, opset = CASES[case]
    return model_of([operator], {"x": shape}, ["y"], constants, opset=opset)


@pytest.mark.parametrize("case", CASES)
def test_in_float(case: str) -> None:
    data = model(case).SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    prepared = prepared_of(data)
    for feed in random_feeds(model(case), 3, 1):
        (want,) = session.run(None, feed)
        (got,) = run(prepared, feed)
        assert isinstance(want, np.ndarray) and got.shape == want.shape
        assert np.abs(got - want).max() <= 2.0**-17 * np.abs(want).max()


@pytest.mark.parametrize("case", CASES)
def test_between_quantised_tensors(case: str) -> None:
    """Computed in float32 as ONNX Runtime does; a half of a step may go either way."""
    data = surrounded(model(case))
    found = compare(data, random_feeds(model(case), 4, 2), optimise=False)
    assert found.largest <= 1 and found.differing <= 0.002 * found.elements + 1
    if case == "Einsum of itself":  # a product of integers
        graph = found.prepared.graph
        (product,) = (op for op in graph.ops if op.kind == "batch_matmul")
        assert graph.output(product).dtype is DType.INT8


@pytest.mark.parametrize("operator", ["Add", "Where"])
def test_a_mask_of_infinities(operator: str) -> None:
    """As PyTorch's exporters write that of an attention."""
    hidden = np.triu(np.ones((5, 5), bool), 1)
    constants: dict[str, NDArray[np.generic]] = {"low": np.float32(-np.inf), "m": ~hidden}
    masked = node("Where", "m x low", "s")
    if operator == "Add":
        constants = {"m": np.where(hidden, -np.inf, 0).astype(np.float32)}
        masked = node("Add", "x m", "s")
    made = model_of([masked, node("Softmax", "s")], {"x": (2, 5, 5)}, ["y"], constants)
    data = made.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (feed,) = random_feeds(made, 1, 8)
    (got,), (want,) = run(prepared_of(data), feed), session.run(None, feed)
    assert np.abs(got - want).max() <= 2.0**-20
    assert not np.asarray(got)[:, hidden].any()


MALFORMED: Mapping[str, tuple[dict[str, NDArray[np.generic]], dict[str, object]]] = {
    "OneHot": ({"depth": np.array(3), "values": np.array(1.0, np.float32)}, {}),
    "ScatterElements": (
        {"i": np.zeros((1, 1), np.int64), "u": np.ones((1, 1), np.float32)},
        {"axis": 1},
    ),
    "ScatterND": ({"i": np.zeros((), np.int64), "u": np.ones(4, np.float32)}, {}),
    "GatherND": ({"i": np.zeros((), np.int64)}, {}),
}
"""By operator, constant operands that do not fit an x of [2, 3, 4], and attributes."""


@pytest.mark.parametrize("operator", list(MALFORMED))
def test_operands_that_contradict_each_other_are_refused(operator: str) -> None:
    """As the file is damaged: shape inference comes later, or lets them pass."""
    constants, attributes = MALFORMED[operator]
    inputs = " ".join(["x", *constants])
    one = model_of([node(operator, inputs, **attributes)], {"x": (2, 3, 4)}, ["y"], constants)
    with pytest.raises(InputError):
        read(one.SerializeToString(), Path("one.onnx"))
