"""Dynamic quantisation: the output of onnxruntime's quantize_dynamic, read as products of floats.

DynamicQuantizeLinear gives uint8 with a scale of the moment. MatMulInteger or ConvInteger sums
products of its integers and of weights; Cast and Mul by both scales make floats of the sums. These
become one operator, of the same name, with the inputs: floats, weights, none, zero points of the
weights, their scales. Tables of integers whose rows a Gather picks are dequantised before it, so
that it moves integers; where a MatMulInteger reads these rows, it becomes an operator with the
attribute ROWS_ARE_STORED, whose scales are the products of both.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.frontends.onnx.model import Node, names_of, needed
from toolchain.frontends.onnx.operators import Trait, operator
from toolchain.frontends.onnx.operators.arranging import CAST
from toolchain.frontends.onnx.operators.integers import CONV_INTEGER
from toolchain.frontends.onnx.operators.pairs import MUL
from toolchain.frontends.onnx.quantisation import DEQUANTIZE, DYNAMIC
from toolchain.frontends.onnx.shapes import ShapedModel
from toolchain.ops.hybrid.dynamic import ROWS_ARE_STORED

_FLOAT32 = 1
"""ONNX's number of the element type."""


def join_dynamic(shaped: ShapedModel) -> ShapedModel:
    """The model with such products as one operator each, and such tables dequantised."""
    wanted = Trait.JOINED | Trait.PICKS
    if not any(operator(node.operator).traits & wanted for node in shaped.model.nodes):
        return shaped
    joiner = _Joiner(shaped)
    nodes = [part for node in shaped.model.nodes for part in joiner.parts(node)]
    if nodes == list(shaped.model.nodes):
        return shaped
    constants = {**shaped.model.constants, joiner.unit: np.ones((), np.float32)}
    model = replace(shaped.model, nodes=needed(nodes, shaped.model.outputs), constants=constants)
    return ShapedModel(model, joiner.shapes)


class _Joiner:
    """`shapes`: those of the model, and of the tensors that are added. `unit`: the name of a scale
    of 1.
    """

    def __init__(self, shaped: ShapedModel) -> None:
        self.shapes = dict(shaped.shapes)
        self._constants = shaped.model.constants
        self._names = names_of(shaped.model)
        self._stored: dict[str, str] = {}
        self.unit = self._names.fresh("thimble/unit")
        self._makers = {name: n for n in shaped.model.nodes for name in n.outputs if name}

    def parts(self, node: Node) -> tuple[Node, ...]:
        """The operators that replace `node`; all that it reads is computed before."""
        if node.operator == DEQUANTIZE:
            return self._table(node)
        if node.operator != MUL:
            return (node,)
        for sums, scale in (node.inputs, node.inputs[::-1]):
            product = self._product(sums)
            if product is None or self.shapes[node.outputs[0]] != self.shapes[product.outputs[0]]:
                continue
            zero_points = product.inputs[3] if len(product.inputs) > 3 else ""
            source = self._makers.get(product.inputs[0])
            if source is None:
                continue
            if source.operator == DYNAMIC and _same_zero_point(product, source):
                scales = _weights_scales(self._makers.get(scale), source.outputs[1])
                if scales is not None and self._along_channels(product, scales):
                    inputs = (source.inputs[0], product.inputs[1], "", zero_points, scales)
                    return (replace(product, inputs=inputs, outputs=node.outputs),)
            elif self._picks(source) and self._along_channels(product, scale):
                added, rows = self._rows(source, product)
                inputs = (rows, product.inputs[1], "", zero_points, scale)
                stored = {**product.attributes, ROWS_ARE_STORED: 1}
                joined = replace(product, inputs=inputs, outputs=node.outputs, attributes=stored)
                return (*added, joined)
        return (node,)

    def _rows(self, gather: Node, product: Node) -> tuple[tuple[Node, ...], str]:
        """The picked rows with a scale of 1, and their name; no operators where another product
        reads them already.
        """
        picked = product.inputs[0]
        if picked in self._stored:
            return (), self._stored[picked]
        rows = self._stored[picked] = self._names.fresh(f"{picked}/stored")
        zero_point = product.inputs[2] if len(product.inputs) > 2 else ""
        return self._dequantised(gather, (self.unit, zero_point), rows), rows

    def _product(self, sums: str) -> Node | None:
        """The product of integers that `sums` are as floats."""
        cast = self._makers.get(sums)
        if cast is None or cast.operator != CAST or cast.attributes.get("to") != _FLOAT32:
            return None
        product = self._makers.get(cast.inputs[0])
        if product is None or product.operator == DYNAMIC:
            return None
        return product if Trait.JOINED in operator(product.operator).traits else None

    def _along_channels(self, product: Node, scales: str) -> bool:
        """Whether constant scales are one, or one for each channel of what the product gives."""
        data = self._constants.get(scales)
        if data is None:
            return False
        rank = len(self.shapes[product.outputs[0]])
        channel = 1 if product.operator == CONV_INTEGER else rank - 1
        aligned = (1,) * (rank - data.ndim) + data.shape
        return all(size == 1 for axis, size in enumerate(aligned) if axis != channel)

    def _table(self, node: Node) -> tuple[Node, ...]:
        """Put the Gather of a constant behind its DequantizeLinear instead of before it."""
        gather = self._makers.get(node.inputs[0])
        if gather is None or not self._picks(gather):
            return (node,)
        if any(self._constants.get(name, _NONE).size != 1 for name in node.inputs[1:]):
            return (node,)
        return self._dequantised(gather, node.inputs[1:], node.outputs[0])

    def _picks(self, node: Node) -> bool:
        table = self._constants.get(node.inputs[0], _NONE)
        picks = Trait.PICKS in operator(node.operator).traits
        return picks and table.dtype in (np.int8, np.uint8)

    def _dequantised(
        self, gather: Node, parameters: tuple[str, ...], output: str
    ) -> tuple[Node, Node]:
        """A table dequantised by the scale and zero point of these names, and the picking of its
        rows."""
        table, *picked = gather.inputs
        real = self._names.fresh(f"{output}/{table}")
        self.shapes[real] = self.shapes[table]
        self.shapes[output] = self.shapes[gather.outputs[0]]
        whole = Node(gather.index, DEQUANTIZE, gather.name, (table, *parameters), (real,), {})
        return whole, replace(gather, inputs=(real, *picked), outputs=(output,))


_NONE = np.zeros(0)


def _same_zero_point(product: Node, source: Node) -> bool:
    """Whether the product subtracts the zero point with which its first factor was stored."""
    given = product.inputs[2] if len(product.inputs) > 2 else ""
    return product.inputs[0] == source.outputs[0] and given == source.outputs[2]


def _weights_scales(mul: Node | None, scale: str) -> str | None:
    """The other factor of `scale` in the product of both scales."""
    if mul is None or mul.operator != MUL or scale not in mul.inputs:
        return None
    first, second = mul.inputs
    return second if first == scale else first
