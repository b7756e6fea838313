"""A TFLite file with other sizes where its inputs are open.

The converter writes 1 for an open size, and all shapes that follow from it. LiteRT computes them
anew; dimensions that are known only at run time are taken from a run on zeros.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolchain.errors import InputError
from toolchain.frontends.tflite.objects import bytes_of, object_of
from toolchain.packages import VERIFY, lazy

if TYPE_CHECKING:
    import ai_edge_litert.interpreter as litert
else:
    litert = lazy("ai_edge_litert.interpreter", VERIFY)

_MOST_ELEMENTS = 1 << 24
"""The largest input that is taken: more than any microcontroller holds."""
Shape = tuple[int, ...]


def resized(data: bytes, given: Mapping[str, Shape]) -> bytes:
    """The file with these shapes of inputs, by name.

    Raises InputError for an input that there is not, for sizes that are not open, for a file that
    LiteRT does not run, and for one with several graphs; MissingToolError without LiteRT.
    """
    model = object_of(data)
    if len(model.subgraphs) != 1:
        raise InputError("--input-shape: the file has several graphs (IF, WHILE); convert it again")
    (graph,) = model.subgraphs
    names = [_name(graph.tensors[index]) for index in graph.inputs]
    for name, shape in given.items():
        if name not in names:
            known = ", ".join(map(repr, names))
            raise InputError(f"--input-shape: there is no input {name!r}; the inputs are {known}")
        _check(graph.tensors[graph.inputs[names.index(name)]], name, shape)
    wanted = {index: given.get(name) for index, name in zip(graph.inputs, names, strict=True)}
    found = _shapes(data, wanted)
    for index, tensor in enumerate(graph.tensors):
        tensor.shapeSignature = None
        if index in found and not _is_constant(model, tensor):
            tensor.shape = list(found[index])
    return bytes_of(model)


def _name(tensor: Any) -> str:
    return bytes(tensor.name or b"").decode("utf-8", "replace")


def _is_constant(model: Any, tensor: Any) -> bool:
    data = model.buffers[tensor.buffer].data
    return data is not None and len(data) > 0


def _check(tensor: Any, name: str, shape: Shape) -> None:
    sizes = tensor.shape if tensor.shapeSignature is None else tensor.shapeSignature
    fits = len(sizes) == len(shape) and all(
        size in (-1, new) for size, new in zip(sizes, shape, strict=True)
    )
    if not fits:
        written = "x".join("?" if size == -1 else str(size) for size in sizes)
        asked = "x".join(map(str, shape))
        raise InputError(
            f"--input-shape {name}={asked}: the file has {written}, of which only ? is open"
        )
    if math.prod(shape) > _MOST_ELEMENTS:
        raise InputError(f"--input-shape {name}: more than {_MOST_ELEMENTS:,} elements")


def _shapes(data: bytes, wanted: Mapping[int, Shape | None]) -> dict[int, Shape]:
    """The shapes of all tensors, by their numbers; LiteRT's own temporary ones come behind."""
    make: Any = litert.Interpreter
    try:
        machine = make(
            model_content=data,
            experimental_op_resolver_type=litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            experimental_preserve_all_tensors=True,
        )
        for index, shape in wanted.items():
            if shape is not None:
                machine.resize_tensor_input(index, shape)
        machine.allocate_tensors()
        machine.invoke()
    except (RuntimeError, ValueError) as error:
        said = str(error).strip()
        raise InputError(f"--input-shape: LiteRT cannot run the model so: {said}") from error
    details = machine.get_tensor_details()
    return {one["index"]: tuple(int(size) for size in one["shape"]) for one in details}
