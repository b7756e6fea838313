"""Real models: what the front end and the passes make of them, and whom they refuse."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support.mutations import damaged_bytes, damaged_fields
from toolchain.errors import InputError
from toolchain.frontends import load_model
from toolchain.frontends.tflite import FRONT_END
from toolchain.passes import prepare

MODELS = Path(__file__).resolve().parents[2].parent / "shared" / "models"
REMOVED = {
    "coral_mobilenet_v1_0.25_128_quant": {"quantize": 2},
    "gw_mcunet_512kb_2mb_imagenet_int8": {"pad": 51},
    "mlperf_tiny_kws_dscnn_int8": {},
    "nxp_yolo_face_detect": {"pad": 2},
    "openmv_blazeface_front_128": {"quantize": 1, "dequantize": 4},
    "st_miniresnetv2_2stacks_64x50_int8": {"pad": 5, "dequantize": 1},
    "tflm_xtensa_mobilenet_v2_pt_224_int8": {"pad": 18},
    "tinyengine_mcunetv2_large_int8": {"quantize": 1, "pad": 5, "dequantize": 1},
}

pytestmark = pytest.mark.skipif(not MODELS.is_dir(), reason=f"no models at {MODELS}")


@pytest.mark.parametrize("name", REMOVED)
def test_passes_remove(name: str) -> None:
    graph = load_model(MODELS / f"{name}.tflite")
    before = Counter(op.kind for op in graph.ops)
    after = Counter(op.kind for op in prepare(graph).graph.ops)
    assert dict(before - after) == REMOVED[name]
    assert not after - before


@pytest.mark.parametrize(
    "name",
    [
        "esphome_v2_alexa",
        "mlperf_tiny_kws_dscnn_int8",
        "openmv_fomo_face_detection",
        "tflm_hello_world_int8",
        "tflm_keyword_scrambled_8bit",
    ],
)
def test_damaged_models_are_refused_or_clean(name: str) -> None:
    rng = random.Random(name)
    data = (MODELS / f"{name}.tflite").read_bytes()
    for run in range(120):
        damage = damaged_fields if run % 4 == 0 else damaged_bytes
        start = time.process_time()
        try:
            prepare(FRONT_END.read(damage(data, rng), Path("model.tflite")))
        except InputError as error:
            assert str(error).startswith("model.tflite: ")
        assert time.process_time() - start < 60
