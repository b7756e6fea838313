"""Casts of stored integers to float: dequantisation that is written as arithmetic.

Cast, Sub of a zero point and Mul by a scale compute what DequantizeLinear does, in the order in
which it does, and become one. Without a Sub the zero point is 0; without a Mul the scale is 1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.frontends.onnx.model import Array, Node, names_of
from toolchain.frontends.onnx.operators import Trait, operator
from toolchain.frontends.onnx.operators.arranging import CAST
from toolchain.frontends.onnx.operators.pairs import MUL, SUB
from toolchain.frontends.onnx.quantisation import DEQUANTIZE, QUANTIZE, stored_type
from toolchain.frontends.onnx.shapes import ShapedModel
from toolchain.ir.tensor import is_scale

_FLOAT32 = 1
"""ONNX's number of the element type."""
_NARROW = ("int8", "uint8")


def join_casts(shaped: ShapedModel) -> ShapedModel:
    """The model with such casts, and the arithmetic behind them, as DequantizeLinear."""
    casts = [node for node in shaped.model.nodes if _is_to_float(node)]
    if not casts:
        return shaped
    joiner = _Joiner(shaped)
    for cast in casts:
        joiner.join(cast)
    return joiner.model()


def _is_to_float(node: Node) -> bool:
    return node.operator == CAST and node.attributes.get("to") == _FLOAT32


class _Joiner:
    """`_made`: by the first operator of a chain, what stands for it; None for its others."""

    def __init__(self, shaped: ShapedModel) -> None:
        self._shaped = shaped
        self._names = names_of(shaped.model)
        self._constants = dict(shaped.model.constants)
        self._makers = {name: n for n in shaped.model.nodes for name in n.outputs if name}
        self._outputs = {end.name for end in shaped.model.outputs}
        self._made: dict[str, Node | None] = {}

    def join(self, cast: Node) -> None:
        """Join what begins with `cast`, if it reads stored integers."""
        dtype = self._dtype(cast.inputs[0])
        if dtype not in _NARROW:
            return
        chain, scale, zero_point = [cast], np.float32(1), 0
        subtracted = self._followed(cast, SUB)
        if subtracted is not None and _whole(subtracted[1], dtype):
            chain, zero_point = [*chain, subtracted[0]], int(subtracted[1])
        scaled = self._followed(chain[-1], MUL)
        if scaled is not None and is_scale(float(scaled[1])):
            chain, scale = [*chain, scaled[0]], scaled[1]
        self._made |= dict.fromkeys((node.outputs[0] for node in chain), None)
        inputs = (
            cast.inputs[0],
            self._constant("scale", np.array(scale, np.float32)),
            self._constant("zero_point", np.array(zero_point, dtype)),
        )
        self._made[cast.outputs[0]] = Node(
            cast.index, DEQUANTIZE, cast.name, inputs, chain[-1].outputs, {}
        )

    def model(self) -> ShapedModel:
        """The model with what was joined."""
        model = self._shaped.model
        nodes = [self._made.get(node.outputs[0], node) for node in model.nodes]
        kept = tuple(node for node in nodes if node is not None)
        return replace(self._shaped, model=replace(model, nodes=kept, constants=self._constants))

    def _dtype(self, name: str) -> str:
        """The type of what QuantizeLinear or the caller gave, also where it was moved since."""
        while name in self._makers:
            maker = self._makers[name]
            if maker.operator == QUANTIZE:
                return stored_type(maker, self._constants)
            if Trait.KEEPS_VALUES not in operator(maker.operator).traits:
                return ""
            name = maker.inputs[0]
        return next((end.dtype for end in self._shaped.model.inputs if end.name == name), "")

    def _followed(self, node: Node, kind: str) -> tuple[Node, np.float32] | None:
        """The only reader of the result, if it is of this kind, and the number that it takes."""
        name = node.outputs[0]
        users = [n for n in self._shaped.model.nodes if name in n.inputs]
        if name in self._outputs or len(users) != 1 or users[0].operator != kind:
            return None
        (user,) = users
        other = user.inputs[1] if user.inputs[0] == name or kind == SUB else user.inputs[0]
        constant = self._constants.get(other)
        same = self._shaped.shapes[user.outputs[0]] == self._shaped.shapes[name]
        if constant is None or constant.size != 1 or constant.dtype != np.float32 or not same:
            return None
        return user, np.float32(constant.reshape(())[()])

    def _constant(self, stem: str, data: Array) -> str:
        name = self._names.fresh(f"thimble/{stem}")
        self._constants[name] = data
        return name


def _whole(number: np.float32, dtype: str) -> bool:
    """Whether the number is an integer of the type."""
    info = np.iinfo(dtype)
    return bool(info.min <= number <= info.max and number == np.floor(number))
