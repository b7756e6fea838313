"""CIRCULAR_BUFFER of tflite-micro: the last rows of a stream, of which a run brings one.

It becomes what streaming models of TensorFlow write out: the rows that were kept are joined with
the new one, and all but the first are kept for the next run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.tflite.file import FileOp
from toolchain.ir import DType, Op, State, Tensor
from toolchain.ir.names import Names
from toolchain.ops.movement.assign import Assign
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.movement.slice import Slice

CUSTOM = "CIRCULAR_BUFFER"
_ROWS = 1
_LAST_LAYER_ROWS = (5, 13, 25)
"""Where the file does not say how often a run ends here, buffers of other heights end every other
run (tflite-micro's `CircularBufferPrepare`).
"""


@dataclass(frozen=True)
class Ring:
    """The operators, the tensors that they add, and the state."""

    ops: tuple[Op, ...]
    tensors: tuple[Tensor, ...] = ()
    states: tuple[State, ...] = ()


def ring(op: FileOp, x: Tensor, y: Tensor, names: Names) -> Ring:
    """The operators and the state that it becomes. `names`: gives names to the tensors that it
    adds.

    Raises InputError where its shapes contradict each other, RefusedError where the operators
    behind it would not run in each run.
    """
    if x.dtype is not DType.INT8 or y.dtype is not DType.INT8:
        raise RefusedError(f"it is of {x.dtype.value}", "tflite-micro has it for int8 alone")
    fits = len(y.shape) == 4 and x.shape == (y.shape[0], 1, *y.shape[2:])
    if not fits or op.caller is not None or y.shape[0] != 1:
        raise InputError(f"{op} puts {x} into {y}")
    rows = y.shape[_ROWS]
    cycles = int(getattr(op.options, "cycles_max", 0) or 0)
    if cycles < 1:
        cycles = 1 if rows in _LAST_LAYER_ROWS else 2
    if cycles != 1:
        raise RefusedError(
            f"the operators behind it run only every {cycles} runs, and here all run in each",
            "run the model once for each result: cycles_max 1, or keep rows in variables "
            "(VAR_HANDLE, ASSIGN_VARIABLE)",
        )
    name = f"circular_buffer_{op.index}"
    if rows == 1:
        return Ring((Op("reshape", name, (x.name,), (y.name,), Reshape(y.shape)),))
    shape = (1, rows - 1, *y.shape[2:])
    before, after, last = (
        replace(y, name=names.fresh(f"{y.name}_{ending}"), shape=shape, constant=None)
        for ending in ("rows", "rows_next", "rows_last")
    )
    grid = Slice((0, 1, 0, 0), shape, (1, 1, 1, 1), shape)
    ops = (
        Op("concat", name, (before.name, x.name), (y.name,), Concat(_ROWS)),
        Op("slice", f"{name}_last", (y.name,), (last.name,), grid),
        Op("assign", f"{name}_kept", (last.name, before.name), (after.name,), Assign()),
    )
    first = np.full(shape, y.q.zero_point, np.int8)
    return Ring(ops, (before, after, last), (State(before.name, after.name, first),))
