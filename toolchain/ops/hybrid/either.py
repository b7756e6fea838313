"""A float kind whose weights may be int8: two specs, told apart by their attributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from toolchain.ir import DType, Graph, Op
from toolchain.ops.convolution.common import WEIGHTS
from toolchain.ops.spec import OF_AN_OPERATOR, OpSpec, ReadOp, TfliteBinding, TfliteNode, WrittenOp

_SHARE = 0.4
"""Of the samples with int8 weights."""


def float_or_hybrid(plain: OpSpec, hybrid: OpSpec) -> OpSpec:
    """The spec of float inputs with float weights (`plain`) or int8 ones (`hybrid`).

    Each has one class of attributes of its own.
    """
    assert isinstance(plain.attributes, type) and isinstance(hybrid.attributes, type)
    assert plain.tflite is not None and hybrid.tflite is not None
    of_plain, of_hybrid = plain.tflite, hybrid.tflite
    stored = hybrid.attributes

    def ask(name: str) -> Callable[..., Any]:
        def answer(op: Op, graph: Graph, *rest: Any) -> Any:
            chosen = hybrid if isinstance(op.attributes, stored) else plain
            return getattr(chosen, name)(op, graph, *rest)

        return answer

    def read(node: TfliteNode) -> ReadOp:
        weights = node.inputs[WEIGHTS] if len(node.inputs) > WEIGHTS else None
        int8 = weights is not None and weights.dtype is DType.INT8
        return (of_hybrid if int8 else of_plain).read(node)

    def write(op: Op, graph: Graph) -> WrittenOp:
        return (of_hybrid if isinstance(op.attributes, stored) else of_plain).write(op, graph)

    def sample(rng: np.random.Generator) -> Graph:
        return (hybrid if rng.random() < _SHARE else plain).sample(rng)

    fields: dict[str, Any] = {name: ask(name) for name in OF_AN_OPERATOR}
    return replace(
        plain,
        attributes=(plain.attributes, hybrid.attributes),
        sample=sample,
        tflite=TfliteBinding(of_plain.builtins, read, write),
        limits=f"{plain.limits}; {hybrid.limits}",
        **fields,
    )
