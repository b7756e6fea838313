"""Places that LiteRT leaves undefined behind a detector: those beyond the boxes that it reports."""

from __future__ import annotations

from collections.abc import Mapping

from toolchain.frontends.tflite.file import FileOp
from toolchain.ops.spec import Array

COUNT = 3
"""The output that says how many boxes were found."""


def without_rest(op: FileOp, values: Mapping[int, Array]) -> dict[int, Array]:
    """Outputs of a detector, by tensor, with 0 where no box was found, as Thimble's kernel has it.

    None where the number of boxes is not among `values`.
    """
    if len(op.outputs) != COUNT + 1 or op.outputs[COUNT] not in values:
        return {}
    count = int(values[op.outputs[COUNT]].reshape(-1)[0])
    regular = bool(getattr(op.options, "use_regular_nms", False))
    step = 1 if regular else int(op.options.max_classes_per_detection)
    given = step if regular else min(step, int(op.options.num_classes))
    settled = {}
    for index in op.outputs[:COUNT]:
        if index in values:
            whole = values[index].copy()
            boxes = whole.reshape(whole.shape[1] // step, step, -1)
            boxes[count:], boxes[:, given:] = 0, 0
            settled[index] = whole
    return settled
