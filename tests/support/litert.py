"""LiteRT's reference kernels, called directly on the bytes of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

from tests.support.tflite_writer import tflite_bytes
from toolchain.frontends.tflite.file import read_file
from toolchain.ir import Graph
from toolchain.ops import forms
from toolchain.reference.judges import rule_of
from toolchain.reference.process import Runtime

_SERIES = (
    "elu",
    "exp",
    "gelu",
    "log",
    "log_softmax",
    "logistic",
    "lstm",
    "softmax",
    "tanh",
)
OWN_FUNCTIONS = frozenset(
    {
        "atan2",
        "float_function",
        "local_response_norm",
        "lstm.hybrid",
        "pow",
        "rfft2d",
        "rnn",
        *(f"{kind}.float32" for kind in _SERIES),
    }
)
"""Kinds whose exp and the like are not those of a C library: the last bits differ. RFFT2D of
LiteRT's computes in double."""


def judged_by_reference_kernels(kind: str) -> bool:
    """Whether a random sample of the kind is one that LiteRT's reference kernels judge."""
    return graph_judged_by_reference_kernels(forms()[kind].sample(np.random.default_rng(0)))


def graph_judged_by_reference_kernels(graph: Graph) -> bool:
    """Whether LiteRT's reference kernels judge a graph of one operator."""
    model = read_file(tflite_bytes(graph))
    return rule_of(model.ops[0], model).judges[0] is Runtime.LITERT_REFERENCE


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
