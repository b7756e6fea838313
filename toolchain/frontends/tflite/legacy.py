"""Converts legacy uint8 files to int8: every stored value and zero point is lowered by 128,
exactly.

LiteRT's uint8 kernels differ from its int8 ones in a few ways: a weight tensor has one scale and
any zero point, the scale of a convolution's sum is a product in float32
(`GetQuantizedConvolutionMultipler`), CONCATENATION rescales inputs that have another scale than its
output, and TFLite_Detection_PostProcess takes uint8, dequantised. The conversion puts all of that
into the file's records, so that the operators' readers see an int8 model. Inputs and outputs stay
uint8: QUANTIZE operators flip the top bit there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.tflite.file import FileModel, FileOp, FileTensor
from toolchain.ir import DType, Quantisation, Tensor
from toolchain.ir.names import Names
from toolchain.ops.arithmetic.fixed_point import ScaleError, quantize_multiplier

_CONVERSIONS = frozenset({"QUANTIZE", "DEQUANTIZE"})
_MOVERS = frozenset(
    {"CONCATENATION", "PACK", "RESHAPE", "SLICE", "SPLIT", "SQUEEZE", "TRANSPOSE", "UNPACK"}
)
_WEIGHTED = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D"})
_DEQUANTISING = frozenset({"TFLite_Detection_PostProcess"})
_OFFSET = 128


def is_legacy(model: FileModel) -> bool:
    """Whether an operator, of a subgraph too, computes with uint8 activations, rather than
    converting or moving them.
    """
    if any(map(is_legacy, model.others)):
        return True
    return any(
        _is_uint8(model.tensors[i])
        for op in model.ops
        if op.code not in _CONVERSIONS | _MOVERS or _rescaled(op, model)
        for i in op.inputs
        if i != -1
    )


def _rescaled(op: FileOp, model: FileModel) -> tuple[int, ...]:
    """The places of those inputs of a CONCATENATION whose scale is not its output's."""
    if op.code != "CONCATENATION" or len(op.outputs) != 1:
        return ()
    known = {i: model.tensors[i].tensor for i in (*op.inputs, *op.outputs) if i != -1}
    q = {i: tensor.quantisation for i, tensor in known.items() if tensor is not None}
    if any(one is None or one.per_channel for one in q.values()) or len(q) < len(known):
        return ()
    return tuple(place for place, i in enumerate(op.inputs) if i != -1 and q[i] != q[op.outputs[0]])


def as_int8(model: FileModel) -> FileModel:
    """The model on int8 tensors, with QUANTIZE operators at its uint8 inputs and outputs.

    Its subgraphs take and return int8.
    """
    return replace(_Rewriter(model).model(), others=tuple(map(_inside, model.others)))


def _inside(model: FileModel) -> FileModel:
    """A subgraph on int8 tensors."""
    return _Rewriter(model).model(converting=False)


def _is_uint8(file_tensor: FileTensor) -> bool:
    tensor = file_tensor.tensor
    return tensor is not None and tensor.dtype is DType.UINT8 and tensor.quantisation is not None


def _lowered(file_tensor: FileTensor) -> FileTensor:
    """One tensor's records as int8."""
    tensor = file_tensor.tensor
    if tensor is None or not _is_uint8(file_tensor):
        return file_tensor
    q, data = tensor.q, tensor.constant
    zeros = tuple(zero - _OFFSET for zero in q.zero_points)
    if data is not None:
        data = (data.astype(np.int16) - _OFFSET).astype(np.int8)
    narrow = replace(
        tensor, dtype=DType.INT8, quantisation=replace(q, zero_points=zeros), constant=data
    )
    return replace(file_tensor, tensor=narrow, type_name="INT8")


def _refuse_mixed(op: FileOp, inputs: Sequence[FileTensor], outputs: Sequence[FileTensor]) -> None:
    """Raise InputError where uint8 stands beside int8 or int16: lowered, it would look like int8.

    int16 as a result of uint8 alone is sound: SOFTMAX has it.
    """
    legacy = [end for end in (*inputs, *outputs) if _is_uint8(end)]
    for end in (*inputs, *outputs):
        tensor = end.tensor
        if not legacy or tensor is None or tensor.quantisation is None:
            continue
        wide = tensor.dtype is DType.INT16 and end in inputs
        if tensor.dtype is DType.INT8 or wide:
            raise InputError(
                f"{op} takes uint8 ({legacy[0].name!r}) and {tensor.dtype.value} ({end.name!r}) "
                "at once, which no kernel of TFLite does; put a quantize operator between them"
            )


