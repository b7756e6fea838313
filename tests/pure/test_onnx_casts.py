"""ONNX's Cast between real values, bools and integers, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.onnx_models import prepared_of, run
from toolchain.errors import UnsupportedError

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
