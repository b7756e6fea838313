"""A ReLU, which the layer before computes at no cost, in place of an activation that is an operator
of its own: HardSwish, SiLU, Sigmoid, Tanh, GELU, LeakyReLU and others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from toolchain.advise.change import Change, Proposal
from toolchain.advise.surgery import CannotChangeError, Draft, only_reader
from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.elementwise.functions import UNARY
from toolchain.ops.elementwise.rows import function_of
from toolchain.ops.matmul.fully_connected import FullyConnected

_RELUS = ("relu", "relu6", "relu_n1_to_1", "relu_0_to_1")


def _proposals(graph: Graph, _: Core) -> Iterator[Proposal]:
    for op in graph.ops:
        attributes = op.attributes
        if not isinstance(attributes, Convolution | FullyConnected):
            continue
        if attributes.activation is not Activation.NONE:
            continue
        found = _function_behind(op, graph)
        if found is None:
            continue
        function, gone, last = found
        made = replace(attributes, activation=Activation.RELU)
        with contextlib.suppress(CannotChangeError):
            draft = Draft.of(graph)
            for other in gone:
                draft = draft.with_op(other)
            fused = replace(op, attributes=made, outputs=last.outputs)
            yield Proposal(
                op.name,
                f"activation {function} -> ReLU",
                draft.with_op(op, fused).settled(),
                f"activation='relu' in place of {function}",
                f"nn.ReLU() in place of {function}",
            )


def _function_behind(op: Op, graph: Graph) -> tuple[str, tuple[Op, ...], Op] | None:
    """The function of the layer's output that alone reads it: its name, its operators, and the last
    of them. x * sigmoid(x) is SiLU.
    """
    (output,) = op.outputs
    reader = only_reader(graph, output)
    if reader is not None:
        name = function_of(reader.kind, reader.attributes)
        plain = name in UNARY and name not in _RELUS and len(reader.outputs) == 1
        same = plain and graph.output(reader).dtype is graph.tensors[output].dtype
        return (name, (reader,), reader) if same else None
    readers = [graph.ops[i] for i in graph.consumers[output]]
    if len(readers) != 2 or output in graph.kept:
        return None
    gate, product = readers
    name = function_of(gate.kind, gate.attributes)
    gated = product.kind == "mul" and set(product.inputs) == {output, *gate.outputs}
    if name not in UNARY or not gated or only_reader(graph, gate.outputs[0]) is not product:
        return None
    return f"x * {name}(x)", (gate, product), product


CHANGE = Change("a ReLU in place of an activation that is an operator", _proposals)
