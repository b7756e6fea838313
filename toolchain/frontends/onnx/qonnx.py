"""Quantisers of other domains in ONNX's own operators: QONNX's Quant and BipolarQuant, as Brevitas,
QKeras and FINN write them, and PyTorch's `quantized_decomposed`.

Quant of up to 8 bits is QuantizeLinear, a Clip where the range is narrower, and DequantizeLinear:
both round halves to even. BipolarQuant of a constant is DequantizeLinear of 1 and -1. ONNX Runtime
runs the result, too. Definitions: docs/qonnx-custom-ops of fastmachinelearning/qonnx.

torch.onnx.export writes `quantized_decomposed` as QuantizeLinear and DequantizeLinear, but not its
older exporter, which leaves such nodes (ONNX_FALLTHROUGH). Their inputs, by
torch/ao/quantization/fx/_decomposed.py: values, scale, zero point, [axis,] least and greatest
integer, type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from toolchain.errors import UnsupportedError
from toolchain.frontends.onnx.model import Array
from toolchain.frontends.onnx.operators.functions import CLIP
from toolchain.frontends.onnx.operators.unread import CONSTANT
from toolchain.frontends.onnx.quantisation import DEQUANTIZE, QUANTIZE
from toolchain.ir.names import Names
from toolchain.packages import ONNX, lazy

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx", ONNX)

_DECOMPOSED = "quantized_decomposed"
_DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general", _DECOMPOSED)
_TAKE, _GIVE, _CHANNELS = "quantize_per_", "dequantize_per_", "channel"
_STORED = {0: np.uint8, 1: np.int8}
"""By PyTorch's number of a type (c10/core/ScalarType.h)."""
_QUANT, _BIPOLAR, _TRUNC = "Quant", "BipolarQuant", "Trunc"
_OLDEST = 13
"""The first opset whose QuantizeLinear has scales of channels."""
_NEWER = "export by torch.onnx.export(torch.export.export(model, inputs), inputs, FILE)"
_REMEDY = "export with export_onnx_qcdq (Brevitas), in ONNX's own operators"


def in_standard_operators(data: bytes) -> bytes:
    """The file with these operators written in ONNX's own; unchanged if it has none.

    Raises UnsupportedError for one that these cannot say: more than 8 bits, a rounding other than
    ROUND, scales that are computed. A file that is not ONNX stays as it is.
    """
    if not any(domain.encode() in data for domain in _DOMAINS):
        return data
    try:
        model = onnx.load_model_from_string(data)
    except Exception:  # the reader says what is wrong with it
        return data
    writer = _Writer.of(model)
    nodes = [part for node in model.graph.node for part in writer.parts(node)]
    if not writer.rewrote:
        return data
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(writer.made)
    kept = [one for one in model.opset_import if one.domain not in _DOMAINS]
    del model.opset_import[:]
    model.opset_import.extend(kept)
    return bytes(model.SerializeToString())


