"""SVDF with an int8 state, as converters of 2020 wrote it. See `svdf`.

The state has a zero point. LiteRT reads its bytes as int16, beyond the end, so the reference is
TFLM's `EvalIntegerSvdfReference<int8_t>` in the tflite-micro wheel: a new state is clamped before
its zero point is added, and wraps if the sum overflows int8. TFLM sources of late 2026 add before
they clamp; results differ only if a state saturates.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, Quantisation, State
from toolchain.ops.forms import Choice
from toolchain.ops.kernel import Kernel
from toolchain.ops.preference import NoKernelError
from toolchain.ops.recurrent.svdf_s16 import (
    FEATURES,
    INPUT,
    SPEC_S16,
    STATE,
    TIME,
    own_kernel,
    read_layer,
    write,
)
from toolchain.ops.spec import Array, ReadOp, TfliteBinding, TfliteNode


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    return own_kernel(op, graph, "thimble_svdf_s8")


def _cmsis_nn(op: Op, graph: Graph, core: Core) -> Kernel:
    raise NoKernelError("arm_svdf_s8 is not called: it knows no zero point of the state")


def _read(node: TfliteNode) -> ReadOp:
    state = node.inputs[STATE] if len(node.inputs) == 5 else None
    if state is not None and state.q.per_channel:
        raise node.unsupported(f"tensor {state.name!r} has not one scale and zero point")
    return read_layer(node, DType.INT8)


def _sample(rng: np.random.Generator) -> Graph:
    """An int16 layer with scales of its time filters and of its state to match int8."""
    wide = SPEC_S16.sample(rng)
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
    return Graph.build("sample", tensors, [op], wide.inputs, wide.outputs, [kept])


def _quantisation(scale: float, zero_point: int) -> Quantisation:
    return Quantisation((float(np.float32(scale)),), (zero_point,))


SPEC_S8 = replace(
    SPEC_S16,
    select=Choice(_select, _cmsis_nn),
    sample=_sample,
    tflite=TfliteBinding(("SVDF",), _read, write),
    dtype=DType.INT8,
    types=frozenset(),
    limits="int8 with an int8 state of any zero point; RELU; state is kept from run to run",
)
