"""The TFLite front end: operators are read by the `tflite` binding of their OpSpec."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.front_end import FrontEnd, Problem, RefusedError, unsupported
from toolchain.frontends.tflite import legacy, refusals
from toolchain.frontends.tflite.file import (
    IDENTIFIER,
    LARGEST_ACTIVATION_BYTES,
    FileModel,
    FileOp,
    FileTensor,
    read_file,
)
from toolchain.frontends.tflite.metadata import labels
from toolchain.frontends.tflite.shapes import folded
from toolchain.frontends.tflite.states import OPERATORS, Variables, free_name, of_variable
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, State, Tensor
from toolchain.ir.verify import InvalidGraphError
from toolchain.ops import specs
from toolchain.ops.check import check
from toolchain.ops.spec import Array, OpSpec, TensorType
from toolchain.ops.unary.dequantize import dequantized

_CONTRADICTIONS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    struct.error,
)
"""What reading an operator whose options and tensors contradict each other may raise."""
_PLAIN = frozenset({DType.INT16, DType.INT32, DType.UINT32})


@dataclass(frozen=True)
class _Node:
    """See `ops.spec.TfliteNode`."""

    op: FileOp
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    intermediates: tuple[Tensor | None, ...]

    @property
    def options(self) -> Any:
        return self.op.needed_options

    @property
    def has_options(self) -> bool:
        return self.op.options is not None or bool(self.op.misplaced_options)

    @property
    def builtin(self) -> str:
        return self.op.name

    @property
    def legacy(self) -> bool:
        return self.op.legacy

    @property
    def version(self) -> int:
        return self.op.version

    def constant(self, index: int) -> Array:
        tensor = self.inputs[index] if index < len(self.inputs) else None
        if tensor is None:
            raise InputError(f"{self.op} lacks its input {index}")
        if tensor.constant is None:
            raise self.unsupported(
                f"input {index} ({tensor.name!r}) is computed at run time",
                "convert with constant shapes, axes and indices",
            )
        return tensor.constant

    def unsupported(self, why: str, remedy: str = "") -> Exception:
        return RefusedError(why, remedy)


@cache
def _kinds() -> Mapping[str, tuple[OpSpec, ...]]:
    """Builtin operator name to the kinds that read it, each for other element types."""
    table: dict[str, tuple[OpSpec, ...]] = {}
    for spec in (form for kind in specs().values() for form in kind.forms):
        for builtin in spec.tflite.builtins if spec.tflite is not None else ():
            table[builtin] = (*table.get(builtin, ()), spec)
    return MappingProxyType(
        {name: tuple(sorted(kinds, key=lambda s: len(s.dtypes))) for name, kinds in table.items()}
    )


def _kind_for(op: FileOp, ends: Sequence[FileTensor]) -> OpSpec:
    """The kind that takes all these tensors, and the fewest types beside theirs.

    Raises RefusedError where there is none.
    """
    kinds = _kinds().get(op.name)
    if kinds is None:
        raise RefusedError(*refusals.of_operator(op))
    first: tuple[str, str] | None = None
    for spec in kinds:
        reasons = (refusals.of_tensor(end, spec.dtypes) for end in ends)
        reason = next((reason for reason in reasons if reason is not None), None)
        if reason is None:
            return spec
        first = first or reason
    assert first is not None
    raise RefusedError(*first)


def read(data: bytes, path: Path) -> Graph:
    """A TFLite file's main subgraph. See `FrontEnd.read`."""
    try:
        model = read_file(data)
        if legacy.is_legacy(model):
            model = legacy.as_int8(model)
        return _Reader(model, path).graph()
    except UnsupportedError:
        raise
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from error


