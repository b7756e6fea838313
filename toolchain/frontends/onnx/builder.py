"""Builds the Graph: names, tensors, operators, and the data movement that layouts require."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import UnsupportedError
from toolchain.frontends.onnx.layout import Layout, channels_last, move
from toolchain.frontends.onnx.quantisation import UNIT
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ir.names import Names, fresh_name
from toolchain.ops.elementwise.rows import Lookup
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.movement.transpose import Transpose
from toolchain.ops.spec import Array
from toolchain.ops.unary.quantize import Quantize


@dataclass(frozen=True)
class Value:
    """A real-valued ONNX tensor: the graph's tensor that holds it, and its layout there.

    `stored`: the file has not dequantised it (yet), so operators see its integers.
    """

    tensor: str
    layout: Layout
    quantisation: Quantisation | None
    stored: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.shape


@dataclass(frozen=True)
class Mark:
    """How much of a graph there was."""

    tensors: int
    ops: int
    op_names: int
    done: int


def shorten(mapping: dict[Any, Any], length: int) -> None:
    """Drop the newest entries, down to `length`."""
    while len(mapping) > length:
        mapping.popitem()


class GraphBuilder:
    """`inputs`: names of the graph's inputs, which no other tensor gets."""

    def __init__(self, inputs: Iterable[str]) -> None:
        self._tensors: dict[str, Tensor] = {}
        self._taken: ChainMap[str, Any] = ChainMap(dict.fromkeys(inputs), self._tensors)
        self._ops: list[Op] = []
        self._op_names: dict[str, None] = {}
        self._done: dict[tuple[object, ...], str] = {}

    def add_tensor(
        self,
        name: str,
        shape: Sequence[int],
        dtype: DType,
        quantisation: Quantisation | None,
        constant: Array | None = None,
    ) -> str:
        """Add a tensor; return its name, which is `name` where that is free."""
        unique = fresh_name(name, self._taken)
        self._tensors[unique] = Tensor(unique, tuple(shape), dtype, quantisation, constant)
        return unique

    def add_input(
        self, name: str, shape: Sequence[int], dtype: DType, quantisation: Quantisation | None
    ) -> str:
        """One of the graph's inputs, which has the name that the file gives it."""
        self._tensors[name] = Tensor(name, tuple(shape), dtype, quantisation)
        return name

    def add_op(
        self,
        kind: str,
        name: str,
        attributes: Attributes,
        inputs: Sequence[str],
        outputs: Sequence[str],
    ) -> None:
        """Add an operator, named as its first output where `name` is empty."""
        unique = fresh_name(name or outputs[0], self._op_names)
        self._op_names[unique] = None
        self._ops.append(Op(kind, unique, tuple(inputs), tuple(outputs), attributes))

    def mark(self) -> Mark:
        """The size of the graph so far, for `undo`."""
        return Mark(len(self._tensors), len(self._ops), len(self._op_names), len(self._done))

    def undo(self, mark: Mark) -> None:
        """Take back what was added since `mark`."""
        shorten(self._tensors, mark.tensors)
        shorten(self._op_names, mark.op_names)
        shorten(self._done, mark.done)
        del self._ops[mark.ops :]

    def is_real(self, value: Value) -> bool:
        """Whether the value is held in float32."""
        return self._tensors[value.tensor].dtype is DType.FLOAT32

    def real(self, value: Value) -> Value:
        """`value` in float32; integers without a scale stay what they are."""
        source = self._tensors[value.tensor]
        if source.dtype is not DType.INT8:
            return value
        key = ("real", value.tensor)
        if key not in self._done:
            stem = f"{value.tensor}/real"
            output = self.add_tensor(stem, source.shape, DType.FLOAT32, None)
            self.add_op("dequantize", stem, Attributes(), [value.tensor], [output])
            self._done[key] = output
        return Value(self._done[key], value.layout, UNIT)

    def tensor(self, name: str) -> Tensor:
        return self._tensors[name]

    def reshaped(self, name: str, shape: Sequence[int]) -> str:
        """A view of tensor `name` as `shape`."""
        source, wanted = self._tensors[name], tuple(shape)
        if source.shape == wanted:
            return name
        key = ("reshape", name, wanted)
        if key not in self._done:
            stem = f"{name}/as_{'x'.join(map(str, wanted)) or 'scalar'}"
            output = self.add_tensor(stem, wanted, source.dtype, source.quantisation)
            self.add_op("reshape", stem, Reshape(wanted), [name], [output])
            self._done[key] = output
        return self._done[key]

    def _transposed(self, name: str, permutation: tuple[int, ...]) -> str:
        source = self._tensors[name]
        key = ("transpose", name, permutation)
        if key not in self._done:
            shape = tuple(source.shape[axis] for axis in permutation)
            output = self.add_tensor(f"{name}/moved", shape, source.dtype, source.quantisation)
            stem = f"{name}/move"
            self.add_op("transpose", stem, Transpose(permutation, layout=True), [name], [output])
            self._done[key] = output
        return self._done[key]

    def ordered(self, value: Value, axes: Sequence[int]) -> Value:
        """`value` with whole dimensions in the order `axes`; moves data if necessary."""
        if value.layout.lies_as(axes):
            return value
        whole = value.layout.axes()
        if whole is not None:
            read_as = tuple(value.shape[axis] for axis in whole)
            permutation = tuple(whole.index(axis) for axis in axes)
        else:
            read_as, permutation = move(value.layout, value.layout.order_of(axes))
        moved = self._transposed(self.reshaped(value.tensor, read_as), permutation)
        return replace(value, tensor=moved, layout=Layout.of(value.shape, axes))

    def operand(self, value: Value, axes: Sequence[int], shape: Sequence[int] | None = None) -> str:
        """The tensor that holds `value` in the order `axes`, viewed as `shape`."""
        wanted = tuple(value.shape[axis] for axis in axes) if shape is None else tuple(shape)
        return self.reshaped(self.ordered(value, axes).tensor, wanted)

    def axes(self, value: Value) -> tuple[int, ...]:
        """The order of the dimensions of `value`; if one is split up, the order to move it to."""
        rank = len(value.shape)
        return value.layout.axes() or (channels_last(rank) if rank == 4 else tuple(range(rank)))

    def rows(self, value: Value) -> tuple[str, NDArray[np.intp]]:
        """`value` as a matrix whose rows are its last dimension, in stored order.

        Returns the tensor, and for each place in a row the index stored there.
        """
        *leading, last = range(len(value.shape))
        layout = value.layout
        head = layout.order_of(leading)
        if layout.order[: len(head)] != head:
            value = self.ordered(value, (*leading, last))
            layout = value.layout
            head = layout.order_of(leading)
        depth = value.shape[-1]
        logical, lies = layout.dims[-1], layout.order[len(head) :]
        numbers = np.arange(depth).reshape([layout.sizes[f] for f in logical])
        places = numbers.transpose([logical.index(f) for f in lies]).reshape(-1)
        rows = math.prod(value.shape[:-1])
        return self.reshaped(value.tensor, (rows, depth)), places.astype(np.intp)

    def requantised(self, value: Value, quantisation: Quantisation, name: str) -> Value:
        """`value` as int8 with this scale and zero point."""
        if value.quantisation == quantisation and not self.is_real(value):
            return value
        key = ("requantise", value.tensor, quantisation)
        if key not in self._done:
            source = self._tensors[value.tensor]
            output = self.add_tensor(name, source.shape, DType.INT8, quantisation)
            if source.dtype is DType.FLOAT32:
                rounding = Quantize(DType.INT8, halves_to_even=True)
                self.add_op("quantize", name, rounding, [value.tensor], [output])
            else:
                self.add_op("lookup", name, Lookup("Identity"), [value.tensor], [output])
            self._done[key] = output
        return Value(self._done[key], value.layout, quantisation)

    def converted_output(self, value: Value, name: str, dtype: DType) -> str:
        """The model's output `name`: `value` row-major, as int8, uint8 or float32.

        Raises UnsupportedError if it has a type that cannot be converted to the declared one.
        """
        tensor = self.operand(value, range(len(value.shape)))
        source = self._tensors[tensor]
        if source.dtype == dtype:
            return tensor
        if dtype is DType.FLOAT32 and source.dtype is DType.INT8:
            output = self.add_tensor(name, source.shape, dtype, None)
            self.add_op("dequantize", name, Attributes(), [tensor], [output])
            return output
        if source.quantisation is None:
            raise UnsupportedError(
                f"the output {name!r} is declared as {dtype.value}, and holds "
                f"{source.dtype.value}; declare it as what it is"
            )
        q = shifted(source.q, 128)
        output = self.add_tensor(name, source.shape, dtype, q)
        self.add_op("quantize", name, Quantize(dtype), [tensor], [output])
        return output

    def graph(self, name: str, inputs: Sequence[str], outputs: Sequence[tuple[str, str]]) -> Graph:
        """The finished graph; `outputs` are pairs of a tensor and the name it must have."""
        names: dict[str, str] = {}
        final = []
        for tensor, wanted in outputs:
            if tensor in inputs or tensor in names or self._tensors[tensor].is_constant:
                source = self._tensors[tensor]
                copy = self.add_tensor(
                    f"{tensor}/copy", source.shape, source.dtype, source.quantisation
                )
                self.add_op("reshape", copy, Reshape(source.shape), [tensor], [copy])
                tensor = copy
            names[tensor] = wanted
            final.append(wanted)
        taken, free = set(names.values()), Names((*self._tensors, *names.values()))
        for tensor in self._tensors:
            if tensor not in names and tensor in taken:
                names[tensor] = free.fresh(f"{tensor}/inner")

        def renamed(old: str) -> str:
            return names.get(old, old)

        tensors = [replace(t, name=renamed(t.name)) for t in self._tensors.values()]
        ops = [
            replace(
                op,
                inputs=tuple(map(renamed, op.inputs)),
                outputs=tuple(map(renamed, op.outputs)),
            )
            for op in self._ops
        ]
        whole = Graph.build(name, tensors, ops, [renamed(i) for i in inputs], final)
        return whole.with_ops(ops)


def shifted(q: Quantisation, by: int) -> Quantisation:
    """The quantisation of equal real values whose stored integers are higher by `by`."""
    return replace(q, zero_points=tuple(zero + by for zero in q.zero_points))
