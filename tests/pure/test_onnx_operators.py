"""Every ONNX operator that is read, quantised by onnxruntime in both forms: within 1 of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.support.onnx_models import (
    INT8,
    QDQ,
    QOPERATOR,
    UINT8,
    compare,
    model_of,
    quantised,
    random_feeds,
    surrounded,
)

FORMS = {
    "qdq-int8": (QDQ, INT8, INT8, True),
    "qdq-uint8-per-tensor": (QDQ, UINT8, INT8, False),
    "qoperator-uint8": (QOPERATOR, UINT8, INT8, True),
    "qoperator-int8-per-tensor": (QOPERATOR, INT8, INT8, False),
}
RNG = np.random.default_rng(7)


def weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def node(kind: str, inputs: str, output: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), output.split(), f"{kind}_{output}", **attributes)


def single(
    kind: str, shape: tuple[int, ...], *constants: Any, opset: int = 17, **attributes: Any
) -> onnx.ModelProto:
    """One operator of input x and constants."""
    named = {f"c{i}": np.asarray(value) for i, value in enumerate(constants) if value is not None}
    inputs = ["x", *(f"c{i}" if c is not None else "" for i, c in enumerate(constants))]
    made = helper.make_node(kind, inputs, ["y"], "node", **attributes)
    return model_of([made], {"x": shape}, ["y"], named, opset)


def conv(shape: tuple[int, ...], kernel: tuple[int, ...], bias: bool = True, **attributes: Any):
    extra = (weights(kernel[0]),) if bias else ()
    return single("Conv", shape, weights(*kernel), *extra, **attributes)


def binary(kind: str, one: tuple[int, ...], two: tuple[int, ...]) -> onnx.ModelProto:
    return model_of([node(kind, "a b")], {"a": one, "b": two}, ["y"], {})


def chain(*nodes: onnx.NodeProto, shape: tuple[int, ...], **constants: Any) -> onnx.ModelProto:
    named = {name: np.asarray(value) for name, value in constants.items()}
    return model_of(nodes, {"x": shape}, ["y"], named)


def integers(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


IMAGE = (1, 6, 9, 7)
CASES: dict[str, Callable[[], onnx.ModelProto]] = {
    "conv": lambda: conv(IMAGE, (5, 6, 3, 3), pads=[1, 1, 1, 1]),
    "conv-no-bias": lambda: conv(IMAGE, (5, 6, 3, 3), bias=False),
    "conv-stride-asymmetric-pads": lambda: conv(
        IMAGE, (5, 6, 3, 2), strides=[2, 3], pads=[0, 1, 2, 0]
    ),
    "conv-dilated": lambda: conv(IMAGE, (4, 6, 3, 3), dilations=[2, 1]),
    "conv-same-upper": lambda: conv(IMAGE, (4, 6, 3, 2), auto_pad="SAME_UPPER", strides=[2, 2]),
    "conv-same-lower": lambda: conv(IMAGE, (4, 6, 4, 4), auto_pad="SAME_LOWER"),
    "conv-valid": lambda: conv(IMAGE, (4, 6, 2, 2), auto_pad="VALID"),
    "conv-grouped": lambda: conv(IMAGE, (9, 2, 3, 3), group=3),
    "conv-depthwise": lambda: conv(IMAGE, (6, 1, 3, 3), group=6, pads=[1, 1, 1, 1]),
    "conv-depthwise-multiplier": lambda: conv(IMAGE, (12, 1, 3, 3), group=6),
    "conv-one-channel": lambda: conv((1, 1, 8, 8), (3, 1, 3, 3)),
    "conv-1d": lambda: conv((1, 6, 20), (5, 6, 3), pads=[1, 1], strides=[2]),
    "conv-1d-depthwise": lambda: conv((1, 6, 20), (6, 1, 5), group=6),
    "conv-batch": lambda: conv((3, 2, 5, 5), (4, 2, 3, 3)),
    "conv-relu": lambda: chain(
        node("Conv", "x w b", "c"),
        node("Relu", "c"),
        shape=IMAGE,
        w=weights(5, 6, 3, 3),
        b=weights(5),
    ),
    "conv-clip": lambda: chain(
        node("Conv", "x w", "c"),
        node("Clip", "c low high"),
        shape=IMAGE,
        w=weights(5, 6, 3, 3),
        low=np.float32(0),
        high=np.float32(6),
    ),
    "conv-transpose": lambda: single(
        "ConvTranspose", IMAGE, weights(6, 4, 3, 3), weights(4), strides=[2, 2], pads=[1, 0, 1, 1]
    ),
    "conv-transpose-output-padding": lambda: single(
        "ConvTranspose",
        IMAGE,
        weights(6, 4, 3, 3),
        strides=[2, 2],
        pads=[1, 1, 1, 1],
        output_padding=[1, 1],
    ),
    "conv-transpose-same": lambda: single(
        "ConvTranspose", IMAGE, weights(6, 4, 3, 3), strides=[2, 2], auto_pad="SAME_UPPER"
    ),
    "conv-transpose-grouped-dilated": lambda: single(
        "ConvTranspose", IMAGE, weights(6, 2, 2, 3), group=3, dilations=[2, 1]
    ),
    "conv-transpose-1d": lambda: single(
        "ConvTranspose", (1, 3, 8), weights(3, 4, 4), strides=[2], pads=[1, 1]
    ),
    "gemm": lambda: single("Gemm", (2, 7), weights(7, 5), weights(5)),
    "gemm-transposed": lambda: single("Gemm", (1, 7), weights(5, 7), weights(5), transB=1),
    "gemm-no-bias": lambda: single("Gemm", (1, 7), weights(5, 7), transB=1),
    "matmul": lambda: single("MatMul", (1, 7), weights(7, 5)),
    "matmul-3d": lambda: single("MatMul", (1, 4, 7), weights(7, 5)),
    "matmul-bias": lambda: chain(
        node("MatMul", "x w", "m"), node("Add", "m b"), shape=(1, 7), w=weights(7, 5), b=weights(5)
    ),
    "matmul-of-two": lambda: binary("MatMul", (1, 3, 4, 5), (1, 3, 5, 6)),
    "matmul-of-two-transposed": lambda: model_of(
        [node("Transpose", "b", "t", perm=[0, 2, 1]), node("MatMul", "a t")],
        {"a": (2, 4, 5), "b": (2, 6, 5)},
        ["y"],
        {},
    ),
    "gemm-after-torn-rows": lambda: chain(
        node("Reshape", "x cut", "r"),
        node("Transpose", "r", "t", perm=[0, 1, 3, 2, 4, 5]),
        node("Reshape", "t rows", "f"),
        node("Gemm", "f g"),
        shape=(1, 4, 6, 5),
        cut=integers(1, 2, 2, 2, 3, 5),
        rows=integers(24, 5),
        g=weights(5, 4),
    ),
    "flatten-gemm": lambda: chain(
        node("Conv", "x w", "c"),
        node("Flatten", "c", "f"),
        node("Gemm", "f g h"),
        shape=IMAGE,
        w=weights(5, 6, 3, 3),
        g=weights(175, 4),
        h=weights(4),
    ),
    "add": lambda: binary("Add", IMAGE, IMAGE),
    "add-broadcast": lambda: binary("Add", IMAGE, (1, 6, 1, 1)),
    "add-lower-rank": lambda: binary("Add", IMAGE, (9, 7)),
    "add-constant": lambda: single("Add", IMAGE, weights(1, 6, 1, 1)),
    "sub": lambda: binary("Sub", IMAGE, IMAGE),
    "mul": lambda: binary("Mul", IMAGE, IMAGE),
    "mul-gate": lambda: binary("Mul", IMAGE, (1, 6, 1, 1)),
    "min": lambda: binary("Min", IMAGE, IMAGE),
    "max": lambda: binary("Max", IMAGE, IMAGE),
    "average-pool": lambda: single("AveragePool", IMAGE, kernel_shape=[3, 2], strides=[2, 2]),
    "average-pool-padded": lambda: single(
        "AveragePool", IMAGE, kernel_shape=[2, 2], pads=[1, 0, 0, 1]
    ),
    "average-pool-pad-counted": lambda: single(
        "AveragePool", IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1
    ),
    "average-pool-ceil": lambda: single(
        "AveragePool", IMAGE, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1
    ),
    "average-pool-1d": lambda: single("AveragePool", (1, 4, 12), kernel_shape=[3], strides=[3]),
    "max-pool": lambda: single("MaxPool", IMAGE, kernel_shape=[3, 2], strides=[2, 2]),
    "max-pool-padded-ceil": lambda: single(
        "MaxPool", IMAGE, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 0, 0, 1], ceil_mode=1
    ),
    "global-average-pool": lambda: single("GlobalAveragePool", IMAGE),
    "global-max-pool": lambda: single("GlobalMaxPool", IMAGE),
    "reduce-mean": lambda: single("ReduceMean", IMAGE, axes=[2, 3], keepdims=0),
    "reduce-mean-keep": lambda: single("ReduceMean", IMAGE, axes=[-1], keepdims=1),
    "reduce-mean-opset-18": lambda: single(
        "ReduceMean", IMAGE, integers(1, 2), keepdims=0, opset=18
    ),
    "reduce-sum": lambda: single("ReduceSum", IMAGE, integers(2, 3), keepdims=0),
    "reduce-max": lambda: single("ReduceMax", IMAGE, axes=[2, 3], keepdims=1),
    "reduce-min": lambda: single("ReduceMin", IMAGE, axes=[1], keepdims=0),
    "softmax": lambda: single("Softmax", (2, 11), axis=-1),
    "softmax-channels": lambda: single("Softmax", (1, 5, 3, 4), axis=1),
    "sigmoid": lambda: single("Sigmoid", IMAGE),
    "tanh": lambda: single("Tanh", IMAGE),
    "relu": lambda: single("Relu", IMAGE),
    "clip": lambda: single("Clip", IMAGE, np.float32(-0.5), np.float32(1.5)),
    "leaky-relu": lambda: single("LeakyRelu", IMAGE, alpha=0.1),
    "prelu": lambda: single("PRelu", IMAGE, np.abs(weights(6, 1, 1))),
    "hard-sigmoid": lambda: single("HardSigmoid", IMAGE, alpha=0.17),
    "hard-swish": lambda: single("HardSwish", IMAGE),
    "elu": lambda: single("Elu", IMAGE),
    "pad": lambda: single("Pad", IMAGE, integers(0, 1, 2, 0, 0, 2, 0, 1)),
    "pad-value": lambda: single("Pad", IMAGE, integers(0, 0, 1, 1, 0, 0, 1, 1), np.float32(0.7)),
    "pad-reflect": lambda: single("Pad", IMAGE, integers(0, 0, 2, 1, 0, 0, 1, 3), mode="reflect"),
    "slice": lambda: single(
        "Slice", IMAGE, integers(1, 0), integers(5, 9), integers(1, 2), integers(2, 3)
    ),
    "slice-backwards": lambda: single(
        "Slice", IMAGE, integers(-1), integers(-100), integers(3), integers(-2)
    ),
    "gather-one": lambda: single("Gather", IMAGE, np.int64(2), axis=1),
    "gather-range": lambda: single("Gather", IMAGE, integers(1, 3, 5), axis=1),
    "transpose": lambda: single("Transpose", IMAGE, perm=[0, 3, 1, 2]),
    "reshape": lambda: single("Reshape", IMAGE, integers(1, 3, -1)),
    "flatten": lambda: single("Flatten", IMAGE),
    "squeeze": lambda: single("Squeeze", (1, 6, 1, 5), integers(2)),
    "unsqueeze": lambda: single("Unsqueeze", (1, 6, 5), integers(1, 4)),
    "identity-dropout": lambda: chain(node("Dropout", "x", "d"), node("Relu", "d"), shape=IMAGE),
    "resize-nearest": lambda: single(
        "Resize",
        IMAGE,
        None,
        np.array([1, 1, 2, 2], dtype=np.float32),
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    ),
    "resize-nearest-half-pixel": lambda: single(
        "Resize", IMAGE, None, np.array([1, 1, 3, 2], dtype=np.float32), mode="nearest"
    ),
    "resize-linear": lambda: single(
        "Resize", IMAGE, None, np.array([1, 1, 2, 2], dtype=np.float32), mode="linear"
    ),
    "resize-linear-to-its-size": lambda: single(
        "Resize", IMAGE, None, np.array([1, 1, 1.1, 1.1], dtype=np.float32), mode="linear"
    ),
    "resize-nearest-to-its-size": lambda: single(
        "Resize", IMAGE, None, np.array([1, 1, 1.1, 1.1], dtype=np.float32), mode="nearest"
    ),
    "depth-to-space": lambda: chain(
        node("Conv", "x w", "c"),
        node("DepthToSpace", "c", "d", blocksize=2),
        node("MaxPool", "d", kernel_shape=[2, 2]),
        shape=IMAGE,
        w=weights(8, 6, 3, 3),
    ),
    "depth-to-space-crd": lambda: single("DepthToSpace", (1, 8, 3, 5), blocksize=2, mode="CRD"),
    "space-to-depth": lambda: single("SpaceToDepth", (1, 3, 4, 6), blocksize=2),
    "concat": lambda: model_of(
        [node("Concat", "a b", axis=1)], {"a": (1, 3, 4, 5), "b": (1, 2, 4, 5)}, ["y"], {}
    ),
    "concat-constant": lambda: single("Concat", (1, 3, 4, 5), weights(1, 2, 4, 5), axis=1),
    "split": lambda: model_of(
        [node("Split", "x s", "p q", axis=1), node("Add", "p q")],
        {"x": (1, 6, 3, 4)},
        ["y"],
        {"s": integers(3, 3)},
    ),
    "arg-max": lambda: model_of(
        [node("Conv", "x w", "c"), node("ArgMax", "c", axis=1)],
        {"x": IMAGE},
        ["y"],
        {"w": weights(5, 6, 3, 3)},
        output_dtype=onnx.TensorProto.INT64,
    ),
}


WEIGHTED = ("conv", "gemm", "matmul", "flatten-gemm", "arg-max", "depth-to-space")
"""Cases whose weights only a quantiser can make int8."""


EXACT = {
    "conv2d",
    "depthwise_conv2d",
    "fully_connected",
    "lookup",
    "concat",
    "pad",
    "reshape",
    "slice",
}
"""Kinds that round as ONNX Runtime does, or not at all; the others follow TFLite: 1 off at most."""


def check(model: onnx.ModelProto, data: bytes) -> None:
    result = compare(data, random_feeds(model, 4, seed=3))
    assert result.largest <= 1, f"{result.differing} of {result.elements} differ"
    kinds = {op.kind for op in result.prepared.graph.ops}
    often = 0.01 if kinds <= EXACT else 0.5
    assert result.differing <= max(2, often * result.elements)


FLOAT_TO_ONNXRUNTIME = {
    "sub",
    "reduce-sum",
    "reduce-max",
    "reduce-min",
    "min",
    "max",
    "prelu",
    "hard-sigmoid",
    "hard-swish",
    "elu",
}
"""Operators that its static quantiser leaves alone."""


def beside_others(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model after an Add: onnxruntime quantises some operators only where their input is."""
    changed = onnx.ModelProto.FromString(model.SerializeToString())
    graph = changed.graph
    for original in graph.node:
        for index, name in enumerate(original.input):
            if name in {value.name for value in graph.input}:
                original.input[index] = f"{name}/added"
    for value in graph.input:
        made = helper.make_node("Add", [value.name, "quarter"], [f"{value.name}/added"])
        graph.node.insert(0, made)
    graph.initializer.append(onnx.numpy_helper.from_array(np.float32(0.25), "quarter"))
    return changed


