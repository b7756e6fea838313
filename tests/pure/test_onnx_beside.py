"""ONNX models whose data lies in files beside them, as `onnx.save_model` and PyTorch write them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import onnx
import pytest

from toolchain.errors import InputError
from toolchain.frontends import load_model, model_sha256, read_whole_model
from toolchain.ir.printer import graph_text
from toolchain.quantise.post_training import float_inputs

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_qdq.onnx"
DATA = "model.onnx.data"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """digits_qdq with every tensor in a file beside it."""
    file = tmp_path / "folder" / "model.onnx"
    file.parent.mkdir()
    onnx.save_model(
        onnx.load(DIGITS), file, save_as_external_data=True, location=DATA, size_threshold=0
    )
    return file


def test_it_is_the_model_with_its_data_inside(model: Path) -> None:
    assert b"location" in model.read_bytes()
    want, got = (graph_text(load_model(file)).splitlines() for file in (DIGITS, model))
    assert got[1:] == want[1:]  # the first line has the file's name
    assert model_sha256(DIGITS) == hashlib.sha256(DIGITS.read_bytes()).hexdigest()
    first = model_sha256(model)
    data = bytearray((model.parent / DATA).read_bytes())
    data[0] ^= 1
    (model.parent / DATA).write_bytes(data)
    assert model_sha256(model) != first  # weights alone make another model
    with pytest.raises(InputError, match="is quantised already"):
        float_inputs(model)


def _moved(model: Path) -> None:
    (model.parent / DATA).rename(model.parent / "weights.data")


def _cut(model: Path) -> None:
    data = model.parent / DATA
    data.write_bytes(data.read_bytes()[:-1])


def _linked(model: Path) -> None:
    data = model.parent / DATA
    data.rename(model.parents[1] / DATA)
    data.symlink_to(model.parents[1] / DATA)


def _renamed(name: str) -> None:
    def spoil(model: Path) -> None:
        _entry(model, "location", name)

    return spoil


def _entry(model: Path, key: str, value: str) -> None:
    proto = onnx.load(model, load_external_data=False)
    tensor = next(one for one in proto.graph.initializer if one.external_data)
    (entry,) = (entry for entry in tensor.external_data if entry.key == key)
    entry.value = value
    model.write_bytes(proto.SerializeToString())


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_moved, f"lies in the file {DATA}, which is not beside the model"),
        (_cut, f"of {DATA}, which has .* the two files are not of one export"),
        (_linked, "a link that leads out of the model's folder"),
        (_renamed("/etc/passwd"), "outside of the model's folder"),
        (_renamed("../model.onnx.data"), "outside of the model's folder"),
        (_renamed("sub/../../x"), "outside of the model's folder"),
        (_renamed("C:\\weights"), "outside of the model's folder"),
        (_renamed("..\\weights"), "outside of the model's folder"),
        (_renamed("a\0b"), "outside of the model's folder"),
        (_renamed("."), "the file ., which is not beside the model"),
        (_renamed(""), "its location is not given"),
        (lambda model: _entry(model, "offset", "-4"), "has the offset '-4'"),
        (lambda model: _entry(model, "length", "1"), "it names 1 from 0"),
        (lambda model: _entry(model, "offset", "9" * 40), "no number of bytes"),
    ],
)
def test_what_does_not_lie_there_is_named(model: Path, spoil, message: str) -> None:
    load_model(model)
    spoil(model)
    for opened in (load_model, model_sha256, float_inputs):
        with pytest.raises(InputError, match=message) as caught:
            opened(model)
        assert str(model) in str(caught.value)


def test_bytes_that_many_tensors_name_are_counted_each(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolchain.frontends.onnx.beside.LARGEST_FILE_BYTES", 1000)
    with pytest.raises(InputError, match=r"its tensors take more than 1,000|is larger than 1,000"):
        read_whole_model(model)
