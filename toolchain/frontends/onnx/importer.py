"""Walks a resolved ONNX model and builds the Graph.

QuantizeLinear and DequantizeLinear only say how a real-valued tensor is stored. Transpose, Reshape
and similar operators only rename dimensions (`layout`). Everything else is read by the `onnx`
binding of an OpSpec.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType

import numpy as np

from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.front_end import LeftInFloatError, Problem, RefusedError
from toolchain.frontends.onnx import plain_readers, quantisation
from toolchain.frontends.onnx.arithmetic import UNIT, Arithmetic, Int8
from toolchain.frontends.onnx.builder import Value, shifted
from toolchain.frontends.onnx.file import End, Node
from toolchain.frontends.onnx.float_arithmetic import Float32
from toolchain.frontends.onnx.float_readers import READERS
from toolchain.frontends.onnx.layout import Layout
from toolchain.frontends.onnx.node import NodeView
from toolchain.frontends.onnx.operators import BLOCKS, COPYING, MOVES_INTEGERS, RENAMING
from toolchain.frontends.onnx.shapes import ShapedModel
from toolchain.frontends.onnx.stored import Stored
from toolchain.frontends.onnx.values import Values
from toolchain.ir import DType, Graph, Quantisation
from toolchain.ops import specs
from toolchain.ops.hybrid.dynamic import ROWS_ARE_STORED
from toolchain.ops.spec import OnnxBinding
from toolchain.ops.unary.cast import Cast

_CAST = MappingProxyType({1: DType.FLOAT32, 6: DType.INT32, 7: DType.INT64, 9: DType.BOOL})
"""By ONNX's number of the element type, the types that Cast makes."""


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
    """Walks the operators in the file's order. `problems`: those that cannot be read."""

    def __init__(self, shaped: ShapedModel, arithmetic: Arithmetic) -> None:
        self._arithmetic = arithmetic
        self._in_float = Float32()
        self._plain = plain_readers.Plain()
        self._model = shaped.model
        self._values = Values(shaped)
        self.problems: list[Problem] = []
        self.faults: list[str] = []
        """What contradicts itself in the file, to report together with the problems."""
        self.stored: dict[str, Stored] = {}
        """By name in the file, what QuantizeLinear operators give."""

    def graph(self, name: str) -> Graph | None:
        """The whole graph; None if there are `problems`."""
        for end in self._model.inputs:
            if self._values.is_output(end.name):
                raise UnsupportedError(
                    f"the output {end.name!r} is the input itself; read it there"
                )
        inputs = [self._enter(end) for end in self._model.inputs]
        for node in self._model.nodes:
            if node.outputs[0] not in self._values.absorbed:
                self._read(node)
        if self.problems or self.faults:
            return None
        outputs = [(self._leave(end), end.name) for end in self._model.outputs]
        return self._values.builder.graph(name, inputs, outputs)

    # The model's ends.

    def _enter(self, end: End) -> str:
        """The model's input as a tensor of the graph, and as an int8 value."""
        shape = self._values.shapes[end.name]
        if end.dtype in ("int32", "int64"):
            tensor = self._values.builder.add_input(end.name, shape, DType(end.dtype), None)
            self._values.activations[end.name] = Value(tensor, Layout.of(shape), None, True)
            return tensor
        if end.dtype == "bool":
            tensor = self._values.builder.add_input(end.name, shape, DType.BOOL, None)
            self._values.activations[end.name] = Value(tensor, Layout.of(shape), UNIT)
            return tensor
        if end.dtype not in ("float32", "int8", "uint8"):
            raise UnsupportedError(
                f"the input {end.name!r} is of type {end.dtype}; float32, int8, uint8, bool and "
                "indices (int32, int64) can be"
            )
        if self._arithmetic.in_float and end.dtype == "float32":
            tensor = self._values.builder.add_input(end.name, shape, DType.FLOAT32, None)
            self._values.activations[end.name] = Value(tensor, Layout.of(shape), UNIT)
            return tensor
        q = self._values.coming_quantisation(end.name)
        dtype = DType(end.dtype)
        if dtype is DType.FLOAT32:
            self._values.float_ends.add(end.name)
            return self._values.builder.add_input(end.name, shape, dtype, None)
        q = q or Quantisation((1.0,), (0,))
        stored = shifted(q, 128) if dtype is DType.UINT8 else q
        tensor = self._values.builder.add_input(end.name, shape, dtype, stored)
        inner = tensor
        if dtype is DType.UINT8:
            inner = self._values.as_int8(end.name, tensor, q)
        self._values.activations[end.name] = Value(inner, Layout.of(shape), q, True)
        return tensor

    def _leave(self, end: End) -> str:
        """The tensor that holds the model's output in the type that the file gives it."""
        if end.dtype not in {d.value for d in DType}:
            raise UnsupportedError(f"the output {end.name!r} is of type {end.dtype}")
        dtype = DType(end.dtype)
        if end.name not in self._values.activations:
            found = self._values.constants[end.name]
            data = np.ascontiguousarray(found.real.astype(dtype.numpy))
            return self._values.builder.add_tensor(end.name, data.shape, dtype, None, data)
        return self._values.builder.converted_output(
            self._values.activations[end.name], end.name, dtype
        )

    # Operators.

    def _read(self, node: Node) -> None:
        before = set(self._values.absorbed)
        try:
            self._step(node)
        except RefusedError as error:
            self._values.absorbed = before  # what it would have computed, too, is read by itself
            self._report(node, error.why, error.remedy)
        except (UnsupportedError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            if isinstance(error, UnsupportedError):
                self._report(node, str(error), "")
            else:
                self._fault(node, f"{node} contradicts itself: {error}")
        except InputError as error:
            self._fault(node, str(error))

    def _report(self, node: Node, why: str, remedy: str) -> None:
        self.problems.append(Problem(node.operator, node.index, why, remedy))
        self._pretend(node)

    def _fault(self, node: Node, text: str) -> None:
        self.faults.append(text)
        self._pretend(node)

    def _pretend(self, node: Node) -> None:
        """Define what the operator would give, so that reading can go on."""
        for name in filter(None, node.outputs):
            shape = self._values.shapes[name]
            q = Quantisation((1.0,), (0,))
            if name not in self._values.activations and name not in self._values.constants:
                tensor = self._values.builder.add_tensor(name, shape, DType.INT8, q)
                self._values.activations[name] = Value(tensor, Layout.of(shape), q)

    def _step(self, node: Node) -> None:
        readers: dict[str, Callable[[Node], None]] = {
            "QuantizeLinear": self._quantize,
            "DequantizeLinear": self._dequantize,
            "Cast": self._cast,
            "Transpose": self._transpose,
        }
        if node.operator in readers:
            readers[node.operator](node)
        elif node.operator in RENAMING:
            self._rename(node)
        elif node.operator in COPYING:
            self._copy(node)
        elif node.operator in BLOCKS:
            self._move_blocks(node)
        elif node.operator in plain_readers.OPERATORS and self._values.all_plain(node):
            read = plain_readers.READERS.get(node.operator) or bindings()[node.operator].read
            read(NodeView(self._values, node, self._plain))
        elif node.operator in bindings() or node.operator in READERS:
            self._check_reals(node)
            self._compute(node)
        else:
            raise RefusedError(*quantisation.refusal(node.operator))

    def _compute(self, node: Node) -> None:
        """Read an operator in the model's arithmetic, or in float32 where the file left it so."""
        if self._arithmetic.in_float or self._values.holds_integers(node):
            stored = self._arithmetic.in_float and self._picks_stored(node)
            self._read_in(Int8() if stored else self._arithmetic, node)
            return
        refusal: LeftInFloatError | None = None
        if not self._values.reads_reals(node):
            marks = self._values.mark()
            try:
                self._read_in(self._arithmetic, node)
                return
            except LeftInFloatError as error:
                self._values.undo(marks)
                refusal = error
        try:
            self._read_in(self._in_float, node)
        except RefusedError as error:
            if refusal is None:
                raise
            why = f"{refusal.why}; in float32: {error.why}"
            raise RefusedError(why, error.remedy or refusal.remedy) from error

    def _picks_stored(self, node: Node) -> bool:
        """Whether the operator moves rows of a table of dequantised integers, so that it can move
        the integers; or multiplies such rows.
        """
        if ROWS_ARE_STORED in node.attributes:
            return True
        table = self._values.constants.get(node.inputs[0])
        if node.operator != "Gather" or table is None or table.quantisation is None:
            return False
        return table.data.dtype == np.int8 and not table.quantisation.per_channel

    def _read_in(self, arithmetic: Arithmetic, node: Node) -> None:
        own = arithmetic.readers.get(node.operator)
        if own is None and node.operator not in bindings():
            raise LeftInFloatError("it has no int8 form")
        (own or bindings()[node.operator].read)(NodeView(self._values, node, arithmetic))

    def _check_reals(self, node: Node) -> None:
        """Raises RefusedError for arithmetic on stored integers, whose scale the file ignores."""
        if not self._values.holds_integers(node) or node.operator in MOVES_INTEGERS:
            return
        raise RefusedError(
            "it computes on integers without their scale and zero point",
            "put DequantizeLinear before it and QuantizeLinear after it",
        )

    def _quantize(self, node: Node) -> None:
        found = self._values.parameters(node)
        if found.quantisation.per_channel or found.dtype == "int32":
            raise RefusedError("activations quantised per channel", "quantise them per tensor")
        value = self._values.value(node, 0)
        stored = self._values.builder.requantised(value, found.quantisation, node.outputs[0])
        self._values.define(node.outputs[0], replace(stored, stored=True))
        self.stored[node.outputs[0]] = Stored(stored.tensor, stored.layout)

    def _dequantize(self, node: Node) -> None:
        source = node.inputs[0]
        if source in self._values.constants:
            self._values.constants[node.outputs[0]] = quantisation.dequantised_constant(
                node, self._values.constants[source].data, self._model.constants
            )
            return
        value = self._values.value(node, 0)
        found = self._values.parameters(node)
        if value.quantisation != found.quantisation:
            raise RefusedError(
                "it reads integers with another scale or zero point than they were written with",
                "quantise the model with onnxruntime.quantization.quantize_static",
            )
        self._values.define(node.outputs[0], replace(value, stored=False))

    def _cast(self, node: Node) -> None:
        """A real value is float32 already; other changes of type are operators."""
        builder, value = self._values.builder, self._values.value(node, 0)
        source, to = builder.tensor(value.tensor).dtype, _CAST.get(int(node.attributes["to"]))
        if to is None or (value.stored and source is DType.INT8):
            raise RefusedError("a change to or from narrow integers", "quantise instead")
        if source in (DType.INT8, DType.FLOAT32) and to is DType.FLOAT32:
            self._values.define(node.outputs[0], value)
            return
        value = builder.real(value)
        tensor = builder.add_tensor(node.outputs[0], builder.tensor(value.tensor).shape, to, None)
        builder.add_op("cast", node.name or node.outputs[0], Cast(to), [value.tensor], [tensor])
        whole = to in (DType.INT32, DType.INT64)
        made = Value(tensor, value.layout, None if whole else UNIT, whole)
        self._values.define(node.outputs[0], made)

    def _transpose(self, node: Node) -> None:
        rank = len(self._values.shapes[node.inputs[0]])
        permutation = list(node.attributes.get("perm", range(rank)[::-1]))
        if sorted(permutation) != list(range(rank)):
            raise InputError(f"{node} permutes {rank} dimensions by {permutation}")
        if node.inputs[0] in self._values.constants:
            constant = self._values.constants[node.inputs[0]]
            self._values.constants[node.outputs[0]] = quantisation.transposed_constant(
                constant, permutation
            )
            return
        value = self._values.value(node, 0)
        layout = value.layout.transposed(permutation)
        self._values.define(node.outputs[0], replace(value, layout=layout))

    def _rename(self, node: Node) -> None:
        before, shape = self._values.shapes[node.inputs[0]], self._values.shapes[node.outputs[0]]
        if math.prod(before) != math.prod(shape):
            raise InputError(f"{node} makes {list(shape)} of {list(before)}")
        if node.inputs[0] in self._values.constants:
            constant = self._values.constants[node.inputs[0]]
            self._values.constants[node.outputs[0]] = quantisation.reshaped_constant(
                constant, shape
            )
            return
        self._values.define(node.outputs[0], self._seen_as(self._values.value(node, 0), shape))

    def _seen_as(self, value: Value, shape: tuple[int, ...]) -> Value:
        """`value` reshaped; its data move only where they must."""
        layout = value.layout.reshaped(shape)
        if layout is not None:
            return replace(value, layout=layout)
        ordered = self._values.builder.ordered(value, range(len(value.shape)))
        return replace(ordered, layout=Layout.of(shape))

    def _move_blocks(self, node: Node) -> None:
        """DepthToSpace and SpaceToDepth: a reshape, a transpose and a reshape."""
        value, block = self._values.value(node, 0), int(node.attributes["blocksize"])
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
        self._values.define(
            node.outputs[0], self._seen_as(moved, self._values.shapes[node.outputs[0]])
        )

    def _copy(self, node: Node) -> None:
        if any(self._is_used(name) for name in filter(None, node.outputs[1:])):
            raise RefusedError("its mask is used", "export the model for inference")
        if node.inputs[0] in self._values.constants:
            self._values.constants[node.outputs[0]] = self._values.constants[node.inputs[0]]
        else:
            self._values.define(node.outputs[0], self._values.value(node, 0))

    def _is_used(self, name: str) -> bool:
        return bool(self._values.users(name)) or self._values.is_output(name)
