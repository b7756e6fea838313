"""Compare an ONNX model operator by operator: each gets ONNX Runtime's values of its inputs.

Differences of one unit grow from operator to operator. Here they cannot: every operator's reference
computes on the integers that ONNX Runtime stored, and its result is compared with ONNX Runtime's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from toolchain.frontends.onnx.stored import Stored
from toolchain.ir import DType, Graph, Op
from toolchain.ops.interpret import evaluate
from toolchain.ops.spec import Array
from toolchain.packages import ONNX, lazy
from toolchain.reference.reference import FLOAT_TOLERANCE, SMALLEST

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx", ONNX)

_ABSENT = np.zeros(0)
_DECIMALS = 4


@dataclass(frozen=True)
class OperatorDifferences:
    """`runs`: the runs compared so. `tensors`: how many were compared in each: all that the file
    quantises, and its float outputs. `elements`: their number in all tensors. `worst`: the operator
    that differs most, by `max_difference` steps of its output's scale or, of a float output, 2^-16
    of its largest element.
    """

    runs: tuple[int, ...]
    tensors: int
    elements: int
    differing: int
    max_difference: float
    worst: str

    def with_run(self, other: OperatorDifferences) -> OperatorDifferences:
        """The differences of these runs and of `other` together."""
        worse = other if other.max_difference > self.max_difference else self
        return OperatorDifferences(
            (*self.runs, *other.runs),
            self.tensors,
            self.elements + other.elements,
            self.differing + other.differing,
            worse.max_difference,
            worse.worst,
        )


def watched(data: bytes, names: Sequence[str]) -> bytes:
    """The model with these tensors as its outputs."""
    model = onnx.load_from_string(data)
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return bytes(model.SerializeToString())


def operator_differences(
    graph: Graph,
    stored: Mapping[str, Stored],
    given: Mapping[str, Array],
    inputs: Sequence[Array],
    run: int,
) -> OperatorDifferences:
    """Compare each operator. `given`: ONNX Runtime's values of the tensors in `stored`, and of the
    outputs.

    A float output of the model may have the name of the tensor that was quantised from it. Its
    integers are then another tensor's, and are not compared.
    """
    theirs = {
        place.tensor: place.of(given[name], graph)
        for name, place in stored.items()
        if graph.tensors[place.tensor].dtype is DType.INT8
    }
    ends = {name: given[name] for name in graph.outputs}
    values: dict[str, Array] = dict(zip(graph.inputs, inputs, strict=True))
    values |= {t.name: t.constant for t in graph.tensors.values() if t.constant is not None}
    tensors = elements = differing = 0
    largest, worst = 0.0, ""
    for op in graph.ops:
        results = evaluate(op, graph, [values[name] if name else _ABSENT for name in op.inputs])
        for name, ours in zip(op.outputs, results, strict=True):
            values[name] = theirs.get(name, ours)
            if name in theirs:
                steps = np.abs(ours.astype(np.float64) - theirs[name].astype(np.float64))
            elif name in ends and ends[name].dtype == np.float32 == ours.dtype:
                wanted = ends[name].reshape(ours.shape).astype(np.float64)
                distance = np.abs(ours.astype(np.float64) - wanted)
                steps = np.round(distance / _unit(op, graph, ends[name]), _DECIMALS)
            else:
                continue
            tensors += 1
            elements += steps.size
            differing += int(np.count_nonzero(steps))
            if steps.max(initial=0) > largest:
                largest, worst = float(steps.max()), op.name
    return OperatorDifferences((run,), tensors, elements, differing, largest, worst)


def _unit(op: Op, graph: Graph, wanted: Array) -> float:
    """The scale that a float output was stored with, or FLOAT_TOLERANCE of its largest element."""
    source = graph.input(op, 0)
    if op.kind == "dequantize":
        return source.q.scale
    return max(float(np.abs(wanted).max(initial=0.0)), SMALLEST) * FLOAT_TOLERANCE
