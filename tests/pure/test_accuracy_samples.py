"""Labels and data that belong together, and messages where they do not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.pure.test_samples import end, sound
from toolchain.accuracy.samples.boxes import read_boxes
from toolchain.accuracy.samples.inputs import InputReader
from toolchain.accuracy.samples.items import items, spread
from toolchain.accuracy.samples.labels import (
    Label,
    are_numbers,
    classes_of,
    labels_of_array,
    numbers,
    read_labels,
)
from toolchain.errors import InputError
from toolchain.ir import Boundary, DType, End, Quantisation, Tensor
from toolchain.preprocess.audio import AudioFeatures
from toolchain.preprocess.audio_input import AudioInput
from toolchain.preprocess.samples import Scaling


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two samples of cats, one of a dog, each three int8 numbers."""
    for name, number in (("cat/a", 1), ("cat/b", 2), ("dog/c", 3)):
        file = tmp_path / f"{name}.npy"
        file.parent.mkdir(exist_ok=True)
        np.save(file, np.full((1, 3), number, np.int8))
    return tmp_path


def words(labels: list[Label]) -> list[tuple[str, ...]]:
    return [label.words for label in labels]


def test_labels_by_folders(data: Path) -> None:
    found = read_labels("folders", [data])
    assert words(found) == [("cat",), ("cat",), ("dog",)]
    names, truths = classes_of([(x.where, x.words[0]) for x in found], (), 2)
    assert (names, truths) == (("cat", "dog"), [0, 0, 1])
    chosen = items(found, truths, [data], InputReader((end(1, 3),)))
    assert [item.truth for item in chosen] == [0, 0, 1]
    assert [int(item.frames()[0].own["image"][0, 0]) for item in chosen] == [1, 2, 3]


def test_labels_by_table(data: Path) -> None:
    table = data / "labels.csv"
    table.write_text("file,label\ncat/b.npy, dog \ndog/c.npy,cat\n")
    found = read_labels(str(table), [data])
    assert [(label.file and label.file.name, label.words) for label in found] == [
        ("b.npy", ("dog",)),
        ("c.npy", ("cat",)),
    ]
    table.write_text("cat/b.npy;0.5;1\ndog/c.npy;2;-3e1\n")
    found = read_labels(str(table), [data])
    assert are_numbers(found, 2) and numbers(found, 2).tolist() == [[0.5, 1], [2, -30]]
    table.write_text("label\n7\n3\n")
    assert words(read_labels(str(table), [data])) == [("7",), ("3",)]


def test_labels_in_an_array(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.zeros((2, 3), np.int8), labels=np.array([1, 0]))
    for place in ("a.npz", "a.npz:labels"):
        assert words(read_labels(str(tmp_path / place), [])) == [("1",), ("0",)]
    assert not are_numbers(labels_of_array(np.array([1, 0]), "y"), 2)
    assert are_numbers(labels_of_array(np.array([1.0, 0.0]), "y"), 2)
    assert are_numbers(labels_of_array(np.array([[1, 0]]), "y"), 2)
    # One element tells yes and no by 1 and 0; other whole numbers are to be predicted.
    assert not are_numbers(labels_of_array(np.array([1, 0]), "y"), 1)
    assert are_numbers(labels_of_array(np.array([1, 7]), "y"), 1)


def test_data_in_the_order_of_the_labels(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.arange(6, dtype=np.int8).reshape(2, 3), labels=[4, 5])
    reader = InputReader((end(1, 3),))
    labels = labels_of_array(np.array([4, 5]), "y")
    for given in (tmp_path / "a.npz", tmp_path / "a.npz:images"):
        chosen = items(labels, [4, 5], [given], reader)
        assert [item.frames()[0].own["image"].tolist() for item in chosen] == [
            [[0, 1, 2]],
            [[3, 4, 5]],
        ]
    with pytest.raises(InputError, match="there are 3 labels, and the data are of 2 inferences"):
        items([*labels, labels[0]], [4, 5, 6], [tmp_path / "a.npz"], reader)


def test_names_before_numbers() -> None:
    """A word is a class's name; the number of one where not all words are names."""
    given = [("line 1", "2"), ("line 2", "1")]
    assert classes_of(given, ("1", "2"), 2) == (("1", "2"), [1, 0])
    assert classes_of(given, ("0", "1", "two"), 3) == (("0", "1", "two"), [2, 1])
    assert classes_of(given, (), None) == (("0", "1", "2"), [2, 1])
    assert classes_of([("", "b"), ("", "a")], (), 2) == (("a", "b"), [1, 0])