@pytest.mark.parametrize(
    ("case", "form"),
    [
        (case, form)
        for case in CASES
        for form in FORMS
        if case not in FLOAT_TO_ONNXRUNTIME
        and not (case.startswith("conv-transpose") and FORMS[form][0] is QOPERATOR)
    ],
)
def test_quantised_by_onnxruntime(case: str, form: str) -> None:
    model = CASES[case]()
    data = quantised(model, *FORMS[form])
    if b"QuantizeLinear" not in data:
        model = beside_others(model)
        data = quantised(model, *FORMS[form])
    check(model, data)


@pytest.mark.parametrize("weight_type", [UINT8, INT8])
@pytest.mark.parametrize(
    "case",
    ["conv", "conv-asymmetric", "conv-depthwise-multiplier", "conv-1d", "gemm", "matmul-3d"],
)
def test_weights_with_a_zero_point(case: str, weight_type: object) -> None:
    name = "conv-stride-asymmetric-pads" if case == "conv-asymmetric" else case
    model = CASES[name]()
    for tensor in model.graph.initializer:  # all on one side of zero
        values = np.abs(onnx.numpy_helper.to_array(tensor))
        tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    data = quantised(model, QDQ, UINT8, weight_type, False, WeightSymmetric=False)
    result = compare(data, random_feeds(model, 4, seed=3), optimise=False)
    assert result.largest <= 1 and result.differing <= max(2, 0.01 * result.elements)
    weighted = [op for op in result.prepared.graph.ops if "conv2d" in op.kind]
    (op,) = weighted
    assert result.prepared.graph.input(op, 1).q.zero_point != 0


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("case", [name for name in CASES if not name.startswith(WEIGHTED)])
def test_left_in_float_between_quantised_tensors(case: str, dtype: type) -> None:
    model = CASES[case]()
    check(model, surrounded(model, dtype))


