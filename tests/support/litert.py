"""LiteRT's reference kernels, called directly on the bytes of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

PLAIN_KERNELS = frozenset({"sum", "sum_s16", "elu"})
"""Kinds whose reference kernel is broken in LiteRT 2.3: its int8 SUM gives bytes that
have nothing to do with the sum, ELU is missing. Its plain kernel for SUM rescales in float32 where
TFLM rescales in fixed point, so 1 is allowed there."""

BEYOND_LITERT = frozenset({"svdf_s8"})
"""Kinds that only tflite-micro computes: LiteRT takes the state for int16 and reads beyond it."""

OWN_FUNCTIONS = frozenset({"softmax_f32", "unary_f32"})
"""Kinds whose exp and the like are not those of a C library: the last bits differ."""


def run_litert(
    model: bytes,
    inputs: Sequence[NDArray[Any]],
    resolver: OpResolverType = OpResolverType.BUILTIN_REF,
) -> list[NDArray[Any]]:
    """Outputs of one inference, in the model's order."""
    interpreter = Interpreter(
        model_content=model,
        num_threads=1,
        experimental_op_resolver_type=resolver,
    )
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