def test_a_limit_takes_samples_evenly() -> None:
    labels = labels_of_array(np.arange(10), "y")
    reader = InputReader((end(1, 3),))
    chosen = items(labels, list(range(10)), np.zeros((10, 3), np.int8), reader)
    assert [item.truth for item in spread(chosen, 3)] == [0, 3, 6]
    assert len(spread(chosen, None)) == len(spread(chosen, 99)) == 10


BOX = "file,label,ymin,xmin,ymax,xmax\n"


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ("cat/x.npy,cat\n", "line 1: there is no file cat/x.npy in"),
        ("cat/a.npy,cat\ncat/a.npy,dog\n", "line 2: cat/a.npy has a label in line 1 already"),
        ("cat/a.npy,cat\ncat/b.npy\n", "line 2: 'cat/b.npy' has no label"),
        ("file,label\n", "holds no labels, only a heading"),
        ("\n", "is empty"),
    ],
)
def test_a_wrong_table(table: str, complaint: str, data: Path) -> None:
    file = data / "labels.csv"
    file.write_text(table)
    with pytest.raises(InputError, match=re.escape(complaint)):
        read_labels(str(file), [data])


def test_wrong_places_of_labels(data: Path) -> None:
    (data / "empty" / "cat").mkdir(parents=True)
    for labels, given, complaint in (
        ("folders", data / "cat", "holds no folders; with --labels folders each is a class"),
        ("folders", data / "cat" / "a.npy", "is no folder"),
        ("folders", data / "empty", "cat is an empty folder"),
        ("labels.txt", data, "labels are 'folders'"),
    ):
        with pytest.raises(InputError, match=re.escape(complaint)):
            read_labels(labels, [given])
    with pytest.raises(InputError, match=r"labels are \[samples\] or \[samples, numbers\]"):
        labels_of_array(np.zeros((2, 2, 2)), "y")


@pytest.mark.parametrize(
    ("word", "names", "count", "complaint"),
    [
        ("dgo", ("cat", "dog"), 2, "line 4: the label 'dgo' is none of the 2 classes. Did you"),
        ("7", ("cat", "dog"), 2, "line 4: there is no class 7; the output has 2"),
        ("-1", (), 3, "line 4: there is no class -1; the output has 3"),
        ("dog", (), None, "the labels name 2 classes and the model has an unknown number"),
        ("dog", (), 3, "the labels name 2 classes and the model has 3"),
        ("5000", (), None, "5,001 classes: the most is 4,096"),
    ],
)
def test_labels_that_are_no_class(
    word: str, names: tuple[str, ...], count: int | None, complaint: str
) -> None:
    first = "0" if word.removeprefix("-").isdecimal() else "cat"
    with pytest.raises(InputError, match=re.escape(complaint)):
        classes_of([("line 3", first), ("line 4", word)], names, count)


def test_numbers_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="entry 0: there are 2 numbers, and the output has 3"):
        numbers(labels_of_array(np.zeros((1, 2)), "y"), 3)
    with pytest.raises(InputError, match="line 1: 'cat' is no number"):
        numbers([Label("line 1", ("cat",))], 1)


def test_boxes_of_a_table(data: Path) -> None:
    table = data / "boxes.csv"
    table.write_text(
        "file,label,xmin,ymin,xmax,ymax,width,height\ncat/a.npy,dog,10,40,20,80,100,200\n"
        "cat/b.npy\ncat/a.npy,cat,0,0,100,200,100,200\n"
    )
    names, (first, second) = read_boxes(str(table), [data], (), 2)
    assert names == ("cat", "dog") and first.file == data / "cat/a.npy"
    assert first.boxes.sides.tolist() == [[0.2, 0.1, 0.4, 0.2], [0, 0, 1, 1]]
    assert first.boxes.classes.tolist() == [1, 0] and not first.boxes.crowds.any()
    assert second.boxes.sides.shape == (0, 4)


