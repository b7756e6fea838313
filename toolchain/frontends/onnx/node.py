"""One operator as its reader sees it: implements `ops.spec.OnnxNode`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.frontends.front_end import LeftInFloatError, RefusedError
from toolchain.frontends.onnx.arithmetic import Arithmetic
from toolchain.frontends.onnx.builder import Value
from toolchain.frontends.onnx.layout import Layout
from toolchain.frontends.onnx.model import Node
from toolchain.frontends.onnx.operators import Trait, operator
from toolchain.frontends.onnx.operators.pairs import ADD
from toolchain.frontends.onnx.quantisation import UNIT
from toolchain.frontends.onnx.values import Values
from toolchain.ir import Attributes, DType, Quantisation
from toolchain.ops.spec import Array, OnnxData

_QUANTISE_ALL = "quantise the whole model (quantize_static with all operator types)"
_LARGEST = np.finfo(np.float32).max


class NodeView:
    """Answers from `values`, in the model's arithmetic. `_last` is the tensor that emit defines."""

    def __init__(self, values: Values, node: Node, arithmetic: Arithmetic) -> None:
        self._values = values
        self._node = node
        self._arithmetic = arithmetic
        self._traits = operator(node.operator).traits
        self._last = node.outputs[0]

    @property
    def operator(self) -> str:
        return self._node.operator

    @property
    def name(self) -> str:
        return self._node.name or self._node.outputs[0]

    @property
    def opset(self) -> int:
        return self._values.opset

    @property
    def inputs(self) -> int:
        return len(self._node.inputs)

    @property
    def outputs(self) -> int:
        return len(self._node.outputs)

    @property
    def in_float(self) -> bool:
        return self._arithmetic.in_float

    @property
    def holds_integers(self) -> bool:
        return self._values.holds_integers(self._node)

    @property
    def plain(self) -> bool:
        return self._arithmetic.plain

    def plain_dtype(self, index: int) -> DType:
        return self._values.plain_dtype(self._node.inputs[index])

    def attribute(self, name: str, default: Any = None) -> Any:
        return self._node.attributes.get(name, default)

    def has(self, index: int) -> bool:
        return index < len(self._node.inputs) and bool(self._node.inputs[index])

    def is_constant(self, index: int) -> bool:
        return self._node.inputs[index] in self._values.constants

    def constant(self, index: int) -> OnnxData:
        if not self.is_constant(index):
            raise RefusedError(
                f"its input {index} is not constant",
                "export it as a constant, or as an initialiser that is no input of the model",
            )
        return self._values.constants[self._node.inputs[index]]

    def integers(self, index: int) -> tuple[int, ...]:
        data = self.constant(index)
        if data.quantisation is not None or data.data.dtype.kind not in "iu":
            raise RefusedError(f"its input {index} is not a list of integers")
        return tuple(int(i) for i in data.data.reshape(-1))

    def shape(self, index: int) -> tuple[int, ...]:
        if self.is_constant(index):
            return self.constant(index).data.shape
        return self._value(index).shape

    def output_shape(self, index: int = 0) -> tuple[int, ...]:
        name = self._last if index == 0 else self._node.outputs[index]
        return self._values.shapes[name]

    def quantisation(self, index: int) -> Quantisation:
        if self._arithmetic.quantisation is not None:
            return self._arithmetic.quantisation
        if self.plain:
            return UNIT
        if self.is_constant(index):
            operand_quantisation = self._constant_operand(index, None)[1]
        else:
            operand_quantisation = self._value(index).quantisation
        if operand_quantisation is None:
            raise LeftInFloatError(f"its input {index} is not quantised", _QUANTISE_ALL)
        return operand_quantisation

    def output_quantisation(self, default: Quantisation | None = None) -> Quantisation:
        if self._arithmetic.quantisation is not None:
            return self._arithmetic.quantisation
        coming = self._values.coming_quantisation(self._last)
        if coming is not None:
            return coming
        if default is None or not (
            Trait.KEEPS_VALUES in self._traits or self._values.only_products_read(self._last)
        ):
            raise LeftInFloatError("nothing quantises its result", _QUANTISE_ALL)
        return default

    def axes(self, *indices: int) -> tuple[int, ...]:
        moving = [self._value(i) for i in indices if not self.is_constant(i)]
        if not moving:
            raise RefusedError(
                "all of its inputs are constant",
                "fold it when the model is exported (onnxsim, or onnxruntime's quant_pre_process)",
            )
        largest = max(moving, key=lambda value: (len(value.shape), int(np.prod(value.shape))))
        return self._values.builder.axes(largest)

    def operand(
        self,
        index: int,
        axes: tuple[int, ...],
        shape: tuple[int, ...] | None = None,
        quantisation: Quantisation | None = None,
    ) -> str:
        if self.is_constant(index):
            data, q = self._constant_operand(index, quantisation)
            whole = data.reshape((1,) * (len(axes) - data.ndim) + data.shape).transpose(axes)
            return self.add_constant("constant", whole.reshape(shape or whole.shape), q)
        value = self._value(index)
        if self.plain or self._arithmetic.quantisation is not None:
            quantisation = None  # all have the same
        if quantisation is not None and value.stored and value.quantisation != quantisation:
            raise RefusedError(
                "it joins integers of different scales or zero points",
                "put a DequantizeLinear and a QuantizeLinear before one of them",
            )
        if quantisation is not None:
            name = f"{self.name}/input{index}"
            value = self._values.builder.requantised(value, quantisation, name)
        missing = len(axes) - len(value.shape)
        if missing > 0:
            layout = value.layout
            wider = Layout(((),) * missing + layout.dims, layout.sizes, layout.order)
            value = Value(value.tensor, wider, value.quantisation)
        return self._values.builder.operand(value, axes, shape)

    def row_operand(self, index: int) -> tuple[str, NDArray[np.intp]]:
        return self._values.builder.rows(self._value(index))

    def add_constant(self, stem: str, data: Array, quantisation: Quantisation | None) -> str:
        if data.dtype.kind == "f":
            data = data.astype(np.float32)
            if Trait.MASKS in self._traits:
                data = np.clip(data, -_LARGEST, _LARGEST)
        owned = np.ascontiguousarray(data)
        if self.in_float and data.dtype.kind == "f":
            quantisation = None
        return self._values.builder.add_tensor(
            f"{self.name}/{stem}", owned.shape, DType(str(owned.dtype)), quantisation, owned
        )

    def following_bias(self, axis: int) -> NDArray[np.float64] | None:
        values = self._values
        add = values.only_consumer(self._last)
        if add is None or add.operator != ADD or len(add.inputs) != 2:
            return None
        other = add.inputs[1] if add.inputs[0] == self._last else add.inputs[0]
        shape = values.shapes[self._last]
        if other not in values.constants or values.shapes[add.outputs[0]] != shape:
            return None
        constant = values.constants[other].real
        aligned = constant.reshape((1,) * (len(shape) - constant.ndim) + constant.shape)
        axis %= len(shape)
        if any(size != 1 for place, size in enumerate(aligned.shape) if place != axis):
            return None
        values.absorb(add)
        self._last = add.outputs[0]
        return np.broadcast_to(aligned.reshape(-1), (shape[axis],)).copy()

    def fused_activation(self) -> str:
        values = self._values
        follower = values.only_consumer(self._last)
        bounds = None if follower is None else values.clip_bounds(follower)
        if follower is None or bounds is None:
            return "NONE"
        name = self._arithmetic.activation(bounds, self.output_quantisation())
        if name is None:
            return "NONE"
        values.absorb(follower)
        self._last = follower.outputs[0]
        return name

    def intermediate(
        self,
        kind: str,
        attributes: Attributes,
        inputs: Sequence[str],
        shape: tuple[int, ...],
        quantisation: Quantisation,
    ) -> str:
        builder = self._values.builder
        self._arithmetic.check(kind)
        dtype = self._arithmetic.dtype(DType.INT8)
        stem = f"{self._last}/{kind}"
        output = builder.add_tensor(stem, shape, dtype, _of(dtype, quantisation))
        builder.add_op(kind, f"{self.name}/{kind}", attributes, inputs, [output])
        return output

    def is_read(self, index: int) -> bool:
        name = self._node.outputs[index] if index < self.outputs else ""
        return bool(name) and self._values.is_used(name)

    def results(
        self,
        kind: str,
        attributes: Attributes,
        inputs: Sequence[str],
        shapes: Sequence[tuple[int, ...]],
    ) -> tuple[str, ...]:
        builder, stem = self._values.builder, f"{self.name}/{kind}"
        made = tuple(builder.add_tensor(stem, shape, DType.FLOAT32, None) for shape in shapes)
        builder.add_op(kind, stem, attributes, inputs, made)
        return made

    def define(self, index: int, tensor: str, axes: tuple[int, ...]) -> None:
        name = self._node.outputs[index]
        layout = Layout.of(self._values.shapes[name], axes)
        self._values.define(name, Value(tensor, layout, UNIT))

    def emit(
        self,
        kind: str,
        attributes: Attributes,
        inputs: Sequence[str],
        quantisation: Quantisation | None,
        axes: tuple[int, ...],
        shape: tuple[int, ...] | None = None,
        dtype: DType = DType.INT8,
        indices: DType | None = None,
    ) -> None:
        builder, names = self._values.builder, [self._last, *self._node.outputs[1:]]
        if self.plain:
            quantisation = None
            dtype = self.plain_dtype(0) if dtype is DType.INT8 else dtype
        dtype = self._arithmetic.dtype(dtype)
        self._arithmetic.check(kind)
        quantisation = self._arithmetic.quantisation or quantisation
        outputs = []
        for place, name in enumerate(names):
            logical = self._values.shapes[name]
            stored = shape if shape is not None else tuple(logical[axis] for axis in axes)
            of, q, whole = dtype, quantisation, self.holds_integers and dtype is not DType.BOOL
            if place and indices is not None:
                of, q, whole = indices, None, True
                stored = tuple(logical[axis] for axis in axes)
            outputs.append(builder.add_tensor(name, stored, of, _of(of, q)))
            self._values.define(name, Value(outputs[-1], Layout.of(logical, axes), q, whole))
        builder.add_op(kind, self.name, attributes, inputs, outputs)

    def emit_like(
        self, index: int, kind: str, attributes: Attributes, quantisation: Quantisation
    ) -> None:
        self._arithmetic.check(kind)
        value, builder = self._value(index), self._values.builder
        quantisation = self._arithmetic.quantisation or quantisation
        shape = builder.tensor(value.tensor).shape
        dtype = self._arithmetic.dtype(DType.INT8)
        tensor = builder.add_tensor(self._last, shape, dtype, _of(dtype, quantisation))
        builder.add_op(kind, self.name, attributes, [value.tensor], [tensor])
        stored = self.holds_integers
        self._values.define(self._last, Value(tensor, value.layout, quantisation, stored))

    def unsupported(self, why: str, remedy: str = "") -> Exception:
        return RefusedError(why, remedy)

    def left_in_float(self, why: str, remedy: str = "") -> Exception:
        return LeftInFloatError(why, remedy)

    def _value(self, index: int) -> Value:
        value = self._values.value(self._node, index, in_float=self.in_float)
        if not self.in_float and self._values.builder.is_real(value):
            raise LeftInFloatError(f"its input {index} is not quantised", _QUANTISE_ALL)
        return value

    def _constant_operand(
        self, index: int, wanted: Quantisation | None
    ) -> tuple[Array, Quantisation | None]:
        """Input `index`, constant, as kernels read it; stored integers keep their values."""
        constant = self.constant(index)
        if self.in_float or not self.holds_integers:
            return self._arithmetic.constant(constant, wanted)
        if constant.data.dtype not in (np.int8, np.uint8):
            return self._arithmetic.constant(constant, None)
        shift = 128 if constant.data.dtype == np.uint8 else 0
        stored = (constant.data.astype(np.int16) - shift).astype(np.int8)
        others = [i for i in range(self.inputs) if self.has(i) and not self.is_constant(i)]
        return stored, self.quantisation(others[0])


def _of(dtype: DType, quantisation: Quantisation | None) -> Quantisation | None:
    """The quantisation of a tensor of type `dtype`: only narrow integers have one."""
    plain = (DType.FLOAT32, DType.BOOL, DType.INT32, DType.INT64)
    return None if dtype in plain else quantisation
