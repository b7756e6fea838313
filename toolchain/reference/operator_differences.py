"""Compare an ONNX model operator by operator: each gets ONNX Runtime's values of its inputs.

Differences of one unit grow from operator to operator. Here they cannot: every operator's reference
computes on the integers that ONNX Runtime stored, or on its floats in a file whose activations are
floats, and its result is compared with ONNX Runtime's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

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
    quantises, and its float outputs; of a file whose activations are floats, the results of all its
    operators. `elements`: their number in all tensors. `worst`: the operator that differs most, by
    `max_difference` steps of its output's scale or, of floats, 2^-16 of the largest element.
    `together`: how many operators make that output of what ONNX Runtime gives; 1 for `worst` alone.
    """

    runs: tuple[int, ...]
    tensors: int
    elements: int
    differing: int
    max_difference: float
    worst: str
    together: int = 1
    in_float: bool = False

    def with_run(self, other: OperatorDifferences) -> OperatorDifferences:
        """The differences of these runs and of `other` together."""
        worse = other if other.max_difference > self.max_difference else self
        return replace(
            worse,
            runs=(*self.runs, *other.runs),
            tensors=self.tensors,
            elements=self.elements + other.elements,
            differing=self.differing + other.differing,
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
    integers are then another tensor's, and are not compared. An operator between two tensors that
    are compared is judged together with its neighbours.
    """
    theirs = {
        place.tensor: place.of(given[name], graph)
        for name, place in stored.items()
        if graph.tensors[place.tensor].dtype in (DType.INT8, DType.FLOAT32)
    }
    in_float = any(value.dtype == np.float32 for value in theirs.values())
    ends = {name: given[name] for name in graph.outputs}
    values: dict[str, Array] = dict(zip(graph.inputs, inputs, strict=True))
    values |= {t.name: t.constant for t in graph.tensors.values() if t.constant is not None}
    since: dict[str, frozenset[str]] = {}
    tensors = elements = differing = together = 0
    largest, worst = 0.0, ""
    for op in graph.ops:
        results = evaluate(op, graph, [values[name] if name else _ABSENT for name in op.inputs])
        made_of = frozenset({op.name}).union(*(since.get(name, ()) for name in op.inputs))
        for name, ours in zip(op.outputs, results, strict=True):
            values[name] = theirs.get(name, ours)
            since[name] = frozenset() if name in theirs else made_of
            if name in theirs and ours.dtype == np.int8:
                steps = np.abs(ours.astype(np.float64) - theirs[name].astype(np.float64))
            elif name in theirs:
                steps = _float_steps(op, graph, ours, theirs[name])
            elif name in ends and ends[name].dtype == np.float32 == ours.dtype:
                steps = _float_steps(op, graph, ours, ends[name])
            else:
                continue
            tensors += 1
            elements += steps.size
            differing += int(np.count_nonzero(steps))
            if steps.max(initial=0) > largest:
                largest, worst, together = float(steps.max()), op.name, len(made_of)
    return OperatorDifferences(
        (run,), tensors, elements, differing, largest, worst, max(together, 1), in_float
    )


def _float_steps(op: Op, graph: Graph, ours: Array, theirs: Array) -> NDArray[np.float64]:
    """Differences in units of `_unit`. Infinite where one value alone is no number."""
    wanted, got = theirs.reshape(ours.shape).astype(np.float64), ours.astype(np.float64)
    with np.errstate(invalid="ignore"):
        distance = np.where(got == wanted, 0.0, np.abs(got - wanted))
    distance = np.where(np.isnan(distance), np.inf, distance)
    distance = np.where(np.isnan(got) & np.isnan(wanted), 0.0, distance)
    return np.asarray(np.round(distance / _unit(op, graph, theirs), _DECIMALS))


def _unit(op: Op, graph: Graph, wanted: Array) -> float:
    """The scale that a float output was stored with, or FLOAT_TOLERANCE of its largest element."""
    source = graph.input(op, 0)
    if op.kind == "dequantize":
        return source.q.scale
    finite = wanted[np.isfinite(wanted)]
    return max(float(np.abs(finite).max(initial=0.0)), SMALLEST) * FLOAT_TOLERANCE