def test_boxes_of_coco(data: Path) -> None:
    """Categories without a gap are classes in the order of their ids."""
    content = {
        "images": [{"id": 5, "file_name": "cat/a.npy", "width": 100, "height": 200}],
        "annotations": [
            {"image_id": 5, "category_id": 90, "bbox": [10, 40, 10, 40], "iscrowd": 1, "area": 1}
        ],
        "categories": [{"id": 90, "name": "boat"}, {"id": 3, "name": "car"}],
    }
    file = data / "boxes.json"
    file.write_text(json.dumps(content))
    names, (image,) = read_boxes(str(file), [data], (), 2)
    assert names == ("car", "boat") and image.boxes.classes.tolist() == [1]
    assert image.boxes.sides.tolist() == [[0.2, 0.1, 0.4, 0.2]] and image.boxes.crowds.all()
    assert read_boxes(str(file), [data], ("boat", "car"), 2)[1][0].boxes.classes.tolist() == [0]
    with pytest.raises(InputError, match=r"annotations\[0\]: the label 'boat' is none of the 2"):
        read_boxes(str(file), [data], ("bat", "car"), 2)


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ("file,label,ymin\n", "has no column 'xmin'"),
        (BOX + "cat/a.npy,cat,0,0,1,x\n", "line 2: xmax is 'x', no number"),
        (BOX + "cat/a.npy,cat,0,0,1\n", "line 2: xmax is '', no number"),
        (BOX + "cat/a.npy,cat,0,0,40,30\n", "pixels need the columns height and width"),
        (BOX + "cat/a.npy,cat,0.5,0,0.1,1\n", "line 2: a box ends before it begins"),
        (BOX + "cat/a.npy,,0,0,1,1\n", "line 2: a box without a label"),
        (BOX + "cat/a.npy\n", "holds no boxes"),
    ],
)
def test_a_wrong_table_of_boxes(rows: str, complaint: str, data: Path) -> None:
    file = data / "boxes.csv"
    file.write_text(rows)
    with pytest.raises(InputError, match=re.escape(complaint)):
        read_boxes(str(file), [data], (), 1)


def wide(*shape: int) -> tuple[End, ...]:
    return (End(Tensor("x", shape, DType.FLOAT32)),)


def test_the_float_model_gets_real_values(tmp_path: Path) -> None:
    """Before they are quantised, where they are scaled; else those that stored numbers mean."""
    np.save(tmp_path / "a.npy", np.array([[0.0, 0.2, 1.0]], np.float32))
    reader = InputReader((end(1, 3),), Scaling(real=True), wide=wide(1, 3))
    (frame,) = reader.frames(tmp_path / "a.npy")
    assert frame.own["image"].tolist() == [[-128, -77, 127]]
    assert frame.wide and frame.wide["x"].tolist() == [[0.0, np.float32(0.2), 1.0]]
    np.save(tmp_path / "a.npy", frame.own["image"])
    (frame,) = InputReader((end(1, 3),), wide=wide(1, 3)).frames(tmp_path / "a.npy")
    assert frame.wide is not None and frame.wide["x"].dtype == np.float32
    assert frame.wide["x"][0].tolist() == pytest.approx([0.0, 0.2, 1.0])


def test_the_float_model_may_have_channels_first() -> None:
    values = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3) / 255
    reader = InputReader((end(1, 2, 2, 3),), Scaling(real=True), wide=wide(1, 3, 2, 2))
    (frame,) = reader.array_frames(values)
    assert frame.wide and np.array_equal(frame.wide["x"], np.moveaxis(values, 3, 1))
    turned = Boundary("image", DType.INT8, Quantisation((1 / 255,), (-128,)), (0, 2, 3, 1))
    first = End(end(1, 2, 2, 3).tensor, turned)
    reader = InputReader((first,), Scaling(real=True), wide=wide(1, 2, 2, 3))
    (frame,) = reader.array_frames(np.moveaxis(values, 3, 1))
    assert frame.wide and np.array_equal(frame.wide["x"], values)
    with pytest.raises(InputError, match=re.escape("has shape [1, 5], which input 'image'")):
        InputReader((end(1, 3),), Scaling(real=True), wide=wide(1, 5)).array_frames(np.zeros(3))
    with pytest.raises(InputError, match="the float model has 2 inputs, and the model 1"):
        InputReader((end(1, 3),), wide=(*wide(1), *wide(1)))


def test_windows_of_a_recording(tmp_path: Path) -> None:
    """Frames of 30 ms, 10 ms apart: a window of two ends at 40 ms, the next 10 ms later."""
    file = tmp_path / "a.wav"
    file.write_bytes(sound(np.zeros(1600, np.int16)))
    tensor = Tensor("x", (1, 80), DType.INT8, Quantisation((26 / 255,), (-128,)))
    source = AudioInput(AudioFeatures()).bound(tensor, stateful=False)
    reader = InputReader((End(tensor),), source=source, wide=wide(1, 80))
    seconds, windows = reader.recording(file)
    heard = list(windows)
    assert seconds == 0.1
    assert [at for at, _ in heard] == pytest.approx([0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1])
    assert all(frame.wide and frame.wide["x"].shape == (1, 80) for _, frame in heard)
    raw = InputReader((end(1, 400),), Scaling(range=(-1.0, 1.0)))
    seconds, windows = raw.recording(file)
    assert [at for at, _ in windows] == pytest.approx([0.025, 0.05, 0.075, 0.1])
