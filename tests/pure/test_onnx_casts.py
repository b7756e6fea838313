"""ONNX's Cast between real values, bools and integers, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.onnx_models import model_of, prepared_of, run
from toolchain.errors import InputError, UnsupportedError

BOOL, FLOAT = TensorProto.BOOL, TensorProto.FLOAT
INT8, INT32, INT64 = TensorProto.INT8, TensorProto.INT32, TensorProto.INT64


def model(quantised: bool) -> bytes:
    """Casts of an input x, of a mask and of indices; x is quantised first, or stays float."""

    def node(operator: str, inputs: str, output: str, **attributes: object) -> onnx.NodeProto:
        return helper.make_node(operator, inputs.split(), [output], **attributes)

    nodes = [
        node("QuantizeLinear", "x s z", "stored"),
        node("DequantizeLinear", "stored s z", "value"),
    ]
    if not quantised:
        nodes = [node("Relu", "x", "value")]
    nodes += [
        node("Cast", "value", "is_set", to=BOOL),
        node("Cast", "value", "whole", to=INT32),
        node("Cast", "mask", "ones", to=FLOAT),
        node("Mul", "ones value", "masked"),
        node("Cast", "indices", "reals", to=FLOAT),
        node("Cast", "indices", "narrow", to=INT32),
        node("Cast", "indices", "chosen", to=BOOL),
        node("Where", "chosen value ones", "either"),
        node("Cast", "mask", "counted", to=INT64),
    ]
    outputs = {"is_set": BOOL, "whole": INT32, "masked": FLOAT, "reals": FLOAT, "narrow": INT32}
    outputs |= {"either": FLOAT, "counted": INT64}
    inputs = {"x": FLOAT, "mask": BOOL, "indices": INT64}
    constants = {"s": np.float32(0.25), "z": np.int8(-3)}
    graph = helper.make_graph(
        nodes,
        "casts",
        [helper.make_tensor_value_info(name, code, [2, 6]) for name, code in inputs.items()],
        [helper.make_tensor_value_info(name, code, [2, 6]) for name, code in outputs.items()],
        [numpy_helper.from_array(np.asarray(data), name) for name, data in constants.items()],
    )
    imports = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9).SerializeToString()


@pytest.mark.parametrize("quantised", [True, False])
def test_casts_equal_onnx_runtime_s(quantised: bool) -> None:
    data = model(quantised)
    rng = np.random.default_rng(4)
    feeds = {
        "x": rng.normal(0, 8, (2, 6)).astype(np.float32),
        "mask": rng.random((2, 6)) < 0.5,
        "indices": rng.integers(-2, 3, (2, 6)),
    }
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for want, got in zip(session.run(None, feeds), run(prepared_of(data), feeds), strict=True):
        assert want.dtype == got.dtype
        np.testing.assert_array_equal(got, want)


def test_a_cast_to_narrow_integers_is_refused() -> None:
    edited = onnx.ModelProto.FromString(model(quantised=False))
    next(n for n in edited.graph.node if n.output[0] == "whole").attribute[0].i = INT8
    next(o for o in edited.graph.output if o.name == "whole").type.tensor_type.elem_type = INT8
    with pytest.raises(UnsupportedError, match="narrow integers; quantise instead"):
        prepared_of(edited.SerializeToString())


def _dequantising(dtype: type, chain: str) -> bytes:
    """An input x of stored integers, made real by a Cast and the operators of `chain`; the same of
    a stored result. Both are multiplied, and stored again.
    """
    nodes = []
    for source in ("x", "stored"):
        last = f"{source}_cast"
        nodes.append(helper.make_node("Cast", [source], [last], to=FLOAT))
        for kind in chain.split():
            operand = "zero" if kind == "Sub" else "scale"
            nodes.append(helper.make_node(kind, [last, operand], [f"{source}_{kind}"]))
            last = f"{source}_{kind}"
        if source == "x":
            nodes.append(helper.make_node("Tanh", [last], ["tanh"]))
            nodes.append(helper.make_node("QuantizeLinear", ["tanh", "s", "z"], ["stored"]))
    nodes.append(helper.make_node("Relu", [last], ["y"]))
    constants = {
        "s": np.float32(0.01 if "Mul" in chain else 1),
        "z": dtype(7 if "Sub" in chain else 0),
        "zero": np.float32(7),
        "scale": np.float32(0.01),
    }
    made = model_of(
        nodes,
        {"x": [2, 50]},
        ["y"],
        constants,
        dtype=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)),
    )
    return made.SerializeToString()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("chain", ["Sub Mul", "Sub", "Mul", ""])
def test_arithmetic_that_dequantises(dtype: type, chain: str) -> None:
    data = _dequantising(dtype, chain)
    info = np.iinfo(dtype)
    x = np.random.default_rng(3).integers(info.min, info.max + 1, (2, 50)).astype(dtype)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    prepared = prepared_of(data)
    (want,), (got,) = session.run(None, {"x": x}), run(prepared, {"x": x})
    step = 0.01 if "Mul" in chain else 1.0
    assert np.abs(want).max() > 0
    np.testing.assert_allclose(got, want, rtol=0, atol=0.01 * step)
    assert not any(op.kind in ("sub", "mul", "cast") for op in prepared.graph.ops)


def test_arithmetic_that_is_no_dequantisation_stays() -> None:
    """A zero point that is no integer, which DequantizeLinear lacks."""
    edited = onnx.ModelProto.FromString(_dequantising(np.uint8, "Sub Mul"))
    zero = next(one for one in edited.graph.initializer if one.name == "zero")
    zero.CopyFrom(numpy_helper.from_array(np.float32(6.5), "zero"))
    del edited.graph.node[4:]  # from its QuantizeLinear on
    edited.graph.output[0].name = "tanh"
    data, x = edited.SerializeToString(), np.arange(100, dtype=np.uint8).reshape(2, 50)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    prepared = prepared_of(data)
    (want,), (got,) = session.run(None, {"x": x}), run(prepared, {"x": x})
    np.testing.assert_allclose(got, want, rtol=0, atol=2.0**-16)
    assert "sub" in {op.kind for op in prepared.graph.ops}


@pytest.mark.parametrize("operator", ["Floor", "Sigmoid"])
def test_functions_of_reals_on_integers_are_told_so(operator: str) -> None:
    """ONNX has them of floats alone."""
    nodes = [helper.make_node(operator, ["x"], ["y"])]
    made = model_of(nodes, {"x": [1, 4]}, ["y"], {}, dtype=INT8, output_dtype=INT8)
    with pytest.raises(InputError, match=f"it has {operator} of int8, which ONNX does not define"):
        prepared_of(made.SerializeToString())
