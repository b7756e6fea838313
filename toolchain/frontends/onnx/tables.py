"""Chains of operators between one quantised tensor and a QuantizeLinear become one lookup table.

onnxruntime's quantiser leaves some operators in float (Div and Erf of a gelu, the Sigmoid of a
SiLU), and stores others as 8 bits in between. If everything such a chain computes depends on one
8-bit value and on constants, it has 256 possible results. They are computed here with ONNX
Runtime's arithmetic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.onnx import quantisation
from toolchain.frontends.onnx.evaluation import evaluate
from toolchain.frontends.onnx.model import Array, Node, needed
from toolchain.frontends.onnx.operators import Trait, operator
from toolchain.frontends.onnx.quantisation import DEQUANTIZE, QUANTIZE
from toolchain.frontends.onnx.shapes import ShapedModel
from toolchain.ops.unary.lookup import FUNCTIONS, TABLE_OPERATOR

_STORING = frozenset({DEQUANTIZE, QUANTIZE})
_VALUES = np.arange(-128, 128)


@dataclass(frozen=True)
class _Chain:
    """The computation of a tensor: `source`, dequantised, then `nodes` in order."""

    source: str
    nodes: tuple[Node, ...] = ()


def fuse_tables(shaped: ShapedModel) -> ShapedModel:
    """The model with such chains as TABLE_OPERATOR."""
    model = shaped.model
    scalars = _scalars(shaped)
    once = _read_once(shaped)
    chains: dict[str, _Chain] = {}
    for node in model.nodes:
        ended = None
        if _computes(node) or (
            node.operator in _STORING and once >= {node.inputs[0], node.outputs[0]}
        ):
            ended = _extended(node, chains, scalars, shaped.shapes)
        if ended is not None:
            chains[node.outputs[0]] = ended
        elif node.operator == DEQUANTIZE and node.inputs[0] not in model.constants:
            chains[node.outputs[0]] = _Chain(node.outputs[0])
    makers = {name: node for node in model.nodes for name in node.outputs}
    made: dict[str, Node] = {}
    for node in model.nodes:
        chain = chains.get(node.inputs[0]) if node.operator == QUANTIZE else None
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
    return replace(shaped, model=replace(model, nodes=needed(nodes, model.outputs)))


def _computes(node: Node) -> bool:
    """Whether a table can hold the operator's result."""
    row = operator(node.operator)
    return node.operator in FUNCTIONS or row.clips is not None or Trait.IN_TABLES in row.traits


def _read_once(shaped: ShapedModel) -> set[str]:
    """Tensors that one operator reads, once, and nobody else."""
    uses = Counter(name for node in shaped.model.nodes for name in node.inputs)
    uses.update(end.name for end in shaped.model.outputs)
    return {name for name, count in uses.items() if count == 1}


def _scalars(shaped: ShapedModel) -> dict[str, Array]:
    """Constants of one element, as the float operators see them."""
    constants = shaped.model.constants
    scalars = {name: data for name, data in constants.items() if data.size == 1}
    for node in shaped.model.nodes:
        if node.operator == DEQUANTIZE and node.inputs[0] in scalars:
            try:
                value = quantisation.dequantised_constant(
                    node, constants[node.inputs[0]], constants
                )
            except UnsupportedError:  # reported where the operator is read
                continue
            scalars[node.outputs[0]] = value.real.astype(np.float32)
    return scalars


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
    """Whether the chain has more operators than a kind reads by itself, fused with the activation
    after it."""
    kinds = [node.operator for node in chain.nodes if node.operator not in _STORING]
    if kinds and operator(kinds[-1]).clips is not None:
        kinds.pop()
    return len(kinds) > 1


def _table(
    chain: _Chain, source: Node, shaped: ShapedModel, scalars: Mapping[str, Array]
) -> NDArray[np.float32] | None:
    """The chain's results for stored values -128 to 127; None where the evaluator fails."""
    try:
        q = quantisation.parameters(source, shaped.model.constants, "uint8").quantisation
    except UnsupportedError:  # reported where the operator is read
        return None
    if q.per_channel:
        return None
    reals = (_VALUES - q.zero_point).astype(np.float32) * np.float32(q.scale)
    values: dict[str, Array] = {chain.source: reals}
    try:
        with np.errstate(all="ignore"):
            for node in chain.nodes:
                given = {n: values[n] if n in values else scalars[n] for n in node.inputs if n}
                if node.operator in _STORING:
                    values[node.outputs[0]] = _stored(node, [given[n] for n in node.inputs])
                else:
                    values.update(evaluate(node, given, shaped.model.opset))
    except (InputError, IndexError, KeyError):  # it is read node by node, and reported there
        return None
    table = np.asarray(values[chain.nodes[-1].outputs[0]], dtype=np.float32).reshape(-1)
    return table if table.size == _VALUES.size else None


def _stored(node: Node, given: Sequence[Array]) -> Array:
    """Whether a node is QuantizeLinear or DequantizeLinear with one scale and a zero point of 8
    bits."""
    values, scale, zero = given[0], np.float32(given[1].astype(np.float32)), given[2]
    if zero.dtype not in (np.int8, np.uint8):
        raise InputError(f"{node} has a zero point of type {zero.dtype}")
    if node.operator == DEQUANTIZE:
        return (values.astype(np.int32) - zero.astype(np.int32)).astype(np.float32) * scale
    info = np.iinfo(zero.dtype.name)
    quotient = np.nan_to_num(values.astype(np.float32) / scale, nan=-1e9, posinf=1e9, neginf=-1e9)
    whole = np.clip(np.rint(quotient) + int(zero), int(info.min), int(info.max))
    stored: Array = whole.astype(zero.dtype)
    return stored
