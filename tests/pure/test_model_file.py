"""Files that stand where a model is expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain import errors
from toolchain.frontends import load_model


@pytest.mark.parametrize("name", ["model.tflite", "model.onnx"])
def test_a_pointer_of_git_lfs_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"
    )
    with pytest.raises(errors.InputError, match="`git lfs pull`"):
        load_model(path)
