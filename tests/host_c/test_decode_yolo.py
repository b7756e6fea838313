"""`--decode yolo`: the heads of v3, v5 and v8, judged by what PyTorch code computes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support import yolo
from tests.support.onnx_models import Float
from toolchain.decode.option import decoding
from toolchain.deployment.compile import compile_model
from toolchain.deployment.run import deployed
from toolchain.deployment.verification import verify_model
from toolchain.planning.options import PlanOptions

LEAST, MOST_OVERLAP, MOST = 0.45, 0.4, 12


def outputs_of(model: bytes, folder: Path, decode: str) -> list[dict[str, Float]]:
    """The outputs of some runs on the host; `verify` holds for them."""
    file = folder / "model.onnx"
    file.write_bytes(model)
    options = PlanOptions(decode=decoding(decode, LEAST, MOST_OVERLAP, MOST))
    result = verify_model(file, board="host", runs=3, options=options)
    assert result.passed
    assert result.decoding is not None
    assert result.decoding.differing == 0
    compile_model(file, "host", folder / "out", options)
    rng, runs = np.random.default_rng(6), []
    with deployed(folder / "out") as board:
        for _ in range(6):
            image = rng.standard_normal((1, 3, yolo.SIDE, yolo.SIDE)).astype(np.float32)
            outputs = board.run({"image": image}).outputs
            runs.append({e.name: outputs[e.name].reshape(e.model_shape) for e in board.outputs})
    return runs


def check(outputs: dict[str, Float], found: yolo.Found) -> int:
    """Returns the number of boxes."""
    assert int(outputs["detection_count"][0]) == len(found)
    for i, (corners, label, score) in enumerate(found):
        box = outputs["detection_boxes"][0, i]
        np.testing.assert_allclose(box[[1, 0, 3, 2]], corners, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(outputs["detection_scores"][0, i], score, rtol=1e-5)
        assert outputs["detection_classes"][0, i] == label
    for name in ("detection_boxes", "detection_classes", "detection_scores"):
        assert not outputs[name][0, len(found) :].any()
    return len(found)


@pytest.mark.parametrize("logits", [False, True], ids=["scores", "logits"])
@pytest.mark.parametrize("channels_last", [False, True], ids=["1x7xN", "1xNx7"])
def test_lists_of_v8(tmp_path: Path, channels_last: bool, logits: bool) -> None:
    model = yolo.listed(channels_last=channels_last, logits=logits)
    decode = "yolo:scores=sigmoid" if logits else "yolo"
    total = 0
    for outputs in outputs_of(model, tmp_path, decode):
        rows = outputs["turned"][0] if channels_last else outputs["list"][0].T
        scores = yolo.sigmoid(rows[:, 4:]) if logits else rows[:, 4:]
        total += check(outputs, yolo.suppressed(rows[:, :4], scores, LEAST, MOST_OVERLAP, MOST))
    assert total > 20


@pytest.mark.parametrize("version", ["v3", "v5"])
@pytest.mark.parametrize("split", [False, True], ids=["maps", "split"])
def test_grids_with_anchors(tmp_path: Path, version: str, split: bool) -> None:
    lists = [list(pairs) for pairs in yolo.ANCHORS]
    file = tmp_path / "anchors.toml"
    file.write_text(f'version = "{version}"\nanchors = {lists}\n')
    total = 0
    for outputs in outputs_of(yolo.grids(split=split), tmp_path, f"yolo:{file}"):
        heads = [v for name, v in outputs.items() if not name.startswith("detection")]
        if not split:
            heads = [h.reshape(1, 3, -1, *h.shape[2:]).transpose(0, 1, 3, 4, 2) for h in heads]
        rows = yolo.decoded(sorted(heads, key=lambda h: -h.shape[2]), version)
        scores = rows[:, 4:5] * rows[:, 5:]
        shares = rows[:, :4] / yolo.SIDE
        total += check(outputs, yolo.suppressed(shares, scores, LEAST, MOST_OVERLAP, MOST))
    assert total > 20