class _Rewriter:
    def __init__(self, model: FileModel) -> None:
        self._old = model
        self._tensors = [_lowered(file_tensor) for file_tensor in model.tensors]
        self._names = Names(file_tensor.name for file_tensor in model.tensors)
        self._ops: list[FileOp] = []
        self._next_index = len(model.ops)
        self._given: dict[int, int] = {}

    def model(self, *, converting: bool = True) -> FileModel:
        """The model on int8. `converting`: inputs and outputs of uint8 stay so, behind QUANTIZE
        operators."""
        inputs, outputs = self._old.inputs, self._old.outputs
        if converting:
            inputs = tuple(self._input(i) for i in inputs)
        for op in self._old.ops:
            self._operator(op)
        if converting:
            outputs = tuple(self._output(i) for i in outputs)
        return replace(
            self._old,
            tensors=tuple(self._tensors),
            ops=tuple(self._ops),
            inputs=inputs,
            outputs=outputs,
        )

    def _add_tensor(self, file_tensor: FileTensor, suffix: str) -> int:
        name = self._names.fresh(file_tensor.name + suffix)
        tensor = None if file_tensor.tensor is None else replace(file_tensor.tensor, name=name)
        self._tensors.append(replace(file_tensor, name=name, tensor=tensor))
        return len(self._tensors) - 1

    def _add_op(self, code: str, inputs: tuple[int, ...], output: int, options: object) -> None:
        self._ops.append(FileOp(self._next_index, code, "", 1, options, inputs, (output,)))
        self._next_index += 1

    def _outer(self, index: int) -> int:
        """The file's own uint8 tensor under its own name; the int8 one takes another."""
        inner = self._tensors[index]
        assert inner.tensor is not None
        name = self._names.fresh(inner.name + "/int8")
        renamed = replace(inner.tensor, name=name)
        self._tensors[index] = replace(inner, name=name, tensor=renamed)
        self._tensors.append(self._old.tensors[index])
        return len(self._tensors) - 1

    def _input(self, index: int) -> int:
        if not _is_uint8(self._old.tensors[index]):
            return index
        outer = self._given[index] = self._outer(index)
        self._add_op("QUANTIZE", (outer,), index, None)
        return outer

    def _output(self, index: int) -> int:
        produced = any(index in op.outputs for op in self._old.ops)
        if not _is_uint8(self._old.tensors[index]) or not produced:
            return self._given.get(index, index)
        outer = self._outer(index)
        self._add_op("QUANTIZE", (index,), outer, None)
        return outer

    def _operator(self, op: FileOp) -> None:
        """The operator on int8 tensors; one with weights gets weights of its own."""
        given = [self._old.tensors[i] for i in op.inputs if i != -1]
        made = [self._old.tensors[i] for i in op.outputs]
        if op.code not in _CONVERSIONS:
            _refuse_mixed(op, given, made)
            op = replace(op, legacy=any(map(_is_uint8, (*given, *made))))
        x = self._old.tensors[op.inputs[0]] if op.inputs and op.inputs[0] != -1 else None
        weights = None
        if op.code in _WEIGHTED and x is not None and _is_uint8(x) and len(op.inputs) > 1:
            weights = self._weights(op)
        if weights is None:
            self._ops.append(self._dequantised(self._alike(op)))
        else:
            inputs = (op.inputs[0], weights, *op.inputs[2:])
            self._ops.append(replace(op, inputs=inputs))

    def _alike(self, op: FileOp) -> FileOp:
        """A CONCATENATION whose inputs are rescaled before it; other operators as they are."""
        inputs = list(op.inputs)
        for place in _rescaled(op, self._old) if op.legacy else ():
            source, target = self._tensors[inputs[place]], self._tensors[op.outputs[0]]
            assert source.tensor is not None and target.tensor is not None
            narrow = replace(source.tensor, quantisation=target.tensor.quantisation, constant=None)
            rescaled = replace(source, tensor=narrow, variable=False)
            inputs[place], given = self._add_tensor(rescaled, "/rescaled"), inputs[place]
            self._add_op("QUANTIZE", (given,), inputs[place], SimpleNamespace(inFloat=True))
        return replace(op, inputs=tuple(inputs))

    def _dequantised(self, op: FileOp) -> FileOp:
        """A TFLite_Detection_PostProcess behind DEQUANTIZE; other operators as they are."""
        if op.custom not in _DEQUANTISING:
            return op
        inputs = list(op.inputs)
        for place, index in enumerate(inputs):
            if index == -1 or not _is_uint8(self._old.tensors[index]):
                continue
            source = self._tensors[index]
            assert source.tensor is not None
            real = Tensor(source.name, source.tensor.shape, DType.FLOAT32)
            real_tensor = replace(source, tensor=real, type_name="FLOAT32", variable=False)
            inputs[place] = self._add_tensor(real_tensor, "/dequantised")
            self._add_op("DEQUANTIZE", (index,), inputs[place], None)
        return replace(op, inputs=tuple(inputs))

    def _weights(self, op: FileOp) -> int | None:
        """Weights whose scale gives the sums the factor that the uint8 kernel has.

        None where the operator's tensors are not what its kernel takes: its reader says so.
        """
        if op.inputs[1] == -1 or len(op.outputs) != 1:
            return None
        ends = [self._tensors[i].tensor for i in (op.inputs[0], op.inputs[1], op.outputs[0])]
        x, weights, y = ends
        if op.options is None or x is None or weights is None or y is None:
            return None
        if not weights.is_constant:
            return None
        if any(t is None or t.quantisation is None or t.q.per_channel for t in ends):
            return None
        product = float(np.float32(x.q.scale) * np.float32(weights.q.scale))
        if not product > 0:
            raise InputError(f"{op}: the product of its scales is below the range of float32")
        try:
            scale = _divided(product, x.q.scale, y.q.scale)
        except ScaleError as error:
            raise InputError(f"{op}: {error}") from error
        q = Quantisation((scale,), weights.q.zero_points)
        file_tensor = self._tensors[op.inputs[1]]
        return self._add_tensor(
            replace(file_tensor, tensor=replace(weights, quantisation=q)), "/weights"
        )


def _divided(product: float, x_scale: float, y_scale: float) -> float:
    """The weights' scale with which input * weights / output is product / output, in Q0.31."""
    wanted = quantize_multiplier(product / y_scale)
    scale = product / x_scale
    for candidate in (scale, math.nextafter(scale, 0.0), math.nextafter(scale, math.inf)):
        if quantize_multiplier(x_scale * candidate / y_scale) == wanted:
            return candidate
    raise AssertionError("no double lies between")  # a product in double errs by one unit at most
