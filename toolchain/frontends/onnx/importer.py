"""Walks a resolved ONNX model and builds the Graph.

QuantizeLinear and DequantizeLinear only say how a real-valued tensor is stored; Transpose, Reshape
and the like only rename dimensions (`layout`). Everything else is read by the `onnx` binding
of an OpSpec.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType

import numpy as np

from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.front_end import Problem
from toolchain.frontends.onnx import quantisation
from toolchain.frontends.onnx.builder import GraphBuilder, Value, shifted
from toolchain.frontends.onnx.file import End, Node
from toolchain.frontends.onnx.float_readers import READERS, REAL, FloatNodeView
from toolchain.frontends.onnx.layout import Layout
from toolchain.frontends.onnx.node import NodeView
from toolchain.frontends.onnx.quantisation import RefusedError
from toolchain.frontends.onnx.shapes import ShapedModel
from toolchain.frontends.onnx.stored import Stored
from toolchain.ir import DType, Graph, Quantisation
from toolchain.ops import specs
from toolchain.ops.spec import OnnxBinding, OnnxData
from toolchain.ops.unary.quantize import Quantize

_RENAMING = frozenset({"Flatten", "Reshape", "Squeeze", "Unsqueeze"})
_COPYING = frozenset({"Identity", "Dropout"})
_BLOCKS = frozenset({"DepthToSpace", "SpaceToDepth"})
STRUCTURAL = _RENAMING | _COPYING | _BLOCKS | {"Transpose", "QuantizeLinear", "DequantizeLinear"}
"""What the front end itself understands."""

_KEEPS_VALUES = (
    _RENAMING
    | _COPYING
    | _BLOCKS
    | {"Clip", "Concat", "Gather", "GlobalMaxPool", "MaxPool", "Pad", "Relu", "Resize", "Slice"}
    | {"Expand", "Split", "Tile", "Transpose", "Upsample"}
)
"""Operators whose results are among their inputs: quantising before or after is the same."""


_MOVES_INTEGERS = (_KEEPS_VALUES - {"Relu", "Clip"}) | {"ArgMax", "ArgMin"}
"""Operators that do to stored integers what they do to the real values."""


@cache
def bindings() -> Mapping[str, OnnxBinding]:
    """For each ONNX operator the binding that reads it."""
    found: dict[str, OnnxBinding] = {}
    for spec in specs().values():
        for operator in spec.onnx.operators if spec.onnx else ():
            if operator in found:
                raise ImportError(f"two kinds read the ONNX operator {operator}")
            assert spec.onnx is not None
            found[operator] = spec.onnx
    return MappingProxyType(found)


class Importer:
    """`values` and `data` say what every tensor of the file became: an activation or a constant."""

    def __init__(self, shaped: ShapedModel, in_float: bool = False) -> None:
        self._in_float = in_float
        self._model = shaped.model
        self.shapes = shaped.shapes
        self.opset = shaped.model.opset
        self.builder = GraphBuilder()
        self.data: dict[str, OnnxData] = {n: OnnxData(d) for n, d in shaped.model.constants.items()}
        self._values: dict[str, Value] = {}
        self._float_ends: dict[str, dict[Quantisation, Value]] = {}
        self._absorbed: set[str] = set()
        self._outputs = {end.name for end in shaped.model.outputs}
        self._makers = {out: node for node in shaped.model.nodes for out in node.outputs if out}
        self._users: dict[str, list[Node]] = {}
        for node in shaped.model.nodes:
            for name in dict.fromkeys(filter(None, node.inputs)):
                self._users.setdefault(name, []).append(node)
        self.problems: list[Problem] = []
        self.stored: dict[str, Stored] = {}
        """By name in the file, what QuantizeLinear operators give."""

    def graph(self, name: str) -> Graph | None:
        """The whole graph; None where there are `problems`."""
        for end in self._model.inputs:
            if end.name in self._outputs:
                raise UnsupportedError(
                    f"the output {end.name!r} is the input itself; read it there"
                )
        inputs = [self._enter(end) for end in self._model.inputs]
        for node in self._model.nodes:
            if node.outputs[0] not in self._absorbed:
                self._read(node)
        if self.problems:
            return None
        outputs = [(self._leave(end), end.name) for end in self._model.outputs]
        return self.builder.graph(name, inputs, outputs)

    # What NodeView asks.

    def value(self, node: Node, index: int) -> Value:
        """The activation that `node` reads as its input `index`."""
        name = node.inputs[index]
        if name in self._float_ends:
            return self._stored_end(name, self._coming([node]))
        if name in self._values:
            return self._values[name]
        if name in self.data:
            raise RefusedError(f"its input {index} is constant", "simplify the model (onnxsim)")
        raise InputError(f"{node} lacks its input {index}")

    def define(self, name: str, value: Value) -> None:
        self._values[name] = value

    def absorb(self, node: Node) -> None:
        """`node` is computed by the operator before it."""
        self._absorbed.add(node.outputs[0])

    def only_consumer(self, name: str) -> Node | None:
        users = self._users.get(name, [])
        return users[0] if len(users) == 1 and name not in self._outputs else None

    def clip_bounds(self, node: Node) -> tuple[float, float] | None:
        """The least and largest result of a Relu or Clip; None where they are not constant."""
        if node.operator == "Relu":
            return 0.0, float("inf")
        bounds = [
            float(node.attributes.get("min", -np.inf)),
            float(node.attributes.get("max", np.inf)),
        ]
        for place, name in enumerate(node.inputs[1:3]):
            if not name:
                continue
            if name not in self.data or self.data[name].data.size != 1:
                return None
            bounds[place] = float(self.data[name].real.reshape(()))
        return bounds[0], bounds[1]

    def coming_quantisation(self, name: str) -> Quantisation | None:
        """How the model goes on to store the tensor `name`, if it says so.

        None where the caller gets it in float before.
        """
        return None if name in self._outputs else self._coming(self._users.get(name, []))

    def _coming(self, users: Sequence[Node]) -> Quantisation | None:
        """How these operators, or those that follow them, store the values that they read."""
        pending, seen = list(users), set[str]()
        while pending:
            node = pending.pop(0)
            if node.operator in ("QuantizeLinear", "DequantizeLinear"):
                found = self._parameters(node)
                if not found.quantisation.per_channel and found.dtype != "int32":
                    return found.quantisation
            elif node.operator in _KEEPS_VALUES:
                fresh = [out for out in node.outputs if out and out not in seen]
                pending += [user for name in fresh for user in self._users.get(name, [])]
                seen.update(fresh)
        return None

    def _parameters(self, node: Node) -> quantisation.Parameters:
        """What a QuantizeLinear or DequantizeLinear says."""
        constants = self._model.constants
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
                return quantisation.stored_type(maker, self._model.constants)
            name = maker.inputs[0] if maker.inputs else ""
        return next((end.dtype for end in self._model.inputs if end.name == name), "uint8")

    # The model's ends.

    def _enter(self, end: End) -> str:
        """The model's input as a tensor of the graph, and as an int8 value."""
        shape = self.shapes[end.name]
        if end.dtype in ("int32", "int64"):
            tensor = self.builder.add_tensor(end.name, shape, DType(end.dtype), None)
            self._values[end.name] = Value(tensor, Layout.of(shape), None, True)
            return tensor
        if end.dtype not in ("float32", "int8", "uint8"):
            raise UnsupportedError(
                f"the input {end.name!r} is of type {end.dtype}; float32, int8, uint8 and indices "
                "(int32, int64) can be"
            )
        if self._in_float and end.dtype == "float32":
            tensor = self.builder.add_tensor(end.name, shape, DType.FLOAT32, None)
            self._values[end.name] = Value(tensor, Layout.of(shape), REAL)
            return tensor
        q = self.coming_quantisation(end.name)
        if q is None and self._users.get(end.name):
            self._report(
                self._users[end.name][0],
                f"it reads the input {end.name!r}, which nothing quantises",
                quantisation.QUANTISE_HINT,
            )
        dtype = DType(end.dtype)
        if dtype is DType.FLOAT32:
            self._float_ends[end.name] = {}
            return self.builder.add_tensor(end.name, shape, dtype, None)
        q = q or Quantisation((1.0,), (0,))
        stored = shifted(q, 128) if dtype is DType.UINT8 else q
        tensor = self.builder.add_tensor(end.name, shape, dtype, stored)
        inner = tensor
        if dtype is DType.UINT8:
            inner = self._add_quantize(end.name, tensor, q)
        self._values[end.name] = Value(inner, Layout.of(shape), q, True)
        return tensor

    def _add_quantize(self, name: str, tensor: str, q: Quantisation) -> str:
        """The model's input `tensor`, float32 or uint8, as int8."""
        source = self.builder.tensor(tensor)
        inner = self.builder.add_tensor(f"{name}/int8", source.shape, DType.INT8, q)
        attributes = Quantize(DType.INT8, halves_to_even=source.dtype is DType.FLOAT32)
        self.builder.add_op("quantize", f"{name}/quantize", attributes, [tensor], [inner])
        return inner

    def _stored_end(self, name: str, wanted: Quantisation | None) -> Value:
        """The model's float input as int8. Operators may want it each at a scale of their own."""
        q = wanted or self.coming_quantisation(name) or Quantisation((1.0,), (0,))
        stored = self._float_ends[name]
        if q not in stored:
            shape = self.shapes[name]
            stored[q] = Value(self._add_quantize(name, name, q), Layout.of(shape), q)
        return stored[q]

    def _leave(self, end: End) -> str:
        """The tensor that holds the model's output in the type that the file gives it."""
        if end.name not in self._values:
            raise InputError(f"the output {end.name!r} is constant")
        if end.dtype not in {d.value for d in DType}:
            raise UnsupportedError(f"the output {end.name!r} is of type {end.dtype}")
        dtype = DType(end.dtype)
        return self.builder.converted_output(self._values[end.name], end.name, dtype)

    # Operators.

    def _read(self, node: Node) -> None:
        before = set(self._absorbed)
        try:
            self._step(node)
        except RefusedError as error:
            self._absorbed = before  # what it would have computed, too, is read by itself
            self._report(node, error.why, error.remedy)
        except (UnsupportedError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            if isinstance(error, UnsupportedError):
                self._report(node, str(error), "")
            else:
                raise InputError(f"{node} contradicts itself: {error}") from error

    def _report(self, node: Node, why: str, remedy: str) -> None:
        """Note a problem, and define what the operator would give so that reading can go on."""
        self.problems.append(Problem(node.operator, node.index, why, remedy))
        for name in filter(None, node.outputs):
            shape = self.shapes[name]
            q = Quantisation((1.0,), (0,))
            if name not in self._values and name not in self.data:
                tensor = self.builder.add_tensor(name, shape, DType.INT8, q)
                self._values[name] = Value(tensor, Layout.of(shape), q)

    def _step(self, node: Node) -> None:
        readers: dict[str, Callable[[Node], None]] = {
            "QuantizeLinear": self._quantize,
            "DequantizeLinear": self._dequantize,
            "Transpose": self._transpose,
        }
        if node.operator in readers:
            readers[node.operator](node)
        elif node.operator in _RENAMING:
            self._rename(node)
        elif node.operator in _COPYING:
            self._copy(node)
        elif node.operator in _BLOCKS:
            self._move_blocks(node)
        elif node.operator in bindings():
            self._check_reals(node)
            view = FloatNodeView(self, node) if self._in_float else NodeView(self, node)
            own = READERS.get(node.operator) if self._in_float else None
            (own or bindings()[node.operator].read)(view)
        else:
            raise RefusedError(*quantisation.refusal(node.operator))

    def holds_integers(self, node: Node) -> bool:
        """Whether the operator computes on stored integers rather than on what they mean."""
        operands = node.inputs[:1] if node.operator == "Gather" else node.inputs
        return any(name in self._values and self._values[name].stored for name in operands)

    def _check_reals(self, node: Node) -> None:
        """Raises RefusedError for arithmetic on stored integers, whose scale the file ignores."""
        if not self.holds_integers(node) or node.operator in _MOVES_INTEGERS:
            return
        raise RefusedError(
            "it computes on integers without their scale and zero point",
            "put DequantizeLinear before it and QuantizeLinear after it",
        )

    def _quantize(self, node: Node) -> None:
        found = self._parameters(node)
        if found.quantisation.per_channel or found.dtype == "int32":
            raise RefusedError("activations quantised per channel", "quantise them per tensor")
        value = self.value(node, 0)
        stored = self.builder.requantised(value, found.quantisation, node.outputs[0])
        self.define(node.outputs[0], replace(stored, stored=True))
        self.stored[node.outputs[0]] = Stored(stored.tensor, stored.layout)

    def _dequantize(self, node: Node) -> None:
        source = node.inputs[0]
        if source in self.data:
            self.data[node.outputs[0]] = quantisation.dequantised_constant(
                node, self.data[source].data, self._model.constants
            )
            return
        value = self.value(node, 0)
        found = self._parameters(node)
        if value.quantisation != found.quantisation:
            raise RefusedError(
                "it reads integers with another scale or zero point than they were written with",
                "quantise the model with onnxruntime.quantization.quantize_static",
            )
        self.define(node.outputs[0], replace(value, stored=False))

    def _transpose(self, node: Node) -> None:
        rank = len(self.shapes[node.inputs[0]])
        permutation = list(node.attributes.get("perm", range(rank)[::-1]))
        if sorted(permutation) != list(range(rank)):
            raise InputError(f"{node} permutes {rank} dimensions by {permutation}")
        if node.inputs[0] in self.data:
            constant = self.data[node.inputs[0]]
            self.data[node.outputs[0]] = quantisation.transposed_constant(constant, permutation)
            return
        value = self.value(node, 0)
        layout = value.layout.transposed(permutation)
        self.define(node.outputs[0], replace(value, layout=layout))

    def _rename(self, node: Node) -> None:
        before, shape = self.shapes[node.inputs[0]], self.shapes[node.outputs[0]]
        if math.prod(before) != math.prod(shape):
            raise InputError(f"{node} makes {list(shape)} of {list(before)}")
        if node.inputs[0] in self.data:
            constant = self.data[node.inputs[0]]
            self.data[node.outputs[0]] = quantisation.reshaped_constant(constant, shape)
            return
        self.define(node.outputs[0], self._seen_as(self.value(node, 0), shape))

    def _seen_as(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`value` reshaped; its data move only where they must."""
        layout = value.layout.reshaped(shape)
        if layout is not None:
            return replace(value, layout=layout)
        ordered = self.builder.ordered(value, range(len(value.shape)))
        return replace(ordered, layout=Layout.of(shape))

    def _move_blocks(self, node: Node) -> None:
        """DepthToSpace and SpaceToDepth: a reshape, a transpose and a reshape."""
        value, block = self.value(node, 0), int(node.attributes["blocksize"])
        batches, depth, height, width = value.shape
        if node.operator == "SpaceToDepth":
            cut = (batches, depth, height // block, block, width // block, block)
            permutation = (0, 3, 5, 1, 2, 4)
        elif node.attributes.get("mode", "DCR") == "DCR":
            cut = (batches, block, block, depth // block**2, height, width)
            permutation = (0, 3, 4, 1, 5, 2)
        else:
            cut = (batches, depth // block**2, block, block, height, width)
            permutation = (0, 1, 4, 2, 5, 3)
        parts = self._seen_as(value, cut)
        moved = replace(parts, layout=parts.layout.transposed(permutation))
        self.define(node.outputs[0], self._seen_as(moved, self.shapes[node.outputs[0]]))

    def _copy(self, node: Node) -> None:
        if any(name in self._users or name in self._outputs for name in node.outputs[1:] if name):
            raise RefusedError("its mask is used", "export the model for inference")
        if node.inputs[0] in self.data:
            self.data[node.outputs[0]] = self.data[node.inputs[0]]
        else:
            self.define(node.outputs[0], self.value(node, 0))
