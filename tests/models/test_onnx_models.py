"""Real ONNX models: the operators' references against ONNX Runtime, element by element."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.onnx_models import compare
from toolchain.deployment.verification import verify_model
from toolchain.errors import UnsupportedError
from toolchain.frontends.onnx.reader import read
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions

MODELS = Path(__file__).parents[2].parent / "shared" / "models"
QUANTISED = {
    "mlperf_tiny_ic_resnet8_int8_tf2onnx_qdq.onnx": 4,
    "mlperf_tiny_kws_dscnn_int8_tf2onnx_qdq.onnx": 4,
    "st_mobilenet_v2_128_0.5_ort_qdq_int8.onnx": 3,
}
"""File name to how many random inputs."""
PARTLY_FLOAT = frozenset(name for name in QUANTISED if "tf2onnx" in name)
"""ONNX Runtime runs some of these convolutions and the average in float: what falls within its own
rounding noise of a half goes either way, on another processor too, and the softmax enlarges it."""


def content(name: str) -> bytes:
    path = MODELS / name
    if not path.is_file():
        pytest.skip(f"{name} is not beside this checkout, in ../shared/models")
    return path.read_bytes()


@pytest.mark.parametrize("name", QUANTISED)
def test_within_one_of_onnxruntime_and_without_a_transpose(name: str) -> None:
    data = content(name)
    rng = np.random.default_rng(2)
    (source,) = onnx.load_from_string(data).graph.input
    shape = [dim.dim_value or 1 for dim in source.type.tensor_type.shape.dim]
    feeds = []
    for _ in range(QUANTISED[name]):
        if source.type.tensor_type.elem_type == onnx.TensorProto.INT8:
            value = rng.integers(-128, 128, shape).astype(np.int8)
        else:
            value = rng.uniform(-1, 1, shape).astype(np.float32)
        feeds.append({source.name: value})
    result = compare(data, feeds)
    allowed = 0.1 * result.elements if name in PARTLY_FLOAT else 0
    assert result.beyond_one <= allowed, f"up to {result.largest}, {result.differing} differ"
    kinds = Counter(op.kind for op in result.prepared.graph.ops)
    assert kinds["transpose"] == 0


def test_float_model_is_told_how_to_quantise_and_runs_with_leave() -> None:
    name = "st_mobilenet_v2_128_0.5_float.onnx"
    content(name)
    with pytest.raises(UnsupportedError, match=r"thimble quantize.*--float"):
        plan_model(MODELS / name, "host")
    result = verify_model(
        MODELS / name, board="host", runs=1, options=PlanOptions(allow_float=True)
    )
    assert result.passed and result.max_difference < 0.1


def test_pulp_dialect_is_named() -> None:
    name = "deeploy_CCT_Int_ICCT.onnx"
    with pytest.raises(UnsupportedError) as caught:
        read(content(name), Path(name))
    message = str(caught.value)
    assert "RequantShift" in message and "PULP" in message and "iLayerNorm" in message
