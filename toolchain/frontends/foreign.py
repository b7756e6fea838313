"""Model files of other tools that Thimble does not read, and how to get one that it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_TORCH = (
    "export the PyTorch module that it was made of: torch.onnx.export(module, inputs, "
    "'model.onnx'), then `thimble quantize`"
)
_KERAS = (
    "convert it: tf.lite.TFLiteConverter.from_keras_model(model), with a representative_dataset "
    "for int8"
)


@dataclass(frozen=True)
class _Foreign:
    """`begins`: whether a file's bytes are of the format; `suffixes`, where they do not tell."""

    what: str
    remedy: str
    suffixes: tuple[str, ...]
    begins: Callable[[bytes], bool] = lambda data: False


def _identified(*names: bytes) -> Callable[[bytes], bool]:
    """By the identifier of a FlatBuffers file."""
    return lambda data: data[4:8] in names


_FORMATS = (
    _Foreign(
        "an ExecuTorch program, which is lowered for its own runtime",
        _TORCH,
        (".pte",),
        _identified(b"ET12"),
    ),
    _Foreign(
        "StableHLO, from before the choice of a runtime's operators",
        "convert the model that it was exported from: a Keras model or tf.function with "
        "tf.lite.TFLiteConverter, a PyTorch module with torch.onnx.export or litert_torch.convert, "
        "a JAX function with jax2tf and tf.lite.TFLiteConverter",
        (".stablehlo", ".mlir", ".mlirbc"),
        lambda data: data[:4] == b"ML\xefR" or b"stablehlo." in data[:4096],
    ),
    _Foreign("a PyTorch file, whose network is Python code", _TORCH, (".pt", ".pth", ".pt2")),
    _Foreign("a Keras model", _KERAS, (".keras", ".h5", ".hdf5")),
    _Foreign(
        "a TensorFlow graph",
        "convert its folder: tf.lite.TFLiteConverter.from_saved_model(FOLDER), with a "
        "representative_dataset for int8",
        (".pb",),
    ),
)


def foreign(path: Path, data: bytes, by_suffix: bool) -> str:
    """The name of the file's format, and a remedy, by its bytes or by its suffix; '' if it is none
    of these."""
    for one in _FORMATS:
        if path.suffix.lower() in one.suffixes if by_suffix else one.begins(data):
            return f"{one.what}; {one.remedy}"
    return ""
