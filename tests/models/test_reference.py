"""Real models: the NumPy interpreter, before and after the passes, equals LiteRT byte for byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.long import mostly_long
from toolchain.frontends import load_model
from toolchain.ir.boundary import End
from toolchain.ops.interpret import interpret
from toolchain.passes import prepare
from toolchain.reference import open_reference

MODELS = Path(__file__).resolve().parents[2].parent / "shared" / "models"
RUNS = {
    "gw_mcunet_512kb_2mb_imagenet_int8": 2,
    "mlperf_tiny_ad_fcae_int8": 20,
    "mlperf_tiny_ic_resnet8_int8": 5,
    "mlperf_tiny_kws_dscnn_int8": 10,
    "mlperf_tiny_sww_1dcnn_int8": 10,
    "mlperf_tiny_vww_mbv1_025_96_int8": 5,
    "nxp_yolo_face_detect": 3,
    "openmv_blazeface_front_128": 3,
    "openmv_fomo_face_detection": 5,
    "openmv_hand_landmarks_full_224": 1,
    "st_miniresnet_1stack_64x50_int8": 5,
    "st_miniresnetv2_2stacks_64x50_int8": 3,
    "st_yamnet_256_64x96_esc10_int8": 3,
    "tflm_hello_world_int8": 20,
    "tflm_micro_speech_int8": 10,
    "tflm_person_detect_int8": 3,
    "tflm_xtensa_mobilenet_v2_pt_224_int8": 1,
    "tinyengine_mcunet_vww_int8": 5,
    "tinyengine_mcunetv2_large_int8": 1,
}
"""How many random inputs each model gets: fewer for the large ones."""
KEPT = [name for name in RUNS if name.startswith(("mlperf", "tflm_m", "openmv_f", "st_y"))]

pytestmark = pytest.mark.skipif(not MODELS.is_dir(), reason=f"no models at {MODELS}")


@pytest.mark.parametrize("name", mostly_long(RUNS, KEPT))
def test_interpreter_equals_litert(name: str) -> None:
    path = MODELS / f"{name}.tflite"
    graph = load_model(path)
    prepared = prepare(graph)
    after = prepared.graph
    boundaries = {boundary.tensor: boundary for boundary in prepared.boundaries}
    ends = {n: End(after.tensors[n], boundaries.get(n)) for n in (*graph.inputs, *graph.outputs)}
    reference = open_reference(path)
    for run in range(RUNS[name]):
        rng = np.random.default_rng([run, 1])
        inputs = [ends[name].random(rng) for name in graph.inputs]
        expected = reference.run(inputs)
        found = interpret(
            after, [ends[n].to_graph(v) for n, v in zip(graph.inputs, inputs, strict=True)]
        )
        for output, want, have in zip(graph.outputs, expected, found, strict=True):
            got = ends[output].to_model(have)
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want, err_msg=f"{output}, run {run}")
        if run == 0:
            for got, want in zip(interpret(graph, inputs), expected, strict=True):
                np.testing.assert_array_equal(got, want, err_msg="before the passes")


def test_what_one_runtime_refuses_in_a_file_is_all_that_another_judges() -> None:
    """LiteRT refuses the quantised dimension of the weights of this model's depthwise layers."""
    pytest.importorskip("tflite_micro")
    reference = open_reference(MODELS / "tflm_person_detect_int8.tflite")
    by = {judge.runtime: set(judge.operators) for judge in reference.judges}
    assert by["tflite-micro"] == {"DEPTHWISE_CONV_2D"}
    assert by["LiteRT's reference kernels"] >= {"CONV_2D", "SOFTMAX"}
    why = next(j.why for j in reference.judges if j.runtime == "tflite-micro")
    assert "quantized_dimension" in why
