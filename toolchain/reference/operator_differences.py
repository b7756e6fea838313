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
from toolchain.ir import DType, Graph
from toolchain.ops.interpret import evaluate
from toolchain.ops.spec import Array
from toolchain.packages import ONNX, lazy

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx", ONNX)

_ABSENT = np.zeros(0)


@dataclass(frozen=True)
class OperatorDifferences:
    """`elements`: compared over all operators. `worst`: the operator that differs most."""

    elements: int
    differing: int
    max_difference: int
    worst: str


def watched(data: bytes, names: Sequence[str]) -> bytes:
    """The model with these tensors as its outputs."""
    model = onnx.load_from_string(data)
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return bytes(model.SerializeToString())


def operator_differences(
    graph: Graph, stored: Mapping[str, Stored], given: Sequence[Array], inputs: Sequence[Array]
) -> OperatorDifferences:
    """`given` are the outputs of `watched(data, stored)` for `inputs`, in the file's order.

    A float output of the model may have the name of the tensor that was quantised from it. Its
    integers are then another tensor's, and are not compared.
    """
    theirs = {
        place.tensor: place.of(values, graph)
        for place, values in zip(stored.values(), given, strict=True)
        if graph.tensors[place.tensor].dtype is DType.INT8
    }
    values: dict[str, Array] = dict(zip(graph.inputs, inputs, strict=True))
    values |= {t.name: t.constant for t in graph.tensors.values() if t.constant is not None}
    elements = differing = largest = 0
    worst = ""
    for op in graph.ops:
        results = evaluate(op, graph, [values[name] if name else _ABSENT for name in op.inputs])
        for name, ours in zip(op.outputs, results, strict=True):
            values[name] = theirs.get(name, ours)
            if name in theirs:
                steps = np.abs(ours.astype(np.int64) - theirs[name].astype(np.int64))
                elements += steps.size
                differing += int(np.count_nonzero(steps))
                if steps.max(initial=0) > largest:
                    largest, worst = int(steps.max()), op.name
    return OperatorDifferences(elements, differing, largest, worst)
