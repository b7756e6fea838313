"""Walks a resolved ONNX model and builds the Graph.

The row of an operator (`operators`) says what reads it: as a change of names and layouts alone, on
integers without a scale, on quantised values, or in float32.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.front_end import LeftInFloatError, Problem, RefusedError
from toolchain.frontends.onnx.arithmetic import Arithmetic, Float32, Plain
from toolchain.frontends.onnx.builder import Value, shifted
from toolchain.frontends.onnx.layout import Layout
from toolchain.frontends.onnx.model import End, Node
from toolchain.frontends.onnx.node import NodeView
from toolchain.frontends.onnx.operators import Operator, Trait, operator
from toolchain.frontends.onnx.quantisation import UNIT
from toolchain.frontends.onnx.shapes import ShapedModel
from toolchain.frontends.onnx.stored import Stored
from toolchain.frontends.onnx.values import Values
from toolchain.ir import DType, Graph, Quantisation
from toolchain.ops.hybrid.dynamic import ROWS_ARE_STORED


class Importer:
    """Walks the operators in the file's order. `problems`: those that cannot be read."""

    def __init__(self, shaped: ShapedModel, arithmetic: Arithmetic) -> None:
        self._arithmetic = arithmetic
        self._in_float = Float32()
        self._plain = Plain()
        self._model = shaped.model
        self._values = Values(shaped)
        self.problems: list[Problem] = []
        self.faults: list[str] = []
        """Contradictions in the file, to report together with the problems."""

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

    @property
    def stored(self) -> Mapping[str, Stored]:
        """Results of QuantizeLinear operators, by name in the file; of all operators, where the
        model's activations are floats.
        """
        if not self._arithmetic.in_float:
            return self._values.stored
        ends = {end.name for end in (*self._model.inputs, *self._model.outputs)}
        return {
            name: Stored(value.tensor, value.layout)
            for name, value in self._values.activations.items()
            if name not in ends and self._values.builder.is_real(value)
        }

    # The model's ends.

    def _enter(self, end: End) -> str:
        """The model's input as a tensor of the graph, and as an int8 value."""
        shape = self._values.shapes[end.name]
        if end.dtype not in ("float32", "int8", "uint8", "bool", "int32", "int64"):
            raise UnsupportedError(
                f"the input {end.name!r} is of type {end.dtype}; float32, int8, uint8, bool and "
                "indices (int32, int64) can be"
            )
        dtype = DType(end.dtype)
        whole, real = dtype in (DType.INT32, DType.INT64), dtype is DType.FLOAT32
        if whole or dtype is DType.BOOL or (real and self._arithmetic.in_float):
            tensor = self._values.builder.add_input(end.name, shape, dtype, None)
            entered = Value(tensor, Layout.of(shape), None if whole else UNIT, whole)
            self._values.activations[end.name] = entered
            return tensor
        q = self._values.coming_quantisation(end.name)
        if real:
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
            constant = self._values.constants[end.name]
            data = np.ascontiguousarray(constant.real.astype(dtype.numpy))
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
            self._values.absorbed = before  # read them by themselves
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
        """Define the results of an operator that could not be read, so that reading can go on."""
        for name in filter(None, node.outputs):
            shape = self._values.shapes[name]
            q = Quantisation((1.0,), (0,))
            if name not in self._values.activations and name not in self._values.constants:
                tensor = self._values.builder.add_tensor(name, shape, DType.INT8, q)
                self._values.activations[name] = Value(tensor, Layout.of(shape), q)

    def _step(self, node: Node) -> None:
        row = operator(node.operator)
        if row.arranges is not None:
            row.arranges(self._values, node)
        elif row.plain is not None and self._values.all_plain(node):
            self._read_in(self._plain, row, node)
        elif row.computes:
            self._check_reals(row, node)
            self._compute(row, node)
        else:
            raise RefusedError(*row.refusal)

    def _compute(self, row: Operator, node: Node) -> None:
        """Read an operator in the model's arithmetic, or in float32 where the file left it so."""
        if self._arithmetic.in_float or self._values.holds_integers(node):
            stored = self._arithmetic.in_float and self._picks_stored(row, node)
            self._read_in(Arithmetic() if stored else self._arithmetic, row, node)
            return
        refusal: LeftInFloatError | None = None
        if not self._values.reads_reals(node):
            marks = self._values.mark()
            try:
                self._read_in(self._arithmetic, row, node)
                return
            except LeftInFloatError as error:
                self._values.undo(marks)
                refusal = error
        try:
            self._read_in(self._in_float, row, node)
        except RefusedError as error:
            if refusal is None:
                raise
            why = f"{refusal.why}; in float32: {error.why}"
            raise RefusedError(why, error.remedy or refusal.remedy) from error

    def _picks_stored(self, row: Operator, node: Node) -> bool:
        """Whether the operator moves rows of a table of dequantised integers, so that it can move
        the integers; or multiplies such rows.
        """
        if ROWS_ARE_STORED in node.attributes:
            return True
        table = self._values.constants.get(node.inputs[0])
        if Trait.PICKS not in row.traits or table is None or table.quantisation is None:
            return False
        return table.data.dtype == np.int8 and not table.quantisation.per_channel

    def _read_in(self, arithmetic: Arithmetic, row: Operator, node: Node) -> None:
        read = arithmetic.reader(row)
        if read is None:
            raise LeftInFloatError("it has no int8 form")
        read(NodeView(self._values, node, arithmetic))

    def _check_reals(self, row: Operator, node: Node) -> None:
        """Check an operator's operands. Raises RefusedError for arithmetic on stored integers,
        whose scale the file ignores, and on integers that have none.
        """
        if not self._values.holds_integers(node) or row.moves_integers:
            return
        if self._values.all_plain(node):
            raise RefusedError(
                "it is read on quantised and float32 values, not on int32 or int64",
                "put a Cast to float32 before it, and a Cast back behind it",
            )
        raise RefusedError(
            "it computes on integers without their scale and zero point",
            "put DequantizeLinear before it and QuantizeLinear after it",
        )