def test_a_chain_left_in_float_becomes_one_table() -> None:
    """A gelu by erf with nothing quantised inside, as onnxruntime leaves it by default."""
    model = chain(
        node("Div", "x root", "d"),
        node("Erf", "d", "e"),
        node("Add", "e one", "a"),
        node("Mul", "x a", "m"),
        node("Mul", "m half", "g"),
        node("Reciprocal", "g"),
        shape=IMAGE,
        root=np.float32(2**0.5),
        one=np.float32(1),
        half=np.float32(0.5),
    )
    ends_only = onnx.ModelProto.FromString(surrounded(model))
    inner = {"d", "e", "a", "m", "g"}
    for item in ends_only.graph.node:
        for index, name in enumerate(item.input):
            if name.removesuffix("/real") in inner and item.op_type != "QuantizeLinear":
                item.input[index] = name.removesuffix("/real")
    kept = [
        item
        for item in ends_only.graph.node
        if not (item.op_type.endswith("quantizeLinear") or item.op_type == "QuantizeLinear")
        or item.output[0].split("/")[0] not in inner
    ]
    del ends_only.graph.node[:]
    ends_only.graph.node.extend(kept)
    result = compare(ends_only.SerializeToString(), random_feeds(model, 4, seed=3))
    assert result.differing == 0
    kinds = [op.kind for op in result.prepared.graph.ops]
    assert kinds.count("lookup") == 1 and len(kinds) == 1