class _Reader:
    """Walks the operators in the file's order; tensors become known as they are produced."""

    def __init__(self, model: FileModel, path: Path) -> None:
        self._model = model
        self._path = path
        self._tensors: dict[str, Tensor] = {}
        self._known: set[int] = set()
        self._problems: list[Problem] = []
        self._variables = Variables(model)
        self._states: list[State] = []

    def graph(self) -> Graph:
        model = self._model
        self._enter()
        ops = [op for file_op in model.ops if (op := self._operator(file_op)) is not None]
        if self._problems:
            raise unsupported(self._path, self._problems, len(model.ops))
        if why := refusals.of_model(model):
            raise UnsupportedError(f"{self._path.name}: {why}")
        if not ops:
            raise InputError("the model has no operators")
        inputs = tuple(model.tensors[i].name for i in model.inputs)
        outputs = self._leave()
        updates, states = self._variables.finish(self._tensors)
        ops += updates
        order = {t.name: self._tensors[t.name] for t in model.tensors if t.name in self._tensors}
        order |= self._tensors
        ends = inputs, outputs, (*self._states, *states)
        whole = Graph.build(self._path.stem, order.values(), ops, *ends)
        try:
            return check(whole.with_ops(ops))
        except InvalidGraphError as error:
            raise InputError(str(error)) from error

    def _enter(self) -> None:
        """Constants and the model's inputs are known from the start.

        So are tensors that cannot be used: the operators that read them are refused.
        """
        model = self._model
        produced = {i for op in model.ops for i in op.outputs}
        if len(set(model.inputs)) != len(model.inputs):
            raise InputError("the model lists an input twice")
        for index, tensor in enumerate(model.tensors):
            if tensor.tensor is not None and tensor.tensor.is_constant:
                self._learn(index, tensor.tensor)
            if tensor.tensor is None and index not in produced:
                self._known.add(index)
            if tensor.tensor is not None and tensor.variable and index not in produced:
                self._learn(index, tensor.tensor)
        for index in model.inputs:
            found = model.tensors[index]
            if found.tensor is not None:
                self._learn(index, found.tensor)
                if any(axis > 0 for axis in found.open_axes):
                    shape = [-1 if a in found.open_axes else s for a, s in _axes(found.tensor)]
                    raise InputError(
                        f"input {found.name!r} has the open shape {shape}: only a first "
                        "dimension may be open (it becomes 1); convert with a fixed input shape"
                    )
                if found.tensor.elements == 0:
                    raise InputError(f"input {found.name!r} is empty")
            self._known.add(index)

    def _leave(self) -> tuple[str, ...]:
        """Names of the model's outputs, each of which an operator must have produced."""
        produced = {i for op in self._model.ops for i in op.outputs}
        for index in self._model.outputs:
            if index not in produced:
                name = self._model.tensors[index].name
                raise InputError(f"no operator computes the model's output {name!r}")
        if not self._model.outputs:
            raise InputError("the model has no outputs")
        if len(set(self._model.outputs)) != len(self._model.outputs):
            raise InputError("the model lists an output twice")
        return tuple(self._model.tensors[i].name for i in self._model.outputs)

    def _learn(self, index: int, tensor: Tensor) -> None:
        self._known.add(index)
        self._tensors[tensor.name] = tensor

    def _operator(self, op: FileOp) -> Op | None:
        """Read one operator, or note why it cannot be read."""
        file_tensors = self._model.tensors
        for index in op.inputs:
            if index != -1 and index not in self._known:
                raise InputError(
                    f"{op} reads {file_tensors[index].name!r}, which is neither computed before "
                    "it nor a constant with data"
                )
        for index in op.outputs:
            if index in self._known:
                raise InputError(f"{op} writes {file_tensors[index].name!r}, which is not its own")
        try:
            if op.code in OPERATORS:
                read = self._variables.operator(op, self._tensors)
                self._known.update(op.outputs)
                return read
            return None if self._folded(op) else self._read(op)
        except RefusedError as refused:
            self._problems.append(Problem(op.name, op.index, refused.why, refused.remedy))
        except InputError:
            raise
        except _CONTRADICTIONS as error:
            raise InputError(f"{op} is malformed: {error or type(error).__name__}") from error
        for index in op.outputs:
            self._known.add(index)
            tensor = file_tensors[index].tensor
            if tensor is not None:
                self._tensors[tensor.name] = tensor
        return None

    def _folded(self, op: FileOp) -> bool:
        """Whether the operator only computes with shapes, or widens a constant.

        Its output is then a constant.
        """
        if len(op.outputs) != 1 or self._widened(op):
            return len(op.outputs) == 1
        file_tensors = self._model.tensors
        output = file_tensors[op.outputs[0]].tensor
        inputs = [self._tensors.get(file_tensors[i].name) for i in op.inputs if i != -1]
        value = folded(op, inputs, output)
        if value is None or output is None:
            return False
        self._learn(op.outputs[0], replace(output, shape=value.shape, constant=value))
        return True

    def _widened(self, op: FileOp) -> bool:
        """Whether it is DEQUANTIZE of a constant: weights stored in float16 or int8."""
        if op.code != "DEQUANTIZE" or len(op.inputs) != 1:
            return False
        source = self._tensors.get(self._model.tensors[op.inputs[0]].name)
        target = self._model.tensors[op.outputs[0]].tensor
        is_output = op.outputs[0] in self._model.outputs
        if source is None or source.constant is None or target is None or is_output:
            return False
        value = dequantized(source, source.constant)
        self._learn(op.outputs[0], replace(target, shape=value.shape, constant=value))
        return True

    def _read(self, op: FileOp) -> Op:
        file_tensors = self._model.tensors
        spec = _kind_for(op, [file_tensors[i] for i in (*op.inputs, *op.outputs) if i != -1])
        assert spec.tflite is not None
        inputs = tuple(self._input(i) for i in op.inputs)
        narrowed = spec.quantised.stored and all(x is None or x.dtype in _PLAIN for x in inputs)
        outputs = tuple(self._output(file_tensors[i], narrowed) for i in op.outputs)
        if not outputs:
            raise InputError(f"{op} has no output")
        between = tuple(file_tensors[i].tensor for i in op.intermediates)
        answer = spec.tflite.read(_Node(op, inputs, outputs, between))
        _check_finite(op, answer.attributes)
        kept = [inputs[i] for i in answer.inputs]
        updated = self._updated(op, answer.states)
        for first in answer.memories:
            kept.append(self._memory(outputs[0], first))
            updated.append(self._tensors[self._states[-1].output])
        result = Op(
            spec.kind,
            f"{spec.kind}_{op.index}",
            tuple("" if tensor is None else tensor.name for tensor in kept),
            tuple(tensor.name for tensor in (*outputs, *updated)),
            answer.attributes,
        )
        self._tensors.update({tensor.name: tensor for tensor in outputs})
        seen = Graph("", MappingProxyType(self._tensors), (), (), ())
        derived = spec.infer(result, seen)[: len(outputs)]
        for index, output, inferred in zip(op.outputs, outputs, derived, strict=True):
            found = replace(file_tensors[index], tensor=output)
            self._learn(index, _settled(found, inferred, op))
        return result

    def _updated(self, op: FileOp, states: tuple[int, ...]) -> list[Tensor]:
        """The next values of the variable tensors that the operator updates, its own alone."""
        own = {op.inputs[index] for index in states}
        result = []
        for index in op.inputs:
            if index == -1 or not self._model.tensors[index].variable:
                continue
            found = self._model.tensors[index]
            readers = sum(other.inputs.count(index) for other in self._model.ops)
            if index not in own or readers != 1:
                raise RefusedError(
                    f"it reads the variable {found.name!r}", "leave variables to SVDF and LSTM"
                )
        for number in states:
            tensor = self._tensors[self._model.tensors[op.inputs[number]].name]
            taken = {*self._tensors, *(t.name for t in self._model.tensors)}
            after, state = of_variable(tensor, taken)
            self._tensors[after.name] = after
            self._states.append(state)
            result.append(after)
        return result

    def _memory(self, output: Tensor, first: Array) -> Tensor:
        """A state that the operator keeps and the file does not mention, by its first value."""
        taken = {*self._tensors, *(t.name for t in self._model.tensors)}
        name = free_name(f"{output.name}_memory", taken)
        tensor = Tensor(name, first.shape, DType(first.dtype.name))
        after = replace(tensor, name=free_name(f"{name}_next", taken))
        self._tensors |= {name: tensor, after.name: after}
        self._states.append(State(name, after.name, first))
        return tensor

    def _input(self, index: int) -> Tensor | None:
        if index == -1:
            return None
        tensor = self._tensors[self._model.tensors[index].name]
        if tensor.dtype is DType.INT8 and tensor.quantisation is None:
            raise InputError(f"int8 tensor {tensor.name!r} has no scale")
        return tensor

    def _output(self, found: FileTensor, narrowed: bool) -> Tensor:
        """The operator's output. Plain integers that are `narrowed` to int8 have the scale 1."""
        assert found.tensor is not None
        if found.tensor.dtype is DType.INT8 and found.tensor.quantisation is None:
            if narrowed:
                return replace(found.tensor, quantisation=Quantisation((1.0,), (0,)))
            raise InputError(f"int8 tensor {found.name!r} has no scale")
        return found.tensor


