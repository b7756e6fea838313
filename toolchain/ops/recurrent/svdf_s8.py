"""SVDF with an int8 state, as the converters of 2020 wrote it. TFLite SVDF; see `svdf`.

The state has a zero point. LiteRT takes its bytes for int16 and reads beyond it; the reference is
TFLM's `EvalIntegerSvdfReference<int8_t>` as the tflite-micro wheel has it: a new state is clamped
before its zero point is added, and wraps where that leaves int8. (TFLM sources of late 2026 add it
before they clamp: the same unless a state saturates.)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, Quantisation, State
from toolchain.ops import extents
from toolchain.ops.recurrent import svdf
from toolchain.ops.recurrent.svdf import BIAS, FEATURES, INPUT, STATE, TIME, rank_of, scales
from toolchain.ops.spec import Array, Lowering, ReadOp, TfliteBinding, TfliteNode


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    x, y, state = graph.input(op, INPUT), graph.output(op), graph.input(op, STATE)
    (into_multiplier, into_shift), (out_multiplier, out_shift) = scales(op, graph)
    return Lowering(
        functions=("thimble_svdf_s8",),
        fields={
            "has_bias": bool(op.inputs[BIAS]),
            "params": {
                "batches": x.shape[0],
                "depth": x.shape[1],
                "units": y.shape[1],
                "rank": rank_of(op),
                "memory": graph.input(op, TIME).shape[1],
                "input_zero_point": x.q.zero_point,
                "state_zero_point": state.q.zero_point,
                "output_zero_point": y.q.zero_point,
                "into_multiplier": into_multiplier,
                "into_shift": into_shift,
                "out_multiplier": out_multiplier,
                "out_shift": out_shift,
            },
        },
    )


def _read(node: TfliteNode) -> ReadOp:
    state = node.inputs[STATE] if len(node.inputs) == 5 else None
    if state is not None and state.q.per_channel:
        raise node.unsupported(f"tensor {state.name!r} has not one scale and zero point")
    return svdf.read_layer(node, DType.INT8)


def _sample(rng: np.random.Generator) -> Graph:
    """An int16 layer with scales of its time filters and of its state to match int8."""
    wide = svdf.SPEC.sample(rng)
    (op,) = wide.ops
    x, features = wide.input(op, INPUT), wide.input(op, FEATURES)
    newest = x.q.scale * features.q.scale * 4000.0 * 2.0 ** rng.uniform(-2, 1)
    state_q = _quantisation(newest / 128, int(rng.integers(-128, 128)))
    time_q = _quantisation(wide.input(op, TIME).q.scale * 64, 0)
    tensors = []
    for tensor in wide.tensors.values():
        if tensor.name in ("state", "state_next"):
            tensor = replace(tensor, dtype=DType.INT8, quantisation=state_q)
        if tensor.name == "time":
            data: Array = rng.integers(-127, 128, tensor.shape).astype(np.int8)
            tensor = replace(tensor, dtype=DType.INT8, quantisation=time_q, constant=data)
        if tensor.name == "bias":
            tensor = replace(tensor, quantisation=_quantisation(state_q.scale * time_q.scale, 0))
        if tensor.name == "y":
            memory = wide.input(op, TIME).shape[1]
            scale = state_q.scale * time_q.scale * 30 * memory * 2.0 ** rng.uniform(-2, 1)
            tensor = replace(tensor, quantisation=_quantisation(scale, tensor.q.zero_point))
        tensors.append(tensor)
    initial = np.full(wide.states[0].initial.shape, state_q.zero_point, np.int8)
    kept = State(wide.states[0].input, wide.states[0].output, initial)
    ops = [replace(op, kind="svdf_s8", name="svdf_s8")]
    return Graph.build("sample", tensors, ops, wide.inputs, wide.outputs, [kept])


def _quantisation(scale: float, zero_point: int) -> Quantisation:
    return Quantisation((float(np.float32(scale)),), (zero_point,))


SPEC = replace(
    svdf.SPEC,
    kind="svdf_s8",
    lower=_lower,
    extents=extents.svdf_s8,
    sample=_sample,
    tflite=TfliteBinding(("SVDF",), _read, svdf.write),
    dtypes=frozenset({DType.INT8}),
    limits="int8 with an int8 state of any zero point; RELU; state is kept from run to run",
)
