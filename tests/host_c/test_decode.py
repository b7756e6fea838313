"""`--decode`: boxes from the raw heads of a detector, in the firmware and in its header."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.support.detection import anchors_of, detector, heads
from tests.support.tflite_writer import tflite_bytes
from toolchain.cli import run
from toolchain.decode.option import decoding
from toolchain.deployment.compile import compile_library, compile_model
from toolchain.deployment.run import deployed
from toolchain.deployment.verification import verify_model
from toolchain.planning.options import PlanOptions
from toolchain.reference import open_reference

NAMES = ("detection_boxes", "detection_classes", "detection_scores", "detection_count")


@pytest.fixture
def ssd(tmp_path: Path) -> Path:
    """A model, and beside it the anchors and a TOML file of their use."""
    file = tmp_path / "ssd.tflite"
    file.write_bytes(tflite_bytes(heads()))
    np.save(tmp_path / "anchors.npy", anchors_of(0.6))
    (tmp_path / "ssd.toml").write_text(
        'anchors = "anchors.npy"\nscales = [9, 9, 5, 5]\nscore_threshold = 0.3\n'
        "iou_threshold = 0.4\nmax_detections = 10\n"
    )
    return file


@pytest.mark.parametrize("regular", [False, True])
def test_boxes_are_those_of_litert_where_settings_coincide(
    ssd: Path, tmp_path: Path, regular: bool
) -> None:
    whole = tmp_path / "detector.tflite"
    whole.write_bytes(detector(regular=regular, each_class=10))
    suppression = "each-class" if regular else "across"
    options = PlanOptions(decode=decoding(f"ssd:{tmp_path / 'ssd.toml'},suppression={suppression}"))
    compile_model(ssd, "host", tmp_path / "out", options)
    reference, rng = open_reference(whole), np.random.default_rng(5)
    found = 0
    with deployed(tmp_path / "out") as board:
        for _ in range(10):
            image = rng.integers(-128, 128, (1, 6, 6, 3)).astype(np.int8)
            done = board.run({board.inputs[0].name: image}).outputs
            for name, want in zip(NAMES, reference.run([image]), strict=True):
                np.testing.assert_array_equal(done[name].reshape(want.shape), want, name)
            found += int(done["detection_count"][0])
    assert found > 50


def test_verify_says_who_judged_what(ssd: Path, tmp_path: Path) -> None:
    options = PlanOptions(decode=decoding(f"ssd:{tmp_path / 'ssd.toml'}"))
    result = verify_model(ssd, board="host", runs=4, options=options)
    assert result.reference.startswith("LiteRT")
    assert result.elements == 4 * (36 * 4 + 36 * 5 + 61)
    assert result.decoding is not None
    assert result.decoding.elements == 4 * 61
    assert result.decoding.detections > 0
    assert (result.differing, result.decoding.differing) == (0, 0)


_PROGRAM = """
#include "ssd.h"
#include <stdio.h>

static uint8_t arena[SSD_ARENA_BYTES] __attribute__((aligned(SSD_ARENA_ALIGNMENT)));

int main(void)
{
    for (int32_t i = 0; i < SSD_INPUT_IMAGE_ELEMENTS; i++) {
        ssd_input_image(arena)[i] = (int8_t)(i * 37 % 251 - 120);
    }
    if (ssd_run(arena) != SSD_OK) {
        return 1;
    }
    for (int32_t i = 0; i < ssd_box_count(arena); i++) {
        const ssd_box box = ssd_box_at(arena, i);
        printf("%.9g %.9g %.9g %.9g %.9g %d\\n", box.ymin, box.xmin, box.ymax, box.xmax, box.score,
               (int)box.label);
    }
    return 0;
}
"""


def test_the_header_gives_the_boxes(ssd: Path, tmp_path: Path) -> None:
    options = PlanOptions(decode=decoding(f"ssd:{tmp_path / 'ssd.toml'}"))
    library = tmp_path / "library"
    compile_library(ssd, "host", library, options)
    (tmp_path / "main.c").write_text(_PROGRAM)
    sources = [*library.rglob("*.c"), tmp_path / "main.c"]
    includes = [f"-I{folder}" for folder in {path.parent for path in library.rglob("*.h")}]
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-o", tmp_path / "program"]
    subprocess.run(["gcc", *flags, *includes, *sources], check=True)
    text = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True).stdout
    boxes = np.array([line.split() for line in text.splitlines()], np.float64)
    compile_model(ssd, "host", tmp_path / "out", options)
    image = (np.arange(108) * 37 % 251 - 120).astype(np.int8).reshape(1, 6, 6, 3)
    with deployed(tmp_path / "out") as board:
        done = board.run({board.inputs[0].name: image}).outputs
    count = int(done["detection_count"][0])
    assert count == len(boxes) > 2
    np.testing.assert_array_equal(
        boxes[:, :4].astype(np.float32), done["detection_boxes"].reshape(-1, 4)[:count]
    )
    np.testing.assert_array_equal(
        boxes[:, 4].astype(np.float32), done["detection_scores"].reshape(-1)[:count]
    )
    np.testing.assert_array_equal(boxes[:, 5], done["detection_classes"].reshape(-1)[:count])


def test_a_run_lists_the_boxes_by_the_names_of_their_classes(ssd: Path, tmp_path: Path) -> None:
    names = tmp_path / "labels.txt"
    names.write_text("cat\ndog\nbird\nfish\n")
    out, found = str(tmp_path / "out"), tmp_path / "run.json"
    decode = ["--decode", f"ssd:{tmp_path / 'ssd.toml'}", "--max-detections", "3"]
    labels = ["--labels", str(names)]
    assert run(["compile", str(ssd), "--board", "host", *decode, *labels, "-o", out]) == 0
    np.save(tmp_path / "image.npy", np.full((1, 6, 6, 3), 99, np.int8))
    image = ["--input", str(tmp_path / "image.npy")]
    assert run(["run", out, *image, "--json", str(found)]) == 0
    data = json.loads(found.read_text())
    outputs = {name: np.array(data["outputs"][name]["data"]) for name in NAMES}
    assert len(data["boxes"]) == int(outputs["detection_count"].item()) > 0
    for i, box in enumerate(data["boxes"]):
        label = int(outputs["detection_classes"][0, i])
        assert (box["label"], box["name"]) == (label, ("cat", "dog", "bird", "fish")[label])
        sides = [box[side] for side in ("ymin", "xmin", "ymax", "xmax")]
        assert sides == outputs["detection_boxes"][0, i].tolist()
    names.write_text("cat\ndog\n")
    assert run(["plan", str(ssd), "-b", "netduinoplus2", *decode, *labels]) == 2


def test_a_command_says_what_is_wrong(ssd: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", str(ssd), "-b", "netduinoplus2", "--decode", "ssd"]) == 2
    assert "it needs anchors" in capsys.readouterr().err
    assert run(["plan", str(ssd), "-b", "netduinoplus2", "--score-threshold", "0.3"]) == 2
    assert "--score-threshold is for --decode" in capsys.readouterr().err
    assert run(["plan", str(ssd), "-b", "netduinoplus2", "--decode", "yolo"]) == 2
    assert "v8 is one output, [1, 4 + classes, boxes]" in capsys.readouterr().err
