"""Names of classes: in TFLite metadata, in ONNX metadata, and those that the user gives."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np
import onnx
import pytest

from toolchain.cli import run
from toolchain.errors import InputError
from toolchain.files.labels import label_lines, read_labels
from toolchain.frontends import model_labels, model_sha256
from toolchain.frontends.onnx import FRONT_END as ONNX_FRONT_END
from toolchain.frontends.tflite.metadata import labels
from toolchain.ir import DType, Labels, Quantisation, Tensor
from toolchain.planning.labels import labels_of

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
DIGITS_ONNX = ROOT / "examples" / "digits" / "digits_qdq.onnx"
SHARED = ROOT.parent / "shared" / "models"
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEXT = "".join(f"{word}\n" for word in WORDS).encode()
AXIS_LABELS, VALUE_LABELS, DESCRIPTIONS = 2, 3, 1


def metadata(files: Sequence[tuple[str, int]]) -> bytes:
    """ModelMetadata of a subgraph whose first output has these files."""
    b = flatbuffers.Builder(256)

    def vector(items: Sequence[int]) -> int:
        b.StartVector(4, len(items), 4)
        for item in reversed(items):
            b.PrependUOffsetTRelative(item)
        return int(b.EndVector())

    def table(slots: int, **offsets: int) -> int:
        b.StartObject(slots)
        for slot, offset in offsets.items():
            b.PrependUOffsetTRelativeSlot(int(slot[1:]), offset, 0)
        return int(b.EndObject())

    made = []
    for name, kind in files:
        text = b.CreateString(name)
        b.StartObject(5)
        b.PrependUOffsetTRelativeSlot(0, text, 0)
        b.PrependInt8Slot(2, kind, 0)
        made.append(int(b.EndObject()))
    output = table(7, s6=vector(made))
    subgraph = table(9, s3=vector([output]))
    b.Finish(table(8, s3=vector([subgraph])), file_identifier=b"M001")
    return bytes(b.Output())


def with_files(files: dict[str, bytes], stored: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The digits model with metadata, and an archive at its end."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(DIGITS.read_bytes(), 0))
    entry, buffer = schema.MetadataT(), schema.BufferT()
    buffer.data = np.frombuffer(stored, np.uint8)
    model.buffers.append(buffer)
    entry.name, entry.buffer = b"TFLITE_METADATA", len(model.buffers) - 1
    model.metadata = [*(model.metadata or ()), entry]
    b = flatbuffers.Builder(1024)
    b.Finish(model.Pack(b), file_identifier=b"TFL3")
    whole = io.BytesIO(bytes(b.Output()))
    with zipfile.ZipFile(whole, "a", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return whole.getvalue()


def found(tmp_path: Path, data: bytes) -> tuple[Labels, ...]:
    (tmp_path / "m.tflite").write_bytes(data)
    return model_labels(tmp_path / "m.tflite")


@pytest.mark.parametrize("kind", [AXIS_LABELS, VALUE_LABELS])
def test_tflite_metadata_name_a_file_in_the_archive(tmp_path: Path, kind: int) -> None:
    files = {"about.txt": b"no labels\n", "labels.txt": TEXT}
    data = with_files(files, metadata([("about.txt", DESCRIPTIONS), ("labels.txt", kind)]))
    assert found(tmp_path, data) == (Labels(WORDS, 0),)


def test_the_compiled_model_has_them(tmp_path: Path) -> None:
    data = with_files({"labels.txt": TEXT}, metadata([("labels.txt", AXIS_LABELS)]))
    (tmp_path / "m.tflite").write_bytes(data)
    words = ["compile", str(tmp_path / "m.tflite"), "-b", "netduinoplus2", "--library"]
    assert run([*words, "-o", str(tmp_path / "o")]) == 0
    text = (tmp_path / "o" / "m_info.c").read_text()
    assert [line.strip() for line in text.splitlines() if line.strip() == '"seven",']
    assert f".label_count = {len(WORDS)}u" in text
    digest = hashlib.sha256(data)
    assert model_sha256(tmp_path / "m.tflite") == digest.hexdigest()
    in_c = ", ".join(f"0x{byte:02x}" for byte in digest.digest())
    assert in_c in " ".join(text.split())
    plan = json.loads((tmp_path / "o" / "plan.json").read_text())
    assert list(plan["labels"].values()) == [list(WORDS)]
    assert plan["model_sha256"] == digest.hexdigest()


def test_archives_and_metadata_that_are_damaged_have_no_labels(tmp_path: Path) -> None:
    names = metadata([("labels.txt", AXIS_LABELS)])
    good = with_files({"labels.txt": TEXT}, names)
    for what, data in {
        "no archive": good[: good.rindex(b"PK\x01\x02")],
        "no such file": with_files({"other.txt": TEXT}, names),
        "no text": with_files({"labels.txt": b"\xff\xfe"}, names),
        "a byte of 0": with_files({"labels.txt": b"a\0b"}, names),
        "empty": with_files({"labels.txt": b"\n\n"}, names),
        "a bomb": with_files({"labels.txt": b"a\n" * (1 << 20)}, names),
        "no metadata of models": with_files({"labels.txt": TEXT}, b"12345678" + names),
        "metadata cut off": with_files({"labels.txt": TEXT}, names[: len(names) // 2]),
    }.items():
        assert found(tmp_path, data) == (), what


def test_bytes_of_archive_and_metadata_may_be_anything(tmp_path: Path) -> None:
    """Nothing but labels or none comes of a file of which one byte is another."""
    names = metadata([("labels.txt", AXIS_LABELS)])
    good = with_files({"labels.txt": TEXT}, names)
    begin, archive = good.index(b"M001") - 4, good.index(b"PK\x03\x04")
    places = [*range(begin, begin + len(names)), *range(archive, len(good))]
    rng = np.random.default_rng(5)
    for place in places:
        spoilt = bytearray(good)
        spoilt[place] = int(rng.integers(256))
        for one in labels(bytes(spoilt)):
            assert one.names


@pytest.mark.skipif(not SHARED.is_dir(), reason="there are no model files beside the checkout")
@pytest.mark.parametrize("name", ["coral_mobilenet_v1_0.25_128", "tfls_mobilenet_v1_0.25_224"])
def test_files_that_others_made(name: str) -> None:
    (own,) = model_labels(SHARED / f"{name}_quant.tflite")
    assert (len(own.names), own.output, own.names[0]) == (1001, 0, "background")


@pytest.mark.parametrize(
    ("key", "value", "names"),
    [
        ("names", "{0: 'person', 1: 'traffic light'}", ("person", "traffic light")),
        ("names", '{"1": "b", "0": "a"}', ("a", "b")),
        ("classes", '["a", "b"]', ("a", "b")),
        ("labels", "a\nb\r\nc\n", ("a", "b", "c")),
        ("Class_Names", "a, b,c", ("a", "b", "c")),
        ("names", "{0: 'a', 2: 'b'}", None),
        ("names", "{'a': 'b'}", None),
        ("names", "[1, 2]", None),
        ("names", "{[]: 1}", None),
        ("names", "[" * 30000, None),
        ("names", "['a', __import__('os')]", None),
        ("names", "a\0b", None),
        ("names", "", None),
        ("author", "a,b", None),
    ],
)
def test_onnx_metadata(key: str, value: str, names: tuple[str, ...] | None) -> None:
    model = onnx.load(str(DIGITS_ONNX))
    model.metadata_props.add(key=key, value=value)
    found = ONNX_FRONT_END.labels(model.SerializeToString())
    assert found == (() if names is None else (Labels(names),))


def tensor(name: str, *shape: int, dtype: DType = DType.INT8) -> Tensor:
    q = Quantisation((0.5,), (0,)) if dtype is DType.INT8 else None
    return Tensor(name, shape, dtype, q)


def test_labels_belong_to_outputs_with_as_many_classes() -> None:
    boxes, scores, best = tensor("boxes", 1, 9, 4), tensor("scores", 1, 9, 3), tensor("n")
    index, three = tensor("index", 1, dtype=DType.INT64), ("a", "b", "c")
    outputs = (boxes, scores, best)
    assert labels_of(outputs, (), three) == {"scores": three}
    assert labels_of((boxes, index), (), three) == {"index": three}
    assert labels_of(outputs, (Labels(three),), ()) == {"scores": three}
    assert labels_of(outputs, (Labels(three, 0),), ()) == {"scores": three}
    assert labels_of(outputs, (Labels(three, 7),), ()) == {"scores": three}
    assert labels_of(outputs, (Labels(("a", "b")),), ()) == {}
    other = ("x", "y", "z")
    assert labels_of(outputs, (Labels(three, 1),), other) == {"scores": other}
    with pytest.raises(InputError, match=r"2 labels, but output 'boxes' has 4 classes.*1x9x4"):
        labels_of(outputs, (), ("a", "b"))


def test_a_file_of_labels(tmp_path: Path) -> None:
    assert label_lines("\ufeffa\r\n b \n\nc\n\n\n") == ("a", "b", "", "c")
    file = tmp_path / "labels.txt"
    for content, what in (
        (b"\n\n", "no labels"),
        (b"a\n\xff", "byte 2"),
        (b"a\0\n", "byte of 0"),
        (b"a" * (1 << 20) + b"a", "larger than"),
    ):
        file.write_bytes(content)
        with pytest.raises(InputError, match=what):
            read_labels(file)
    with pytest.raises(InputError, match="there is no file"):
        read_labels(tmp_path / "absent.txt")
    file.write_bytes(TEXT)
    assert read_labels(file) == WORDS


def test_a_wrong_number_of_labels_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "labels.txt").write_text("a\nb\n")
    asked = ["-b", "netduinoplus2", "--library", "-o", str(tmp_path / "o")]
    asked += ["--labels", str(tmp_path / "labels.txt")]
    assert run(["compile", str(DIGITS), *asked]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "there are 2 labels, but output" in said and "has 10 classes" in said
    assert not (tmp_path / "o").exists()
    assert run(["compile", str(DIGITS), str(DIGITS), "--share-arena", *asked]) == 2
    (tmp_path / "labels.txt").write_bytes(TEXT)
    assert run(["compile", str(DIGITS), *asked]) == 0
    assert '"seven",' in (tmp_path / "o" / "digits_int8_info.c").read_text()
