"""A float TFLite model rewritten with int8 tensors, and conversions where something stays float."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from toolchain.frontends.tflite.objects import bytes_of, object_of
from toolchain.packages import VERIFY, lazy
from toolchain.quantise.tflite_model import (
    Floats,
    Range,
    add_buffer,
    code_of,
    made_object,
    values_of,
)
from toolchain.quantise.tflite_rules import Fixed, Rule, Weights, rule_of

if TYPE_CHECKING:
    import ai_edge_litert.schema_py_generated as schema
else:
    schema = lazy("ai_edge_litert.schema_py_generated", VERIFY)

_BIAS_MOST = 2**30
"""The largest bias, of int32's 2**31, so that sums have room."""


def _numbers(given: Sequence[int] | None) -> list[int]:
    return [] if given is None else [int(i) for i in given]


@dataclass(frozen=True)
class Made:
    """`left`: operators that stay in float, each with why."""

    data: bytes
    left: tuple[tuple[str, str], ...]


@dataclass
class _Group:
    """Tensors of one scale: the range of all of them, or a scale that an operator prescribes."""

    range: Range = field(default_factory=Range)
    fixed: Fixed | None = None


def quantised(data: bytes, ranges: Mapping[int, Range], *, per_channel: bool = True) -> Made:
    """The int8 form of a float file (`widened`) whose tensors have these ranges. Its ends stay
    float."""
    return _Rewriter(object_of(data), ranges, per_channel).made()


