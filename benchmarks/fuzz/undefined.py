"""Whether the reference's C++ leaves a run undefined, so that no bytes are the right ones.

Processors differ there: x86 converts a float that int32 does not hold to -2^31, Arm to the nearest
end of int32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolchain.ir import DType, Graph, Op
from toolchain.ops import spec_of
from toolchain.ops.interpret import evaluate
from toolchain.ops.spec import Array

_HELD = 2.0**31
_NEARLY_INFINITE = 2.0**126
_INTEGERS = (DType.INT32, DType.INT64)


def undefined(graph: Graph, runs: Sequence[Sequence[Array]]) -> str:
    """What is undefined, in one line; nothing if all is defined. `runs`: the graph's inputs."""
    memory = {state.input: state.initial for state in graph.states}
    for inputs in runs:
        values = dict(zip(graph.inputs, inputs, strict=True)) | memory
        values |= {t.name: t.constant for t in graph.tensors.values() if t.constant is not None}
        for op in graph.ops:
            given = [values[name] if name else np.zeros(0) for name in op.inputs]
            made = evaluate(op, graph, given)
            if why := _of(op, graph, given, made):
                return f"{op.kind}: {why}"
            values.update(zip(op.outputs, made, strict=True))
        memory = {state.input: values[state.output] for state in graph.states}
    return ""


def _of(op: Op, graph: Graph, given: Sequence[Array], made: Sequence[Array]) -> str:
    if op.kind == "quantize" and given[0].dtype.kind == "f":
        steps = given[0].astype(np.float64) / graph.output(op).q.scale
        if not (np.abs(steps) < _HELD).all():
            return "a real number that int32 does not hold in steps of the scale"
    if op.kind == "div" and graph.output(op).dtype in _INTEGERS:
        least = np.iinfo(given[0].dtype).min
        if (given[1] == 0).any() or ((given[0] == least) & (given[1] == -1)).any():
            return "division by 0, or of the least integer by -1"
    if spec_of(op.kind).macs(op, graph):
        reals = [x for x in (*given, *made) if x.dtype.kind == "f"]
        if not all((np.abs(x) < _NEARLY_INFINITE).all() for x in reals):
            return "a sum that float32 holds in one order of its terms, and not in another"
    return ""
