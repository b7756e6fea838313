"""One operator as its reader sees it: see `ops.spec.OnnxNode`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from toolchain.frontends.onnx.builder import Value
from toolchain.frontends.onnx.file import Node
from toolchain.frontends.onnx.layout import Layout
from toolchain.frontends.onnx.quantisation import RefusedError
from toolchain.ir import Attributes, DType, Quantisation
from toolchain.ops.spec import Array, OnnxData

if TYPE_CHECKING:
    from toolchain.frontends.onnx.importer import Importer


class NodeView:
    """Answers questions from the importer's tables; `_last` is the tensor that emit defines."""

    def __init__(self, importer: Importer, node: Node) -> None:
        self._importer = importer
        self._node = node
        self._last = node.outputs[0]

    @property
    def operator(self) -> str:
        return self._node.operator

    @property
    def name(self) -> str:
        return self._node.name or self._node.outputs[0]

    @property
    def opset(self) -> int:
        return self._importer.opset

    @property
    def inputs(self) -> int:
        return len(self._node.inputs)

    @property
    def outputs(self) -> int:
        return len(self._node.outputs)

    @property
    def in_float(self) -> bool:
        return False

    @property
    def holds_integers(self) -> bool:
        return self._importer.holds_integers(self._node)

    def attribute(self, name: str, default: Any = None) -> Any:
        return self._node.attributes.get(name, default)

    def has(self, index: int) -> bool:
        return index < len(self._node.inputs) and bool(self._node.inputs[index])

    def is_constant(self, index: int) -> bool:
        return self._node.inputs[index] in self._importer.data

    def constant(self, index: int) -> OnnxData:
        if not self.is_constant(index):
            raise RefusedError(f"its input {index} is not constant")
        return self._importer.data[self._node.inputs[index]]

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
        return self._importer.shapes[name]

    def quantisation(self, index: int) -> Quantisation:
        if self.is_constant(index):
            return self._int8_constant(index)[1]
        quantisation = self._value(index).quantisation
        if quantisation is None:
            raise RefusedError(f"its input {index} is not quantised")
        return quantisation

    def output_quantisation(self, default: Quantisation | None = None) -> Quantisation:
        found = self._importer.coming_quantisation(self._last) or default
        if found is None:
            raise RefusedError(
                "nothing quantises its result: it would be computed in float",
                "quantise the whole model (quantize_static with all operator types)",
            )
        return found

    def axes(self, *indices: int) -> tuple[int, ...]:
        moving = [self._value(i) for i in indices if not self.is_constant(i)]
        if not moving:
            raise RefusedError("all of its inputs are constant", "simplify the model (onnxsim)")
        largest = max(moving, key=lambda value: (len(value.shape), int(np.prod(value.shape))))
        return self._importer.builder.axes(largest)

    def operand(
        self,
        index: int,
        axes: tuple[int, ...],
        shape: tuple[int, ...] | None = None,
        quantisation: Quantisation | None = None,
    ) -> str:
        if self.is_constant(index):
            data, q = self._int8_constant(index)
            if quantisation is not None and not self.holds_integers:
                data, q = _stored(self.constant(index).real, quantisation), quantisation
            whole = data.reshape((1,) * (len(axes) - data.ndim) + data.shape).transpose(axes)
            return self.add_constant("constant", whole.reshape(shape or whole.shape), q)
        value = self._value(index)
        if quantisation is not None and value.stored and value.quantisation != quantisation:
            raise RefusedError("it joins integers of different scales or zero points")
        if quantisation is not None:
            name = f"{self.name}/input{index}"
            value = self._importer.builder.requantised(value, quantisation, name)
        missing = len(axes) - len(value.shape)
        if missing > 0:
            layout = value.layout
            wider = Layout(((),) * missing + layout.dims, layout.sizes, layout.order)
            value = Value(value.tensor, wider, value.quantisation)
        return self._importer.builder.operand(value, axes, shape)

    def row_operand(self, index: int) -> tuple[str, NDArray[np.intp]]:
        return self._importer.builder.rows(self._value(index))

    def add_constant(self, stem: str, data: Array, quantisation: Quantisation | None) -> str:
        owned = np.ascontiguousarray(data)
        return self._importer.builder.add_tensor(
            f"{self.name}/{stem}", owned.shape, DType(str(owned.dtype)), quantisation, owned
        )

    def following_bias(self, axis: int) -> NDArray[np.float64] | None:
        importer = self._importer
        add = importer.only_consumer(self._last)
        if add is None or add.operator != "Add" or len(add.inputs) != 2:
            return None
        other = add.inputs[1] if add.inputs[0] == self._last else add.inputs[0]
        shape = importer.shapes[self._last]
        if other not in importer.data or importer.shapes[add.outputs[0]] != shape:
            return None
        constant = importer.data[other].real
        aligned = constant.reshape((1,) * (len(shape) - constant.ndim) + constant.shape)
        axis %= len(shape)
        if any(size != 1 for place, size in enumerate(aligned.shape) if place != axis):
            return None
        importer.absorb(add)
        self._last = add.outputs[0]
        return np.broadcast_to(aligned.reshape(-1), (shape[axis],)).copy()

    def fused_activation(self) -> str:
        importer = self._importer
        follower = importer.only_consumer(self._last)
        if follower is None or follower.operator not in ("Relu", "Clip"):
            return "NONE"
        bounds = importer.clip_bounds(follower)
        if bounds is None:
            return "NONE"
        q = self.output_quantisation()
        low, high = bounds
        reach = [(v - q.zero_point) * q.scale for v in (-128, 127)]
        name = ACTIVATIONS.get(bounds)
        if low <= reach[0] + q.scale / 4 and high >= reach[1] - q.scale / 4:
            name = "NONE"
        elif name is None and high >= reach[1] - q.scale / 4:
            name = ACTIVATIONS.get((low, float("inf")))
        if name is None:
            return "NONE"
        importer.absorb(follower)
        self._last = follower.outputs[0]
        return name

    def intermediate(
        self,
        kind: str,
        attributes: Attributes,
        inputs: Sequence[str],
        shape: tuple[int, ...],
        quantisation: Quantisation,
        dtype: DType = DType.INT8,
    ) -> str:
        builder = self._importer.builder
        stem = f"{self._last}/{kind}"
        q = None if dtype is DType.FLOAT32 else quantisation
        output = builder.add_tensor(stem, shape, dtype, q)
        builder.add_op(kind, f"{self.name}/{kind}", attributes, inputs, [output])
        return output

    def emit(
        self,
        kind: str,
        attributes: Attributes,
        inputs: Sequence[str],
        quantisation: Quantisation | None,
        axes: tuple[int, ...],
        shape: tuple[int, ...] | None = None,
        dtype: DType = DType.INT8,
    ) -> None:
        builder, names = self._importer.builder, [self._last, *self._node.outputs[1:]]
        outputs = []
        for name in names:
            logical = self._importer.shapes[name]
            layout = Layout.of(logical, axes)
            stored = shape if shape is not None else tuple(logical[axis] for axis in axes)
            q = None if dtype is DType.FLOAT32 else quantisation
            tensor = builder.add_tensor(name, stored, dtype, q)
            outputs.append(tensor)
            self._importer.define(name, Value(tensor, layout, quantisation, self.holds_integers))
        builder.add_op(kind, self.name, attributes, inputs, outputs)

    def emit_like(
        self,
        index: int,
        kind: str,
        attributes: Attributes,
        quantisation: Quantisation,
        dtype: DType = DType.INT8,
    ) -> None:
        value, builder = self._value(index), self._importer.builder
        shape = builder.tensor(value.tensor).shape
        q = None if dtype is DType.FLOAT32 else quantisation
        tensor = builder.add_tensor(self._last, shape, dtype, q)
        builder.add_op(kind, self.name, attributes, [value.tensor], [tensor])
        stored = self.holds_integers
        self._importer.define(self._last, Value(tensor, value.layout, quantisation, stored))

    def unsupported(self, why: str, remedy: str = "") -> Exception:
        return RefusedError(why, remedy)

    def _value(self, index: int) -> Value:
        return self._importer.value(self._node, index)

    def _int8_constant(self, index: int) -> tuple[NDArray[np.int8], Quantisation]:
        """A constant operand as per-tensor int8; a float one is quantised here."""
        constant = self.constant(index)
        q = constant.quantisation
        if self.holds_integers and constant.data.dtype in (np.int8, np.uint8):
            shift = 128 if constant.data.dtype == np.uint8 else 0
            stored = (constant.data.astype(np.int16) - shift).astype(np.int8)
            others = [i for i in range(self.inputs) if self.has(i) and not self.is_constant(i)]
            return stored, self.quantisation(others[0])
        if q is not None and constant.data.dtype == np.int8 and not q.per_channel:
            return constant.data.astype(np.int8), q
        real = constant.real
        largest = float(np.float32(np.abs(real).max())) if real.size else 0.0
        steps = 1 if np.isin(np.abs(real), (0.0, largest)).all() else 127
        scale = float(np.float32(largest / steps)) or 1.0
        data = np.clip(np.round(real / scale), -127, 127).astype(np.int8)
        return data, Quantisation((scale,), (0,))


def _stored(real: NDArray[np.float64], q: Quantisation) -> NDArray[np.int8]:
    """QuantizeLinear: halves to even, saturated."""
    stored: NDArray[np.int8] = np.clip(np.rint(real / q.scale) + q.zero_point, -128, 127).astype(
        np.int8
    )
    return stored


ACTIVATIONS = {
    (0.0, float("inf")): "RELU",
    (0.0, 6.0): "RELU6",
    (-1.0, 1.0): "RELU_N1_TO_1",
}