class _Rewriter:
    def __init__(self, model: Any, ranges: Mapping[int, Range], per_channel: bool) -> None:
        self._model, self._ranges, self._per_channel = model, ranges, per_channel
        self._graph = model.subgraphs[0]
        self._kinds: Any = schema.TensorType
        self._groups: dict[int, _Group] = {}
        self._int8: dict[int, int] = {}
        self._float: dict[int, int] = {}
        self._codes: dict[tuple[int, int], int] = {}
        self._ops: list[Any] = []
        self._left: list[tuple[str, str]] = []

    def made(self) -> Made:
        graph = self._graph
        chosen = [self._rule(op) for op in graph.operators]
        for op, rule in zip(graph.operators, chosen, strict=True):
            if rule is not None:
                self._tie(op, rule)
        chosen = [self._narrow(op, rule) for op, rule in zip(graph.operators, chosen, strict=True)]
        for op, rule in zip(graph.operators, chosen, strict=True):
            if rule is None:
                self._keep(op)
            else:
                self._quantise(op, rule)
        graph.outputs = [self._as_float(int(i)) for i in graph.outputs]
        graph.operators = self._ops
        self._model.signatureDefs = self._signatures()
        self._drop_unused()
        return Made(bytes_of(self._model), tuple(self._left))

    def _drop_unused(self) -> None:
        """Tensors that nothing reads or writes any more, and the data of all such."""
        graph = self._graph
        ends = [i for op in graph.operators for i in (*op.inputs, *op.outputs)]
        ends += [i for op in graph.operators for i in _numbers(op.intermediates)]
        used = sorted({int(i) for i in (*ends, *graph.inputs, *graph.outputs) if i >= 0})
        place = {old: new for new, old in enumerate(used)} | {-1: -1}

        def moved(numbers: Sequence[int] | None) -> list[int]:
            return [place[i] for i in _numbers(numbers)]

        for op in graph.operators:
            op.inputs, op.outputs = moved(op.inputs), moved(op.outputs)
            op.intermediates = moved(op.intermediates) or None
        graph.inputs, graph.outputs = moved(graph.inputs), moved(graph.outputs)
        graph.tensors = [graph.tensors[i] for i in used]
        for signature in self._model.signatureDefs or ():
            if signature.subgraphIndex == 0:
                for end in (*(signature.inputs or ()), *(signature.outputs or ())):
                    end.tensorIndex = place[int(end.tensorIndex)]
        kept = {tensor.buffer for one in self._model.subgraphs for tensor in one.tensors}
        kept |= {entry.buffer for entry in self._model.metadata or ()}
        for number, buffer in enumerate(self._model.buffers):
            if number not in kept:
                buffer.data = None

    def _signatures(self) -> Any:
        for signature in self._model.signatureDefs or ():
            if signature.subgraphIndex == 0:
                for end in signature.outputs or ():
                    end.tensorIndex = self._as_float(int(end.tensorIndex))
        return self._model.signatureDefs

    def _is_float(self, index: int) -> bool:
        return index >= 0 and self._graph.tensors[index].type == self._kinds.FLOAT32

    def _constant(self, index: int) -> NDArray[Any] | None:
        return values_of(self._model, self._graph, index)

    def _rule(self, op: Any) -> Rule | None:
        """The rule for an operator; None where it stays as it is, with the reason noted where it
        computes in float."""
        name = code_of(self._model, op)
        ends = [int(i) for i in (*op.inputs, *op.outputs)]
        if not any(self._is_float(i) for i in ends):
            return None
        rule = rule_of(name)
        why = "" if rule else "it has no rule for int8"
        if name == "WHILE":
            why = f"{why}; set unroll=True in a recurrent layer of Keras and convert it again"
        if rule is not None and rule.weights is not None:
            used = [int(i) for i in op.inputs]
            parts = (rule.weights.weights, rule.weights.bias)
            given = [used[place] for place in parts if place < len(used) and used[place] >= 0]
            computed = [self._constant(i) is None for i in given]
            if name == "FULLY_CONNECTED" and computed == [True]:
                return replace(rule, weights=None)
            if any(computed):
                why = "its weights or its bias are computed"
        if not why and all(self._constant(int(i)) is not None for i in op.inputs if i >= 0):
            why = "it reads only constants"
        if why:
            self._leave(op, why)
            return None
        return rule

    def _leave(self, op: Any, why: str) -> None:
        output = self._graph.tensors[int(op.outputs[0])].name.decode("utf-8", "replace")
        self._left.append((f"{code_of(self._model, op)} ({output})", why))

    def _narrow(self, op: Any, rule: Rule | None) -> Rule | None:
        """The rule, if the scales that are known by now are such as the kernel takes."""
        if rule is None or not rule.below_one:
            return rule
        if all(self._scaling(index)[0] < 1 for index in self._data(op, rule)):
            return rule
        self._leave(op, "LiteRT compares no int8 tensors of a scale of 1 or more")
        return None

    def _data(self, op: Any, rule: Rule) -> list[int]:
        """Numbers of the float tensors that the operator reads as data."""
        inputs = [int(i) for i in op.inputs]
        if rule.weights is not None:
            return [inputs[rule.weights.data]]
        return [i for i in inputs if self._is_float(i)]

    def _group(self, index: int) -> _Group:
        if index not in self._groups:
            seen = self._ranges.get(index, Range())
            known = Range(seen.low, seen.high)
            value = self._constant(index)
            if value is not None:
                known.add(value)
            self._groups[index] = _Group(known)
        return self._groups[index]

    def _tie(self, op: Any, rule: Rule) -> None:
        """One scale for data and outputs where the kernel takes no other."""
        outputs = [int(i) for i in op.outputs if self._is_float(int(i))]
        if rule.prescribed is not None:
            for output in outputs:
                self._group(output).fixed = rule.prescribed
            return
        if not rule.alike or not outputs:
            return
        data = self._data(op, rule)
        first = self._group(data[0]) if len(data) == 1 else self._group(outputs[0])
        for index in (*data, *outputs):
            other = self._group(index)
            if other is first or (index in data and other.fixed != first.fixed):
                continue  # a prescribed scale is converted where it is read
            first.range.low = min(first.range.low, other.range.low)
            first.range.high = max(first.range.high, other.range.high)
            for member, group in self._groups.items():
                if group is other:
                    self._groups[member] = first

    def _scaling(self, index: int) -> Fixed:
        group = self._group(index)
        return group.fixed or group.range.scaling()

    def _quantise(self, op: Any, rule: Rule) -> None:
        inputs = [int(i) for i in op.inputs]
        data = set(self._data(op, rule))
        tied = rule.alike and self._is_float(int(op.outputs[0]))
        for place, index in enumerate(inputs):
            if index in data:
                target = self._scaling(int(op.outputs[0])) if tied else None
                inputs[place] = self._as_int8(index, target)
        if rule.weights is not None:
            self._weigh(inputs, rule.weights, int(op.inputs[rule.weights.data]))
        op.inputs = inputs
        op.outputs = [
            self._written(int(i)) if self._is_float(int(i)) else int(i) for i in op.outputs
        ]
        self._ops.append(op)

    def _keep(self, op: Any) -> None:
        op.inputs = [self._as_float(int(i)) for i in op.inputs]
        for index in op.outputs:
            self._float[int(index)] = int(index)
        self._ops.append(op)

    def _written(self, index: int) -> int:
        """The int8 tensor that a quantised operator writes in place of a float one."""
        self._int8[index] = self._tensor(index, "", self._scaling(index))
        return self._int8[index]

    def _as_int8(self, index: int, wanted: Fixed | None) -> int:
        """A float tensor as int8; with the scale `wanted`, where it has another one."""
        scaling = self._scaling(index)
        value = self._constant(index)
        if value is not None:
            return self._stored(index, value, wanted or scaling)
        if index not in self._int8:
            self._int8[index] = self._tensor(index, "_int8", scaling)
            self._convert("QUANTIZE", index, self._int8[index])
        stored = self._int8[index]
        if wanted is None or wanted == scaling:
            return stored
        other = self._tensor(index, "_rescaled", wanted)
        self._convert("QUANTIZE", stored, other)
        return other

    def _as_float(self, index: int) -> int:
        """The float tensor, for operators that stay in float."""
        if index not in self._int8 or index in self._float:
            return index
        if self._ops and index in {int(i) for i in self._graph.inputs}:
            return index
        self._float[index] = index
        self._convert("DEQUANTIZE", self._int8[index], index)
        return index

    def _convert(self, name: str, source: int, target: int) -> None:
        made = made_object("OperatorT")
        made.opcodeIndex = self._code(getattr(schema.BuiltinOperator, name), 2)
        made.inputs, made.outputs = [source], [target]
        self._ops.append(made)

    def _code(self, number: int, version: int) -> int:
        key = number, version
        if key not in self._codes:
            made = made_object("OperatorCodeT")
            made.builtinCode, made.version = number, version
            made.deprecatedBuiltinCode = min(number, 127)
            self._codes[key] = len(self._model.operatorCodes)
            self._model.operatorCodes.append(made)
        return self._codes[key]

    def _tensor(self, index: int, suffix: str, scaling: Fixed) -> int:
        """A new int8 tensor of the same shape."""
        like = self._graph.tensors[index]
        made = made_object("TensorT")
        made.name = like.name + (suffix or "_int8").encode()
        made.shape, made.shapeSignature = like.shape, like.shapeSignature
        made.hasRank, made.type = like.hasRank, self._kinds.INT8
        made.quantization = made_object("QuantizationParametersT")
        made.quantization.scale, made.quantization.zeroPoint = [scaling[0]], [scaling[1]]
        self._graph.tensors.append(made)
        return len(self._graph.tensors) - 1

    def _stored(self, index: int, value: NDArray[Any], scaling: Fixed) -> int:
        scale, zero = scaling
        levels = np.clip(np.rint(value / np.float32(scale)) + zero, -128, 127).astype(np.int8)
        made = self._tensor(index, "_stored", scaling)
        self._graph.tensors[made].buffer = add_buffer(self._model, levels)
        return made

    def _weigh(self, inputs: list[int], rule: Weights, data: int) -> None:
        """Symmetric int8 weights and an int32 bias, in place of the float ones."""
        into = self._scaling(data)[0]
        weights = self._constant(inputs[rule.weights])
        assert weights is not None
        axis = rule.axis if self._per_channel else None
        axes = tuple(a for a in range(weights.ndim) if a != axis)
        most = np.abs(weights).max(axis=axes if axis is not None else None, initial=0)
        scales = np.maximum(np.atleast_1d(most).astype(np.float64) / 127, 1e-12)
        given = rule.bias < len(inputs) and inputs[rule.bias] >= 0
        bias = self._constant(inputs[rule.bias]) if given else None
        if bias is not None:
            needed = np.abs(bias).astype(np.float64) / (into * _BIAS_MOST)
            scales = np.maximum(scales, needed if axis is not None else needed.max(initial=0))
        scales = scales.astype(np.float32)
        shape = [1] * weights.ndim
        if axis is not None:
            shape[axis] = -1
        levels = np.clip(np.rint(weights / scales.reshape(shape)), -127, 127).astype(np.int8)
        inputs[rule.weights] = self._put(inputs[rule.weights], levels, scales, axis or 0)
        if bias is not None:
            steps = scales.astype(np.float64) * into
            whole = np.rint(bias.astype(np.float64) / steps).astype(np.int32)
            inputs[rule.bias] = self._put(inputs[rule.bias], whole, steps.astype(np.float32), 0)

    def _put(self, like: int, values: NDArray[Any], scales: Floats, axis: int) -> int:
        made = self._tensor(like, "_int8", (1.0, 0))
        tensor = self._graph.tensors[made]
        tensor.type = self._kinds.INT32 if values.dtype == np.int32 else self._kinds.INT8
        tensor.buffer = add_buffer(self._model, values)
        tensor.quantization.scale = [float(s) for s in scales]
        tensor.quantization.zeroPoint = [0] * len(scales)
        tensor.quantization.quantizedDimension = axis
        return made
