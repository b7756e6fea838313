"""`thimble accuracy` on this machine: figures that are known beforehand, in each runtime."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import thimble
from tests.pure.test_samples import sound
from tests.support import yolo
from tests.support.graphs import dense_chain
from tests.support.sounds import clips, listener
from tests.support.tflite_writer import tflite_bytes
from toolchain.accuracy.metrics.numbers import Regression
from toolchain.accuracy.run.columns import board_column, reference_column
from toolchain.accuracy.run.subject import subject_of_model
from toolchain.accuracy.samples.inputs import Frame
from toolchain.cli import run
from toolchain.deployment.run import deployed
from toolchain.ir import Graph
from toolchain.ops import forms
from toolchain.ops.interpret import interpret
from toolchain.planning.options import PlanOptions
from toolchain.preprocess.audio import AudioFeatures
from toolchain.preprocess.audio_input import AudioInput
from toolchain.preprocess.samples import Scaling, real_values
from toolchain.reference import open_reference

CLASSES = 6
TRUTHS = (0, 0, 0, 1, 1, 2, 5)
SHOWN = (0, 0, 1, 1, 1, 2, 4)
"""The class that each sample shows: of seven, five show theirs."""


def identity() -> Graph:
    """A layer that multiplies by 1.27: the largest output is that of the largest input."""
    graph = dense_chain("echo", (CLASSES, CLASSES))
    tensors = dict(graph.tensors)
    weights = (127 * np.eye(CLASSES)).astype(np.int8)
    tensors["fc0 weights"] = replace(tensors["fc0 weights"], constant=weights)
    return Graph.build(graph.name, list(tensors.values()), graph.ops, graph.inputs, graph.outputs)


def float_file(file: Path, matrix: np.ndarray) -> None:
    """A float ONNX model that multiplies by a matrix."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "echo",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, CLASSES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, CLASSES])],
        [numpy_helper.from_array(matrix.astype(np.float32), "w")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(made, str(file))


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model as int8, as float (which confuses 0 and 1) and compiled; with data
    as an array, and in folders of the classes."""
    folder = tmp_path_factory.mktemp("accuracy")
    (folder / "echo.tflite").write_bytes(tflite_bytes(identity()))
    float_file(folder / "echo.onnx", np.eye(CLASSES)[[1, 0, 2, 3, 4, 5]])
    rows = np.eye(CLASSES, dtype=np.float32)[list(SHOWN)]
    np.savez(folder / "data.npz", images=rows, labels=np.array(TRUTHS))
    for place, (truth, row) in enumerate(zip(TRUTHS, rows, strict=True)):
        file = folder / "test" / str(truth) / f"{place}.npy"
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, row)
    assert run(["compile", f"{folder}/echo.tflite", "-b", "host", "-o", f"{folder}/out"]) == 0
    return folder


def measured(*words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run(["accuracy", *words, "--json", "-"]) == 0
    fields: dict[str, Any] = json.loads(capsys.readouterr().out)
    return fields


def test_three_runtimes_side_by_side(echo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0 and 1 are confused by the float model alone; one sample of 0 and one of 5 show another."""
    page, data = echo / "page.html", f"{echo}/data.npz"
    beside = ["--float-model", f"{echo}/echo.onnx", "--int8-model", f"{echo}/echo.tflite"]
    words = [f"{echo}/out", "-d", data, "--labels", data, "--real", *beside, "--html", str(page)]
    fields = measured(*words, capsys=capsys)
    assert (fields["board"], fields["ran_on"], fields["judged"]) == ("host", "host", "board")
    assert (fields["task"], fields["samples"]) == ("classes", len(TRUTHS))
    assert fields["accuracy"] == 5 / 7 and fields["macro_f1"] == pytest.approx(
        (0.8 + 0.8 + 1 + 0 + 0) / 5
    )
    runtimes = fields["runtimes"]
    assert list(runtimes) == ["float", "reference", "board"]
    assert runtimes["float"]["accuracy"] == 2 / 7
    assert fields["accuracy_loss"] == pytest.approx(2 / 7 - 5 / 7)
    matrix = np.zeros((CLASSES, CLASSES), int)
    np.add.at(matrix, (TRUTHS, SHOWN), 1)
    for name in ("reference", "board"):
        assert runtimes[name]["confusion_matrix"] == matrix.tolist()
        assert runtimes[name]["confusions"] == [
            {"truth": "0", "predicted": "1", "count": 1},
            {"truth": "5", "predicted": "4", "count": 1},
        ]
    # Of five equal scores behind the largest, class 5's is the last: it is not among the best five.
    assert runtimes["board"]["top_5"] == 6 / 7
    assert (fields["elements"], fields["differing"]) == (len(TRUTHS) * CLASSES, 0)
    assert fields["same_predictions"] == 1.0
    text = page.read_text()
    assert "Confusion matrix, board" in text and "echo.onnx" in text


def test_folders_gate_and_tables(echo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Folders have the classes' numbers for names, as the model names none."""
    words = ["accuracy", f"{echo}/echo.tflite", "-d", f"{echo}/test", "--labels", "folders"]
    assert run([*words, "--real", "--fail-on", "accuracy < 72%"]) == 3
    said = capsys.readouterr()
    assert "accuracy is 0.714286 (--fail-on 'accuracy < 72%')" in said.err
    for told in ("71.43%", "85.71%", "0 taken for 1 (1), 5 taken for 4 (1)", "7 samples"):
        assert told in said.out
    assert run([*words, "--real", "--fail-on", "runtimes.reference.accuracy < 0.7"]) == 0


def test_numbers_to_predict(echo: Path) -> None:
    """1.27 times 1 is 25 steps of 0.05 above 0: an error of 0.25 in one of six numbers."""
    rows = np.eye(CLASSES)[list(SHOWN)]
    result = thimble.measure_accuracy(
        echo / "echo.tflite", rows, rows, scaling=Scaling(real=True), limit=3
    )
    figures = result.final.figures
    assert isinstance(figures, Regression)
    assert (result.task, result.samples, result.accuracy) == ("numbers", 3, None)
    assert figures.mae == pytest.approx(0.25 / CLASSES)
    assert figures.largest_error == pytest.approx(0.25)
    assert figures.numbers[0].r2 == pytest.approx(1 - 0.0625 / (2 / 3))
    assert repr(result).splitlines()[1].startswith("reference: MAE 0.04167, R2 ")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["echo.tflite", "--classes", "names"], "there are names of 2 classes, and output 'y' has"),
        (["echo.tflite", "--output", "x"], "the model has no output 'x'; it has y"),
        (["echo.tflite", "--windows", "most"], "--windows 'most' is unknown; there are each, mean"),
        (["echo.tflite", "--regression"], "there are 1 numbers, and the output has 6"),
        (["echo.tflite", "--int8-model", "echo.onnx"], "a compiled folder needs its file"),
        (["echo.tflite", "--html", "page"], "--html shows a build: name its board"),
        (["echo.tflite", "--keywords", "yes"], "--keywords is for --negatives"),
        (["echo.tflite", "--float-model", "echo.tflite"], "is quantised already"),
        (["echo.tflite", "--negatives", "short.wav"], "short.wav has 3 samples, and input"),
        (["out", "-b", "host"], "is a compiled folder, which has its board"),
        (["out", "--no-split"], "a compiled folder has its plan"),
        (["out", "--int8-model", "echo.onnx"], "out was not compiled from echo.onnx"),
        (["echo.tflite", "-d", "broken.npy"], "broken.npy"),
    ],
)
def test_one_clear_error(
    words: list[str],
    complaint: str,
    echo: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(echo)
    (echo / "names").write_text("a\nb\n")
    (echo / "broken.npy").write_bytes(b"\x93NUMPY")
    (echo / "short.wav").write_bytes(sound(np.zeros(3, np.int16)))
    data = [] if "-d" in words else ["-d", "data.npz"]
    assert run(["accuracy", *words, *data, "--labels", "data.npz", "--real"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert complaint in said, said


def test_a_state_begins_anew_with_each_file(tmp_path: Path) -> None:
    """The class of a file is that of its last run, from the initial state on."""
    graph = forms()["svdf"].sample(np.random.default_rng(57))
    model, rng = tmp_path / "svdf.tflite", np.random.default_rng(2)
    model.write_bytes(tflite_bytes(graph))
    rows, kept, unlike = ["file,label"], dict[str, Any](), 0
    for place in range(6):
        frames = rng.integers(-128, 128, (1 + place % 2, 1, 27)).astype(np.int8)
        np.save(tmp_path / f"{place}.npy", frames)
        fresh: dict[str, Any] = {}
        (anew,) = [interpret(graph, [frame], fresh) for frame in frames][-1]
        (on,) = [interpret(graph, [frame], kept) for frame in frames][-1]
        rows.append(f"{place}.npy,{anew.argmax()}")
        unlike += int(anew.argmax() != on.argmax())
    assert unlike, "states that go on would be seen"
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    result = thimble.measure_accuracy(model, tmp_path, tmp_path / "labels.csv")
    assert (result.accuracy, result.samples, result.inferences) == (1.0, 6, 9)
    assert str(result).endswith(
        "reference: accuracy 100.00%, top-5 100.00% (LiteRT's reference kernels)"
    )


def test_a_board_keeps_the_state_of_a_file(echo: Path) -> None:
    """Its runs are one sequence, which begins with a reset; each gives the outputs of its place."""
    with deployed(echo / "out") as deployment:
        deployment.stateful = True
        column = board_column(deployment)
        rows = np.eye(CLASSES, dtype=np.int8)
        for count in (1, 3):
            frames = [Frame({"x": 100 * row[None]}) for row in rows[:count]]
            shown = [int(one["y"].argmax()) for one in column.run(frames)]
            assert shown == list(range(count))


def test_boxes_of_a_detector(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its own boxes as the truth are all found; all of one class, only that one's are."""
    model, options = tmp_path / "yolo.onnx", PlanOptions(decode="yolo")  # type: ignore[arg-type]
    model.write_bytes(yolo.listed(channels_last=False, logits=False))
    subject = subject_of_model(model, options)
    assert subject.boxes is not None
    column = reference_column(open_reference(model), subject)
    rng = np.random.default_rng(3)
    rows = ["file,label,ymin,xmin,ymax,xmax"]
    for place in range(2):
        image = rng.standard_normal((1, 3, yolo.SIDE, yolo.SIDE)).astype(np.float32)
        np.save(tmp_path / f"{place}.npy", image)
        (end,) = subject.inputs
        (made,) = column.run([Frame({end.name: image})])
        count = int(made[subject.boxes["count"]].item())
        sides = made[subject.boxes["boxes"]].reshape(-1, 4)[:count]
        classes = made[subject.boxes["classes"]].reshape(-1)[:count]
        rows += [
            ",".join(map(str, [f"{place}.npy", int(label), *box]))
            for label, box in zip(classes, sides.tolist(), strict=True)
        ]
    assert len(rows) > 10
    (tmp_path / "boxes.csv").write_text("\n".join(rows))
    words = [str(model), "-d", str(tmp_path), "--labels", f"{tmp_path}/boxes.csv"]
    fields = measured(*words, "--decode", "yolo", capsys=capsys)
    assert (fields["task"], fields["samples"]) == ("boxes", 2)
    assert fields["boxes"] == fields["found"] == len(rows) - 1
    assert fields["map"] == 1.0
    names = f"{tmp_path}/names"
    Path(names).write_text("cat\ndog\ncow\n")
    renamed = [re.sub(r"(\.npy),\d", r"\1,0", row) for row in rows]
    (tmp_path / "boxes.csv").write_text("\n".join(renamed))
    fields = measured(*words, "--decode", "yolo", "--classes", names, capsys=capsys)
    (cat, *others) = fields["runtimes"]["reference"]["classes"]
    assert fields["map"] == cat["ap"] < 0.9 and [one["ap"] for one in others] == [None, None]


def test_false_accepts_an_hour(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each window of a second's sound, by the operators' references and a loop."""
    graph = listener(4)
    (tmp_path / "listener.tflite").write_bytes(tflite_bytes(graph))
    clip = np.concatenate([clips()[name] for name in ("noise", "speech", "loud")])
    (tmp_path / "long.wav").write_bytes(sound(clip))
    (tmp_path / "names").write_text("yes\nno\n_silence_\nstop\n")
    words = np.zeros((2, 160), np.int8)
    np.savez(tmp_path / "data.npz", x=words, labels=np.array([0, 2]))
    source = AudioInput(AudioFeatures()).bound(graph.tensors["x"], stateful=False)
    scores = [
        real_values(interpret(graph, [window])[0], subject_end)
        for subject_end in subject_of_model(tmp_path / "listener.tflite", PlanOptions()).outputs
        for window in source.windows(clip)
    ]
    rows = np.array(scores).reshape(-1, 4)
    threshold, accepts, quiet_until = float(np.median(rows.max(axis=1))), [0, 0, 0], 0.0
    for place, row in enumerate(rows):
        at, best = 0.06 + 0.01 * place, int(row.argmax())
        if best != 2 and row[best] >= threshold and at >= quiet_until:
            accepts[(0, 1, 3).index(best)] += 1
            quiet_until = at + 0.1
    fields = measured(
        *(f"{tmp_path}/listener.tflite", "-d", f"{tmp_path}/data.npz"),
        *("--labels", f"{tmp_path}/data.npz", "--classes", f"{tmp_path}/names"),
        *("--preprocess", "audio", "--negatives", f"{tmp_path}/long.wav"),
        *("--threshold", str(threshold), "--hold-off", "0.1"),
        capsys=capsys,
    )
    assert list(fields["accepts_by_keyword"].items()) == list(
        zip(("yes", "no", "stop"), accepts, strict=True)
    )
    assert fields["false_accepts"] == sum(accepts) > 1
    assert fields["hours"] == pytest.approx(len(clip) / 16000 / 3600)
    assert fields["false_accepts_per_hour"] == pytest.approx(sum(accepts) / fields["hours"])
