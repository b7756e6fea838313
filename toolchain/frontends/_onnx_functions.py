"""Chains of float operators between one quantised tensor and a QuantizeLinear: one table.

onnxruntime's quantiser leaves some operators in float (Div and Erf of a gelu, the Sigmoid of a
SiLU). Where all that such a chain computes depends on one 8-bit value and on constants, it has 256
possible results: ONNX Runtime's arithmetic itself, done here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator

from toolchain.errors import UnsupportedError
from toolchain.frontends import _onnx_quantisation as quantisation
from toolchain.frontends._onnx_file import Array, Node
from toolchain.frontends._onnx_shapes import ShapedModel, node_proto
from toolchain.ops.lookup import FUNCTIONS, TABLE_OPERATOR

_UNARY = frozenset(FUNCTIONS) | {"Relu"}
_BINARY = frozenset({"Add", "Div", "Max", "Min", "Mul", "Pow", "Sub"})
_VALUES = np.arange(-128, 128)


@dataclass(frozen=True)
class _Chain:
    """What a real-valued tensor is computed from: `source`, dequantised, by `nodes` in order."""

    source: str
    nodes: tuple[Node, ...] = ()


def fuse_functions(shaped: ShapedModel) -> ShapedModel:
    """The same model with such chains as TABLE_OPERATOR."""
    model = shaped.model
    scalars = _scalars(shaped)
    chains: dict[str, _Chain] = {}
    for node in model.nodes:
        if node.operator == "DequantizeLinear" and node.inputs[0] not in model.constants:
            chains[node.outputs[0]] = _Chain(node.outputs[0])
        elif node.operator in _UNARY | _BINARY:
            found = _extended(node, chains, scalars, shaped.shapes)
            if found is not None:
                chains[node.outputs[0]] = found
    makers = {name: node for node in model.nodes for name in node.outputs}
    made: dict[str, Node] = {}
    for node in model.nodes:
        chain = chains.get(node.inputs[0]) if node.operator == "QuantizeLinear" else None
        if chain is not None and _worth(chain):
            table = _table(chain, makers[chain.source], shaped, scalars)
            if table is not None:
                last = makers[node.inputs[0]]
                made[node.inputs[0]] = Node(
                    last.index,
                    TABLE_OPERATOR,
                    last.name,
                    (chain.source,),
                    last.outputs,
                    {"reals": table},
                )
    if not made:
        return shaped
    nodes = [made.get(node.outputs[0], node) for node in model.nodes]
    ends = [end.name for end in model.outputs]
    return replace(shaped, model=replace(model, nodes=_needed(nodes, ends)))


def _scalars(shaped: ShapedModel) -> dict[str, Array]:
    """Constants of one element, as the float operators see them."""
    constants = shaped.model.constants
    found = {name: data for name, data in constants.items() if data.size == 1}
    for node in shaped.model.nodes:
        if node.operator == "DequantizeLinear" and node.inputs[0] in found:
            try:
                value = quantisation.dequantised_constant(
                    node, constants[node.inputs[0]], constants
                )
            except UnsupportedError:  # reported where the operator is read
                continue
            found[node.outputs[0]] = value.real.astype(np.float32)
    return found


def _extended(
    node: Node,
    chains: Mapping[str, _Chain],
    scalars: Mapping[str, Array],
    shapes: Mapping[str, tuple[int, ...]],
) -> _Chain | None:
    """The chain that `node` ends; None where it depends on anything but one source."""
    inputs = [name for name in node.inputs if name]
    moving = [name for name in inputs if name not in scalars]
    if not moving or any(name not in chains for name in moving):
        return None
    sources = {chains[name].source for name in moving}
    if len(sources) != 1 or shapes[node.outputs[0]] != shapes[moving[0]]:
        return None
    before = {id(one): one for name in moving for one in chains[name].nodes}
    ordered = sorted((*before.values(), node), key=lambda one: one.index)
    return _Chain(sources.pop(), tuple(ordered))


def _worth(chain: _Chain) -> bool:
    """More than what a kind reads by itself, fused with the activation after it."""
    kinds = [node.operator for node in chain.nodes]
    if kinds and kinds[-1] in ("Clip", "Relu"):
        kinds.pop()
    return len(kinds) > 1


def _table(
    chain: _Chain, source: Node, shaped: ShapedModel, scalars: Mapping[str, Array]
) -> NDArray[np.float32] | None:
    """What the chain gives for stored values -128 to 127; None where the evaluator fails."""
    found = quantisation.parameters(source, shaped.model.constants, "uint8")
    q = found.quantisation
    if q.per_channel:
        return None
    reals = (_VALUES - q.zero_point).astype(np.float32) * np.float32(q.scale)
    used = {name for node in chain.nodes for name in node.inputs if name in scalars}
    feeds = {chain.source: reals} | {name: scalars[name].reshape(()) for name in used}
    last = chain.nodes[-1].outputs[0]
    graph = helper.make_graph(
        [node_proto(node) for node in chain.nodes],
        "chain",
        [onnx.ValueInfoProto(name=name) for name in feeds],
        [onnx.ValueInfoProto(name=last)],
    )
    imports = [helper.make_opsetid("", max(shaped.model.opset, 10))]
    try:
        with np.errstate(all="ignore"):
            (result,) = ReferenceEvaluator(helper.make_model(graph, opset_imports=imports)).run(
                None, feeds
            )
    except Exception:  # whatever an operator's own implementation raises: it is read one by one
        return None
    table = np.asarray(result, dtype=np.float32).reshape(-1)
    return table if table.size == _VALUES.size else None


def _needed(nodes: Sequence[Node], ends: Sequence[str]) -> tuple[Node, ...]:
    """The nodes that something still reads."""
    wanted, kept = set(ends), []
    for node in reversed(nodes):
        if any(name in wanted for name in node.outputs):
            wanted.update(node.inputs)
            kept.append(node)
    return tuple(reversed(kept))