def _check_finite(op: FileOp, attributes: Attributes) -> None:
    for name, value in vars(attributes).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{op} has the {name} {value}")


def _axes(tensor: Tensor) -> list[tuple[int, int]]:
    return list(enumerate(tensor.shape))


def _settled(found: FileTensor, inferred: TensorType, op: FileOp) -> Tensor:
    """The output as the operator's shape rule has it; the file may leave a shape open."""
    tensor = found.tensor
    assert tensor is not None
    if inferred.dtype is not tensor.dtype:
        raise InputError(
            f"{op}: output {found.name!r} is {tensor.dtype.value}, not {inferred.dtype.value}"
        )
    if inferred.shape == tensor.shape:
        return tensor
    if not found.dynamic:
        raise InputError(
            f"{op}: output {found.name!r} has shape {list(tensor.shape)} in the file, but its "
            f"inputs make it {list(inferred.shape)}"
        )
    settled = replace(tensor, shape=inferred.shape)
    if settled.size_bytes > LARGEST_ACTIVATION_BYTES:
        raise InputError(f"{op}: output {found.name!r} has the impossible {list(inferred.shape)}")
    return settled


def _recognises(data: bytes) -> bool:
    return data[4:8] == IDENTIFIER


READ_AWAY = tuple(sorted({*OPERATORS, "SHAPE"}))
"""Operators that reading removes: states, and arithmetic on shapes."""

FRONT_END = FrontEnd("TFLite", (".tflite", ".lite"), _recognises, read, labels)
