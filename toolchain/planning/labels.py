"""Which outputs of a model names of classes belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from toolchain.errors import InputError
from toolchain.ir import DType, Graph, Labels, Tensor
from toolchain.ops.detection.decode_boxes import KIND, DecodeBoxes

_INDICES = (DType.INT32, DType.INT64)


def labels_of(
    outputs: Sequence[Tensor], of_model: Sequence[Labels], asked: tuple[str, ...]
) -> Mapping[str, tuple[str, ...]]:
    """Names of classes by output: those that the user gives, else those of the model file.

    They belong to the outputs that have as many classes along their last axis. Names of the model
    that fit no output are left out. Raises InputError where the user's fit none; they may also be
    of an output of whole numbers, which are taken for numbers of classes.
    """
    if asked:
        fitting = [tensor for tensor in outputs if _fits(tensor, asked)]
        fitting = fitting or [tensor for tensor in outputs if _numbers(tensor)]
        if not fitting:
            listed = ", ".join(_classes(tensor) for tensor in outputs)
            raise InputError(
                f"--labels: there are {len(asked):,} labels, but {listed}; give the file a line "
                "for each class of one output"
            )
        return MappingProxyType({tensor.name: asked for tensor in fitting})
    named: dict[str, tuple[str, ...]] = {}
    for labels in of_model:
        candidates = (
            outputs[labels.output : labels.output + 1] if labels.output is not None else outputs
        )
        fitting = [t for t in candidates if _fits(t, labels.names)]
        fitting = fitting or [t for t in outputs if _fits(t, labels.names)]
        named = {tensor.name: labels.names for tensor in fitting} | named
    return MappingProxyType(named)


def labels_of_boxes(
    graph: Graph, of_model: Sequence[Labels], asked: tuple[str, ...]
) -> Mapping[str, tuple[str, ...]]:
    """Names of classes for boxes that `--decode` adds, by the output that holds numbers of classes;
    {} where there is none. Raises InputError where the user's are not as many as there are classes.
    """
    op = next((op for op in graph.ops if op.kind == KIND), None)
    if op is None or not isinstance(op.attributes, DecodeBoxes):
        return {}
    classes = op.attributes.classes
    if asked and len(asked) != classes:
        raise InputError(
            f"--labels: there are {len(asked):,} labels, but the heads have {classes:,} classes; "
            "give the file a line for each"
        )
    given = [asked] if asked else [labels.names for labels in of_model]
    fitting = next((names for names in given if len(names) == classes), ())
    return {op.outputs[1]: fitting} if fitting else {}


def _fits(tensor: Tensor, names: tuple[str, ...]) -> bool:
    return bool(tensor.shape) and tensor.shape[-1] == len(names)


def _numbers(tensor: Tensor) -> bool:
    return tensor.dtype in _INDICES and tensor.quantisation is None


def _classes(tensor: Tensor) -> str:
    classes = tensor.shape[-1] if tensor.shape else 0
    dims = "x".join(str(size) for size in tensor.shape) or "1"
    return f"output {tensor.name!r} has {classes:,} classes, the last axis of {dims}"
