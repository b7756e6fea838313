"""Values of an ONNX file's tensors: activations and constants of the graph.

It is filled operator by operator while the file is walked. It answers questions of the readers
about an operator's inputs, and about the operators behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.errors import InputError
from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.onnx import quantisation
from toolchain.frontends.onnx.builder import GraphBuilder, Mark, Value, shorten
from toolchain.frontends.onnx.layout import Layout
from toolchain.frontends.onnx.model import Node
from toolchain.frontends.onnx.operators import Trait, operator
from toolchain.frontends.onnx.quantisation import DEQUANTIZE, QUANTIZE, UNIT
from toolchain.frontends.onnx.shapes import ShapedModel
from toolchain.frontends.onnx.stored import Stored
from toolchain.ir import DType, Quantisation
from toolchain.ops.spec import OnnxData
from toolchain.ops.unary.quantize import Quantize

_PLAIN = frozenset({"bool", "int32", "int64"})


@dataclass(frozen=True)
class Marks:
    """How much there was when an operator's reading began."""

    builder: Mark
    activations: int
    ends: int
    absorbed: frozenset[str]


class Values:
    """The tensors, by name in the file.

    shapes       of every tensor, as ONNX has them.
    activations  tensors that are computed, or given by the caller.
    constants    tensors with data.
    float_ends   the model's float32 inputs, which become int8 at the scales that operators want.
    absorbed     first outputs of operators that the operator before them computes too.
    stored       by name, what QuantizeLinear operators give.
    file_constants  the file's own constants.
    builder      the graph so far.
    """

    def __init__(self, shaped: ShapedModel) -> None:
        model = shaped.model
        self.shapes = shaped.shapes
        self.opset = model.opset
        self.builder = GraphBuilder(end.name for end in model.inputs)
        self.activations: dict[str, Value] = {}
        self.constants: dict[str, OnnxData] = {n: OnnxData(d) for n, d in model.constants.items()}
        self.float_ends: set[str] = set()
        self._stored_ends: dict[tuple[str, Quantisation], Value] = {}
        self.absorbed: set[str] = set()
        self.stored: dict[str, Stored] = {}
        self.file_constants = model.constants
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

    def value(self, node: Node, index: int, *, in_float: bool = False) -> Value:
        """The activation that `node` reads as its input `index`.

        It is in float32 if the operator computes so, or if nothing says how it is quantised.
        """
        name = node.inputs[index]
        if name in self.float_ends:
            q = None if in_float else self._coming([node]) or self.coming_quantisation(name)
            return (
                Value(name, Layout.of(self.shapes[name]), UNIT)
                if q is None
                else (self._stored_end(name, q))
            )
        if name in self.activations:
            value = self.activations[name]
            return self.builder.real(value) if in_float else value
        if name in self.constants:
            raise RefusedError(f"its input {index} is constant", "")
        raise InputError(f"{node} lacks its input {index}")

    def reads_reals(self, node: Node) -> bool:
        """Whether an operand is held in float32."""
        operands = (self.activations[name] for name in node.inputs if name in self.activations)
        return any(map(self.builder.is_real, operands))

    def all_plain(self, node: Node) -> bool:
        """Whether all operands are bools and integers without a scale, and one is computed."""
        names = [name for name in node.inputs if name]
        moving = [self.activations[name] for name in names if name in self.activations]
        types = {self.builder.tensor(value.tensor).dtype for value in moving}
        known = (self.constants[name] for name in names if name in self.constants)
        whole = all(c.quantisation is None and c.data.dtype.name in _PLAIN for c in known)
        listed = all(name in self.activations or name in self.constants for name in names)
        return bool(moving) and listed and whole and {t.value for t in types} <= _PLAIN

    def plain_dtype(self, name: str) -> DType:
        """The element type of an operand without a scale."""
        if name in self.constants:
            return DType(self.constants[name].data.dtype.name)
        return self.builder.tensor(self.activations[name].tensor).dtype

    def mark(self) -> Marks:
        """The number of values so far, for `undo`."""
        ends = len(self._stored_ends)
        return Marks(self.builder.mark(), len(self.activations), ends, frozenset(self.absorbed))

    def undo(self, marks: Marks) -> None:
        """Take back what was defined since `marks`."""
        self.builder.undo(marks.builder)
        shorten(self.activations, marks.activations)
        shorten(self._stored_ends, marks.ends)
        self.absorbed = set(marks.absorbed)

    def define(self, name: str, value: Value) -> None:
        self.activations[name] = value

    def absorb(self, node: Node) -> None:
        """Mark `node` as computed by the operator before it."""
        self.absorbed.add(node.outputs[0])

    def is_used(self, name: str) -> bool:
        """Whether an operator or the caller reads the tensor."""
        return bool(self.users(name)) or self.is_output(name)

    def only_consumer(self, name: str) -> Node | None:
        users = self.users(name)
        return users[0] if len(users) == 1 and name not in self._outputs else None

    def clip_bounds(self, node: Node) -> tuple[float, float] | None:
        """The least and largest result of an operator that clips; None if it does not, or if they
        are not constant.
        """
        clips = operator(node.operator).clips
        return None if clips is None else clips(self, node)

    def only_products_read(self, name: str) -> bool:
        """Whether only products by quantised weights follow, or the end of the model.

        They would all have to be float32 if the tensor were, at a multiple of the cost.
        """
        pending, seen = [name], {name}
        while pending:
            for node in self.users(pending.pop()):
                traits = operator(node.operator).traits
                if Trait.KEEPS_VALUES in traits and Trait.JOINS not in traits:
                    fresh = [out for out in node.outputs if out and out not in seen]
                    pending += fresh
                    seen.update(fresh)
                elif Trait.PRODUCT not in traits or not self._has_stored_operand(node):
                    return False
        return True

    def _has_stored_operand(self, node: Node) -> bool:
        """Whether the weights, or another operand, come from stored integers."""
        makers = (self._makers.get(name) for name in node.inputs)
        return any(maker and maker.operator == DEQUANTIZE for maker in makers)

    def coming_quantisation(self, name: str) -> Quantisation | None:
        """The quantisation with which the model later stores the tensor `name`, if it says so.

        None if the caller gets it as float before.
        """
        return None if name in self._outputs else self._coming(self.users(name))

    def _coming(self, users: Sequence[Node]) -> Quantisation | None:
        """The quantisation with which these operators, or those that follow them, store the values
        that they read.

        The range of a part says nothing of the rest: where parts are stored, all must be, alike.
        """
        pending, seen = [(user, False) for user in users], set[str]()
        of_parts: list[Quantisation | None] = []
        while pending:
            node, is_part = pending.pop(0)
            traits = operator(node.operator).traits
            if node.operator in (QUANTIZE, DEQUANTIZE):
                given = self.parameters(node)
                fits = not given.quantisation.per_channel and given.dtype != "int32"
                if fits and not is_part:
                    return given.quantisation
                of_parts.append(given.quantisation if fits else None)
            elif Trait.KEEPS_VALUES in traits:
                fresh = [out for out in node.outputs if out and out not in seen]
                is_part = is_part or Trait.TAKES_PARTS in traits
                pending += [(user, is_part) for name in fresh for user in self.users(name)]
                seen.update(fresh)
            else:
                of_parts.append(None)
        first = next(iter(of_parts), None)
        return first if all(given == first for given in of_parts) else None

    def parameters(self, node: Node) -> quantisation.Parameters:
        """The parameters of a QuantizeLinear or DequantizeLinear."""
        constants = self.file_constants
        if node.operator == QUANTIZE:
            return quantisation.parameters(
                node, constants, quantisation.stored_type(node, constants)
            )
        return quantisation.parameters(node, constants, self._dtype(node.inputs[0]))

    def _dtype(self, name: str) -> str:
        """The element type of integers: as a QuantizeLinear or the caller gave what was moved."""
        while name in self._makers:
            maker = self._makers[name]
            if maker.operator == QUANTIZE:
                return quantisation.stored_type(maker, self.file_constants)
            name = maker.inputs[0] if maker.inputs else ""
        return next((end.dtype for end in self._inputs if end.name == name), "uint8")

    def holds_integers(self, node: Node) -> bool:
        """Whether the operator computes on stored integers instead of real values."""
        picks = Trait.PICKS in operator(node.operator).traits
        operands = node.inputs[:1] if picks else node.inputs
        return any(name in self.activations and self.activations[name].stored for name in operands)

    def _stored_end(self, name: str, q: Quantisation) -> Value:
        """The model's float input as int8. Operators may want it each at a scale of their own."""
        key = (name, q)
        if key not in self._stored_ends:
            tensor = self.as_int8(name, name, q)
            self._stored_ends[key] = Value(tensor, Layout.of(self.shapes[name]), q)
        return self._stored_ends[key]

    def as_int8(self, name: str, tensor: str, q: Quantisation) -> str:
        """The model's input `tensor`, float32 or uint8, as int8."""
        source = self.builder.tensor(tensor)
        inner = self.builder.add_tensor(f"{name}/int8", source.shape, DType.INT8, q)
        attributes = Quantize(DType.INT8, halves_to_even=source.dtype is DType.FLOAT32)
        self.builder.add_op("quantize", f"{name}/quantize", attributes, [tensor], [inner])
        return inner
