"""Small files that TensorFlow's converter and PyTorch with onnxruntime made, end to end in C.

`benchmarks/ecosystem/make.py` made them, with many more that are too large to keep here. Those
named `*_float` need leave to compute in float, those in `SHAPES` the sizes that they leave open.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain import verify_model
from toolchain.planning.options import PlanOptions

SHAPES = {"tf_open_sizes": (("serving_default_image:0", (1, 10, 13, 3)),)}
FILES = sorted((Path(__file__).parents[1] / "ecosystem").glob("*.*"))


def test_there_are_files_of_both_tools() -> None:
    assert {file.suffix for file in FILES} == {".onnx", ".tflite"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_equals_its_reference(file: Path) -> None:
    shapes = SHAPES.get(file.stem, ())
    options = PlanOptions(allow_float=file.stem.endswith("_float"), input_shapes=shapes)
    result = verify_model(file, board="host", runs=2, options=options)
    assert result.passed, result.differences[:5]
    assert result.elements > 0
    assert file.suffix == ".onnx" or result.differing == 0