@dataclass
class _Writer:
    """`constants` by name; `made`: initialisers that are added."""

    constants: Mapping[str, Array]
    names: Names
    opset: int
    made: list[Any]
    rewrote: bool = False

    @staticmethod
    def of(model: onnx.ModelProto) -> _Writer:
        graph = model.graph
        constants = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
        for node in graph.node:
            if node.op_type == CONSTANT and node.attribute[0].name == "value":
                constants[node.output[0]] = onnx.numpy_helper.to_array(node.attribute[0].t)
        names = Names((*constants, *(value.name for value in graph.input)))
        names.take(name for node in graph.node for name in (*node.input, *node.output))
        versions = [one.version for one in model.opset_import if one.domain in ("", "ai.onnx")]
        return _Writer(constants, names, max(versions, default=1), [])

    def parts(self, node: onnx.NodeProto) -> list[Any]:
        """The operators that stand for `node`."""
        decomposed = node.domain == _DECOMPOSED and node.op_type.startswith((_TAKE, _GIVE))
        known = decomposed or node.op_type in (_QUANT, _BIPOLAR, _TRUNC)
        if node.domain not in _DOMAINS or not known:
            return [node]
        if node.op_type == _TRUNC:
            raise self._refused(
                node,
                "drops the low bits of sums, for which ONNX has no operator",
                "pool by nn.AvgPool2d with a QuantIdentity behind it, in place of TruncAvgPool2d",
            )
        self.rewrote = True
        if self.opset < _OLDEST:
            raise UnsupportedError(
                f"{node.op_type} {node.name!r} is in a file of opset {self.opset}; export it with "
                f"opset {_OLDEST} or newer"
            )
        if decomposed:
            return self._decomposed(node)
        return self._bipolar(node) if node.op_type == _BIPOLAR else self._quant(node)

    def _decomposed(self, node: onnx.NodeProto) -> list[Any]:
        channels = node.op_type.endswith(_CHANNELS)
        scale, zero = (self._constant(node, place, _NEWER) for place in (1, 2))
        numbers = (self._constant(node, place, _NEWER) for place in range(3, 6 + channels))
        *axes, low, high, code = (int(number.reshape(-1)[0]) for number in numbers)
        if code not in _STORED:
            raise self._refused(node, f"stores numbers of PyTorch's type {code}", _NEWER)
        shape = (-1,) if channels else ()
        parameters = (
            self._put("scale", scale.astype(np.float32).reshape(shape)),
            self._put("zero_point", zero.astype(_STORED[code]).reshape(shape)),
        )
        axis: dict[str, Any] = {"axis": axes[0]} if channels else {}
        if node.op_type.startswith(_TAKE):
            ends = low, high
            return self._storing(node.input[0], node.output[0], parameters, axis, ends, code)
        inputs, outputs = [node.input[0], *parameters], list(node.output)
        return [onnx.helper.make_node(DEQUANTIZE, inputs, outputs, node.name, **axis)]

    def _storing(
        self,
        values: str,
        stored: str,
        parameters: tuple[str, str],
        axis: dict[str, Any],
        ends: tuple[int, int],
        code: int,
    ) -> list[Any]:
        """QuantizeLinear to `stored`, with a Clip behind it where `ends` are not those of the type
        with PyTorch's number `code`."""
        make, dtype = onnx.helper.make_node, _STORED[code]
        info = np.iinfo(dtype)
        if ends == (info.min, info.max):
            return [make(QUANTIZE, [values, *parameters], [stored], **axis)]
        whole = self.names.fresh(f"{stored}/whole")
        limits = [self._put("end", np.asarray(end, dtype)) for end in ends]
        return [
            make(QUANTIZE, [values, *parameters], [whole], **axis),
            make(CLIP, [whole, *limits], [stored]),
        ]

    def _quant(self, node: onnx.NodeProto) -> list[Any]:
        given = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        mode = given.get("rounding_mode", b"ROUND")
        scale, zero, bits = (self._constant(node, place) for place in (1, 2, 3))
        if mode.upper() not in (b"ROUND", b"HALF_EVEN"):
            raise self._refused(node, f"rounds by {mode.decode()}, where ONNX rounds to even")
        width = float(bits.reshape(-1)[0])
        if bits.size != 1 or width not in range(1, 9):
            raise self._refused(node, f"has {width:g} bits, and int8 has 8")
        signed, narrow = bool(given.get("signed", 1)), bool(given.get("narrow", 0))
        high = 2 ** (int(width) - signed) - 1 - (narrow and not signed)
        low = -(2 ** (int(width) - 1)) + narrow if signed else 0
        dtype = np.int8 if signed else np.uint8
        info = np.iinfo(dtype)
        if (zero != np.rint(zero)).any() or zero.min() < info.min or zero.max() > info.max:
            raise self._refused(node, "has a zero point that is no integer of its type")
        parameters, axis = self._parameters(node, scale, zero.astype(dtype))
        stored, ends = self.names.fresh(f"{node.output[0]}/stored"), (low, high)
        made = self._storing(node.input[0], stored, parameters, axis, ends, int(signed))
        inputs, outputs = [stored, *parameters], list(node.output)
        return [*made, onnx.helper.make_node(DEQUANTIZE, inputs, outputs, node.name, **axis)]

    def _bipolar(self, node: onnx.NodeProto) -> list[Any]:
        if node.input[0] not in self.constants:
            raise self._refused(
                node,
                "takes signs of what is computed while the model runs, and no kernel has "
                "activations of one bit",
                "train activations of 2 bits or more (QuantReLU, QuantIdentity)",
            )
        values, scale = (self._constant(node, place) for place in (0, 1))
        stored = self._put(
            "stored", np.where(values.astype(np.float32) >= 0, 1, -1).astype(np.int8)
        )
        parameters, axis = self._parameters(node, scale, np.zeros((), np.int8))
        inputs, make = [stored, *parameters], onnx.helper.make_node
        return [make(DEQUANTIZE, inputs, list(node.output), node.name, **axis)]

    def _parameters(
        self, node: onnx.NodeProto, scale: Array, zero: Array
    ) -> tuple[tuple[str, str], dict[str, Any]]:
        """The names of a scale and a zero point, or of one for each channel, and their axis."""
        along = [axis for axis, size in enumerate(scale.shape) if size > 1]
        if len(along) > 1 or zero.size not in (1, scale.size):
            raise self._refused(node, f"has scales of shape {list(scale.shape)}")
        scales = scale.astype(np.float32).reshape(-1 if along else ())
        zeros = np.broadcast_to(zero.reshape(-1), scale.size).reshape(scales.shape)
        names = self._put("scale", scales), self._put("zero_point", np.ascontiguousarray(zeros))
        return names, {"axis": along[0]} if along else {}

    def _constant(self, node: onnx.NodeProto, place: int, remedy: str = _REMEDY) -> Array:
        name = node.input[place] if place < len(node.input) else ""
        if name not in self.constants:
            raise self._refused(node, f"computes its input {place} while the model runs", remedy)
        return np.asarray(self.constants[name])

    def _put(self, stem: str, data: Array) -> str:
        name = self.names.fresh(f"qonnx/{stem}")
        self.made.append(onnx.numpy_helper.from_array(data, name))
        return name

    def _refused(self, node: onnx.NodeProto, why: str, remedy: str = _REMEDY) -> UnsupportedError:
        return UnsupportedError(f"{node.op_type} {node.name!r} {why}; {remedy}")
