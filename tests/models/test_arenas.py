"""Real models on the host with the sanitizers: no operator touches bytes that are not its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.host import model_of, random_inputs
from tests.support.long import mostly_long
from toolchain.boards import board
from toolchain.device.host import HostProgram, build
from toolchain.frontends import load_model
from toolchain.kernels import cmsis_nn
from toolchain.ops.interpret import interpret
from toolchain.passes import prepare
from toolchain.planner import plan_graph

MODELS = Path(__file__).resolve().parents[2].parent / "shared" / "models"
NAMES = (
    "gw_mcunet_512kb_2mb_imagenet_int8",
    "mlperf_tiny_ad_fcae_int8",
    "mlperf_tiny_ic_resnet8_int8",
    "mlperf_tiny_kws_dscnn_int8",
    "mlperf_tiny_sww_1dcnn_int8",
    "mlperf_tiny_vww_mbv1_025_96_int8",
    "nxp_yolo_face_detect",
    "openmv_blazeface_front_128",
    "openmv_fomo_face_detection",
    "st_miniresnet_1stack_64x50_int8",
    "st_miniresnetv2_2stacks_64x50_int8",
    "st_yamnet_256_64x96_esc10_int8",
    "tflm_hello_world_int8",
    "tflm_micro_speech_int8",
    "tflm_person_detect_int8",
    "tinyengine_mcunet_vww_int8",
)
"""All that compile, but for the largest."""
KEPT = [name for name in NAMES if name.startswith(("mlperf", "tflm_m", "openmv_f", "st_y"))]

pytestmark = pytest.mark.skipif(not MODELS.is_dir(), reason=f"no models at {MODELS}")


@pytest.mark.parametrize("name", mostly_long(NAMES, KEPT))
def test_every_operator_keeps_to_its_own_bytes(name: str, tmp_path: Path) -> None:
    graph = prepare(load_model(MODELS / f"{name}.tflite")).graph
    model = model_of(plan_graph(graph, board("host")), "m")
    program = build([model], cmsis_nn.find(), tmp_path, sanitize=True)
    inputs = random_inputs(graph, np.random.default_rng(1))
    with HostProgram(program, [model]) as running:
        outputs = running.run(inputs)
    for output, want, have in zip(graph.outputs, interpret(graph, inputs), outputs, strict=True):
        np.testing.assert_array_equal(have, want, output)