@pytest.mark.parametrize("opset", [11, 13, 16, 19, 22, 26])
@pytest.mark.parametrize("form", [QDQ, QOPERATOR])
def test_opsets(opset: int, form: object) -> None:
    """Onnxruntime 1.31 knows no newer one."""
    model = model_of(
        [
            node("Conv", "x w b", "c", pads=[1, 1, 1, 1]),
            node("Relu", "c", "r"),
            node("GlobalAveragePool", "r", "g"),
            node("Flatten", "g", "f"),
            node("Gemm", "f v", "e", transB=1),
            node("Softmax", "e", axis=1),
        ],
        {"x": (1, 3, 8, 8)},
        ["y"],
        {"w": weights(5, 3, 3, 3), "b": weights(5), "v": weights(4, 5)},
        opset,
    )
    data = quantised(model, form, UINT8, INT8, False)
    assert compare(data, random_feeds(model, 3, seed=3), optimise=False).largest <= 1


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_a_chain_that_stores_8_bits_in_between_is_one_table(dtype: type) -> None:
    """Softplus as PyTorch exports it: a comparison, a choice, and everything quantised."""
    model = chain(
        node("Softplus", "x", "s"),
        node("Greater", "x two", "g"),
        node("Where", "g x s", "w"),
        node("Pow", "w exponent", "p"),
        node("Tanh", "p"),
        shape=IMAGE,
        two=np.float32(2),
        exponent=np.float32(2),
    )
    result = compare(surrounded(model, dtype), random_feeds(model, 4, seed=3), optimise=False)
    assert result.differing == 0
    assert [op.kind for op in result.prepared.graph.ops] == ["lookup"]


@pytest.mark.parametrize("shape", [IMAGE, (3, 5), (1, 4, 9)])
def test_batch_normalisation_that_stays(shape: tuple[int, ...]) -> None:
    channels = shape[1]
    named = dict(zip("sbmv", (weights(channels, 1).reshape(-1) for _ in range(4)), strict=True))
    model = chain(node("BatchNormalization", "x s b m v"), shape=shape, **named)
    model.graph.initializer[3].CopyFrom(
        onnx.numpy_helper.from_array(np.abs(named["v"]) + np.float32(0.1), "v")
    )
    result = compare(surrounded(model), random_feeds(model, 4, seed=3), optimise=False)
    assert result.differing == 0
