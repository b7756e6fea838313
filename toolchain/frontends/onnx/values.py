"""What each tensor of an ONNX file became: an activation or a constant.

It is filled operator by operator while the file is walked. It answers what the readers of operators
ask about their inputs and about what follows them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.onnx import quantisation
from toolchain.frontends.onnx.builder import GraphBuilder, Value
from toolchain.frontends.onnx.file import Node
from toolchain.frontends.onnx.layout import Layout
from toolchain.frontends.onnx.operators import KEEPS_VALUES
from toolchain.frontends.onnx.shapes import ShapedModel
from toolchain.ir import DType, Quantisation
from toolchain.ops.spec import OnnxData
from toolchain.ops.unary.quantize import Quantize


class Values:
    """The tensors, by name in the file.

    shapes       of every tensor, as ONNX has them.
    activations  tensors that are computed, or given by the caller.
    constants    tensors with data.
    float_ends   the model's float32 inputs, each as int8 at the scales that operators want.
    absorbed     first outputs of operators that the operator before them computes too.
    builder      the graph so far.
    """

    def __init__(self, shaped: ShapedModel) -> None:
        model = shaped.model
        self.shapes = shaped.shapes
        self.opset = model.opset
        self.builder = GraphBuilder()
        self.activations: dict[str, Value] = {}
        self.constants: dict[str, OnnxData] = {n: OnnxData(d) for n, d in model.constants.items()}
        self.float_ends: dict[str, dict[Quantisation, Value]] = {}
        self.absorbed: set[str] = set()
        self._file_constants = model.constants
        self._inputs = model.inputs
        self._outputs = {end.name for end in model.outputs}
        self._makers = {out: node for node in model.nodes for out in node.outputs if out}
        self._users: dict[str, list[Node]] = {}
        for node in model.nodes:
            for name in dict.fromkeys(filter(None, node.inputs)):
                self._users.setdefault(name, []).append(node)

    def users(self, name: str) -> Sequence[Node]:
        """Operators that read the tensor."""
        return self._users.get(name, [])

    def is_output(self, name: str) -> bool:
        """Whether the tensor is an output of the model."""
        return name in self._outputs

    def value(self, node: Node, index: int) -> Value:
        """The activation that `node` reads as its input `index`."""
        name = node.inputs[index]
        if name in self.float_ends:
            return self._stored_end(name, self._coming([node]))
        if name in self.activations:
            return self.activations[name]
        if name in self.constants:
            raise RefusedError(f"its input {index} is constant", "simplify the model (onnxsim)")
        raise InputError(f"{node} lacks its input {index}")

    def define(self, name: str, value: Value) -> None:
        self.activations[name] = value

    def absorb(self, node: Node) -> None:
        """Mark `node` as computed by the operator before it."""
        self.absorbed.add(node.outputs[0])

    def only_consumer(self, name: str) -> Node | None:
        users = self.users(name)
        return users[0] if len(users) == 1 and name not in self._outputs else None

    def clip_bounds(self, node: Node) -> tuple[float, float] | None:
        """The least and largest result of a Relu or Clip; None if they are not constant."""
        if node.operator == "Relu":
            return 0.0, float("inf")
        bounds = [
            float(node.attributes.get("min", -np.inf)),
            float(node.attributes.get("max", np.inf)),
        ]
        for place, name in enumerate(node.inputs[1:3]):
            if not name:
                continue
            if name not in self.constants or self.constants[name].data.size != 1:
                return None
            bounds[place] = float(self.constants[name].real.reshape(()))
        return bounds[0], bounds[1]

    def coming_quantisation(self, name: str) -> Quantisation | None:
        """How the model later stores the tensor `name`, if it says so.

        None if the caller gets it as float before.
        """
        return None if name in self._outputs else self._coming(self.users(name))

    def _coming(self, users: Sequence[Node]) -> Quantisation | None:
        """How these operators, or those that follow them, store the values that they read."""
        pending, seen = list(users), set[str]()
        while pending:
            node = pending.pop(0)
            if node.operator in ("QuantizeLinear", "DequantizeLinear"):
                found = self.parameters(node)
                if not found.quantisation.per_channel and found.dtype != "int32":
                    return found.quantisation
            elif node.operator in KEEPS_VALUES:
                fresh = [out for out in node.outputs if out and out not in seen]
                pending += [user for name in fresh for user in self.users(name)]
                seen.update(fresh)
        return None

    def parameters(self, node: Node) -> quantisation.Parameters:
        """The parameters of a QuantizeLinear or DequantizeLinear."""
        constants = self._file_constants
        if node.operator == "QuantizeLinear":
            return quantisation.parameters(
                node, constants, quantisation.stored_type(node, constants)
            )
        return quantisation.parameters(node, constants, self._dtype(node.inputs[0]))

    def _dtype(self, name: str) -> str:
        """The element type of integers: as a QuantizeLinear or the caller gave what was moved."""
        while name in self._makers:
            maker = self._makers[name]
            if maker.operator == "QuantizeLinear":
                return quantisation.stored_type(maker, self._file_constants)
            name = maker.inputs[0] if maker.inputs else ""
        return next((end.dtype for end in self._inputs if end.name == name), "uint8")

    def holds_integers(self, node: Node) -> bool:
        """Whether the operator computes on stored integers instead of real values."""
        operands = node.inputs[:1] if node.operator == "Gather" else node.inputs
        return any(name in self.activations and self.activations[name].stored for name in operands)

    def _stored_end(self, name: str, wanted: Quantisation | None) -> Value:
        """The model's float input as int8. Operators may want it each at a scale of their own."""
        q = wanted or self.coming_quantisation(name) or Quantisation((1.0,), (0,))
        stored = self.float_ends[name]
        if q not in stored:
            shape = self.shapes[name]
            stored[q] = Value(self.as_int8(name, name, q), Layout.of(shape), q)
        return stored[q]

    def as_int8(self, name: str, tensor: str, q: Quantisation) -> str:
        """The model's input `tensor`, float32 or uint8, as int8."""
        source = self.builder.tensor(tensor)
        inner = self.builder.add_tensor(f"{name}/int8", source.shape, DType.INT8, q)
        attributes = Quantize(DType.INT8, halves_to_even=source.dtype is DType.FLOAT32)
        self.builder.add_op("quantize", f"{name}/quantize", attributes, [tensor], [inner])
        return inner
