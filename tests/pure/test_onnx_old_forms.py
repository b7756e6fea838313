"""Operators in the forms of old opsets, against ONNX Runtime and onnx's own version converter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import helper, version_converter

from tests.support.onnx_models import model_of, prepared_of, run
from toolchain.errors import InputError

RNG = np.random.default_rng(22)
Constants = Mapping[str, NDArray[np.generic]]


def node(operator: str, inputs: str, outputs: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def reals(*shape: int) -> NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


NORM = {"s": reals(3), "o": reals(3), "m": reals(3), "v": np.abs(reals(3)) + np.float32(0.1)}
TWICE = {"s": np.array([1, 1, 2, 3], np.float32)}
CASES: dict[str, tuple[int, Sequence[onnx.NodeProto], Constants]] = {
    "slice": (9, [node("Slice", "x", "y", starts=[1, 2], ends=[3, -1], axes=[1, 3])], {}),
    "slice of all": (1, [node("Slice", "x", "y", starts=[0, 1, 2], ends=[1, 3, 99])], {}),
    "clip": (6, [node("Clip", "x", "y", min=-0.3, max=0.5)], {}),
    "clip above": (10, [node("Clip", "x", "y", max=0.5)], {}),
    "pad": (10, [node("Pad", "x", "y", pads=[0, 0, 1, 1, 0, 0, 2, 0], value=0.5)], {}),
    "reflect": (
        2,
        [node("Pad", "x", "y", mode="reflect", pads=[0, 0, 1, 1, 0, 0, 2, 0])],
        {},
    ),
    "squeeze": (
        11,
        [
            node("ReduceSum", "x", "a", axes=[2], keepdims=1),
            node("Squeeze", "a", "b", axes=[2]),
            node("Unsqueeze", "b", "y", axes=[0, 3]),
        ],
        {},
    ),
    "split": (
        11,
        [node("Split", "x", "a b", axis=1, split=[1, 2]), node("Concat", "b a", "y", axis=1)],
        {},
    ),
    "equal split": (2, [node("Split", "x", "a b c", axis=1), node("Sum", "a b c", "y")], {}),
    "upsample": (9, [node("Upsample", "x s", "y", mode="nearest")], TWICE),
    "bilinear": (7, [node("Upsample", "x", "y", mode="linear", scales=[1.0, 1.0, 2.0, 2.0])], {}),
    "resize": (
        10,
        [node("Resize", "x s", "y", mode="nearest")],
        {"s": np.array([1, 1, 2, 2.5], np.float32)},
    ),
    "resize to less": (
        10,
        [node("Resize", "x s", "y", mode="nearest")],
        {"s": np.array([1, 1, 0.6, 0.6], np.float32)},
    ),
    "dropout": (10, [node("Dropout", "x", "a m", ratio=0.3), node("Relu", "a", "y")], {}),
    "norm": (8, [node("BatchNormalization", "x s o m v", "y", spatial=1, momentum=0.8)], NORM),
    "softmax": (11, [node("Flatten", "x", "a"), node("Softmax", "a", "y")], {}),
    "cast": (5, [node("Cast", "n", "f", to="FLOAT"), node("Mul", "x f", "y")], {"n": np.int64(3)}),
    "reshape": (4, [node("Reshape", "x", "y", shape=[0, -1])], {}),
    "concat": (3, [node("Concat", "x x", "y")], {}),
    "add from axis 1": (6, [node("Add", "x s", "y", broadcast=1, axis=1)], {"s": reals(3)}),
    "mul from axis 2": (6, [node("Mul", "x s", "y", broadcast=1, axis=2)], {"s": reals(8, 8)}),
    "div by a number": (6, [node("Div", "x s", "y", broadcast=1)], {"s": np.float32([3])}),
    "prelu": (6, [node("PRelu", "x s", "y")], {"s": reals(3)}),
    "gemm": (
        6,
        [node("Flatten", "x", "a"), node("Gemm", "a w b", "y", broadcast=1, transB=1)],
        {"w": reals(4, 192), "b": reals(4)},
    ),
}
BY_HAND: dict[str, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = {
    "add from axis 1": lambda x: x + CASES["add from axis 1"][2]["s"].reshape(3, 1, 1),
    "cast": lambda x: x * np.float32(3),
    "prelu": lambda x: np.where(x < 0, x * CASES["prelu"][2]["s"].reshape(3, 1, 1), x),
}
"""What the version converter gets wrong (it leaves the operand's axes as they are), or cannot."""


def expected(case: str, model: onnx.ModelProto, x: NDArray[np.float32]) -> NDArray[np.generic]:
    """By ONNX Runtime; where it does not run the opset (below 7), converted first."""
    if case in BY_HAND:
        return BY_HAND[case](x)
    if model.opset_import[0].version < 7:
        model = version_converter.convert_version(model, 13)
    data = model.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"x": x})
    assert isinstance(found, np.ndarray)
    return found


@pytest.mark.parametrize("case", CASES)
def test_old_forms(case: str) -> None:
    opset, nodes, constants = CASES[case]
    model = model_of(nodes, {"x": (1, 3, 8, 8)}, ["y"], constants, opset=opset)
    del model.opset_import[1:]
    x = reals(1, 3, 8, 8)
    (got,) = run(prepared_of(model.SerializeToString()), {"x": x})
    want = expected(case, model, x)
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= 2.0**-20 * np.abs(want).max()


def test_resize_that_enlarges_and_reduces_is_refused() -> None:
    """ONNX Runtime rounds the one down and the other up, which no newer form says."""
    scales = {"s": np.array([1, 1, 2, 0.5], np.float32)}
    nodes = [node("Resize", "x s", "y", mode="nearest")]
    model = model_of(nodes, {"x": (1, 3, 8, 8)}, ["y"], scales, opset=10)
    with pytest.raises(InputError, match="enlarges one dimension and reduces another"):
        prepared_of(model.SerializeToString())
