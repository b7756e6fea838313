"""Labels in an ONNX file: the metadata that exporters write, such as Ultralytics' `names`.

Labels do not change results: metadata that cannot be read as names count as absent.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from toolchain.files.labels import label_lines
from toolchain.ir import Labels
from toolchain.packages import ONNX, lazy

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx", ONNX)

KEYS = ("names", "labels", "classes", "class_names")
_LONGEST = 1 << 16


def labels(data: bytes) -> tuple[Labels, ...]:
    """Names of classes from the first entry of `metadata_props` that holds some.

    They are written as a list, as a mapping from their numbers (both in the form that Python and
    JSON share), or as text with lines or commas between them.
    """
    properties = onnx.load_model_from_string(data).metadata_props
    for key in KEYS:
        for entry in properties:
            if entry.key.lower() == key and 0 < len(entry.value) <= _LONGEST:
                classes = _names(entry.value)
                if classes:
                    return (Labels(classes),)
    return ()


def _names(text: str) -> tuple[str, ...]:
    if "\0" in text:
        return ()
    if not text.lstrip().startswith(("{", "[", "(")):
        return label_lines(text.replace(",", "\n"))
    try:
        value: Any = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return ()
    if isinstance(value, dict):
        try:
            numbered = {int(number): name for number, name in value.items()}
        except (ValueError, TypeError):
            return ()
        if sorted(numbered) != list(range(len(value))):
            return ()
        value = [numbered[number] for number in range(len(value))]
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        return ()
    return tuple(name.strip() for name in value)
