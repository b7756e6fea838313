"""One operator of a TFLite file: computed while reading, or read by the binding of a form."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.front_end import Problem, RefusedError
from toolchain.frontends.tflite import refusals, shapes
from toolchain.frontends.tflite.file import (
    LARGEST_ACTIVATION_BYTES,
    FileModel,
    FileOp,
    FileTensor,
)
from toolchain.frontends.tflite.states import Variables, check_outside, of_variable
from toolchain.frontends.written_out import WrittenOut
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, State, Tensor
from toolchain.ir.names import Names
from toolchain.ops import specs
from toolchain.ops.forms import Form
from toolchain.ops.operator import operator_of
from toolchain.ops.spec import Array, ReadOp, TensorType
from toolchain.ops.unary.dequantize import dequantized

_PLAIN = frozenset({DType.INT16, DType.INT32, DType.UINT32})


@dataclass(frozen=True)
class _Node:
    """See `ops.spec.TfliteNode`."""

    op: FileOp
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    intermediates: tuple[Tensor | None, ...]
    open: bool = False
    """Whether the file leaves the shape of an output undefined."""
    asked: set[int] = field(default_factory=set)
    """The inputs whose constants were asked for."""

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
        self.asked.add(index)
        if tensor.constant is None:
            why = f"input {index} ({tensor.name!r}) is computed at run time"
            if self.open:
                why = f"the shape of its output is known only when it runs: {why}"
                raise self.unsupported(why, refusals.FIXED_SHAPES)
            raise self.unsupported(why, "convert with constant shapes, axes and indices")
        return tensor.constant

    def integers(self, index: int) -> tuple[int, ...]:
        return tuple(int(value) for value in self.constant(index).reshape(-1))

    def unsupported(self, why: str, remedy: str = "") -> Exception:
        return RefusedError(why, remedy)


def _check_all_are_read(node: _Node, answer: ReadOp) -> None:
    """Raise InputError for an input that means nothing to the operator: LiteRT counts them."""
    known = node.asked.union(answer.inputs, answer.ignored)
    for index, tensor in enumerate(node.inputs):
        if tensor is not None and index not in known:
            raise InputError(
                f"{node.op} has no input {index}, yet the file gives it {tensor.name!r}"
            )


@cache
def _forms() -> Mapping[str, tuple[Form[Any], ...]]:
    """Builtin operator name to the forms that read it, each for other element types."""
    table: dict[str, tuple[Form[Any], ...]] = {}
    for form in (form for kind in specs().values() for form in kind.forms):
        for builtin in form.tflite.builtins if form.tflite is not None else ():
            table[builtin] = (*table.get(builtin, ()), form)
    return MappingProxyType(
        {name: tuple(sorted(known, key=lambda f: len(f.dtypes))) for name, known in table.items()}
    )


def _form_for(
    op: FileOp, inputs: Sequence[FileTensor | None], outputs: Sequence[FileTensor]
) -> Form[Any]:
    """The form that takes all these tensors, and the fewest types beside theirs; of the first one's
    type if there is one, since constants of some types are taken by all; and for the type of the
    weights, if one is for no other.

    Raises RefusedError where there is none.
    """
    forms = _forms().get(op.name)
    if forms is None:
        raise RefusedError(*refusals.of_operator(op))
    ends = [end for end in (*inputs, *outputs) if end is not None]
    first: tuple[str, str] | None = None
    taking = []
    for form in forms:
        reasons = (refusals.of_tensor(end, form.dtypes) for end in ends)
        reason = next((reason for reason in reasons if reason is not None), None)
        if reason is None:
            taking.append(form)
        first = first or reason
    if not taking:
        every = frozenset(dtype for form in forms for dtype in form.dtypes)
        reasons = (refusals.of_tensor(end, every) for end in ends)
        reason = next((reason for reason in reasons if reason is not None), first)
        assert reason is not None
        raise RefusedError(*reason)
    data = ends[0].tensor if ends else None
    alike = [form for form in taking if data is not None and data.dtype in form.dtypes] or taking
    types = [end.tensor.dtype if end and end.tensor else None for end in inputs]
    return next((form for form in alike if form.takes_weights(types)), alike[0])


class OperatorReader:
    """Reads operators one by one; tensors become known as they are produced."""

    def __init__(self, model: FileModel, path: Path) -> None:
        self._model = model
        self._path = path
        self._file_tensors = list(model.tensors)
        self._tensors: dict[str, Tensor] = {}
        self._known: set[int] = set()
        self._problems: list[Problem] = []
        self._broken: list[str] = []
        self._shapeless: set[int] = set()
        self._names = Names(tensor.name for tensor in model.tensors)
        self._variables = Variables(model, self._names)
        self._states: list[State] = []
        self._constants: dict[int, Mapping[int, int]] = {}
        self._next_op = max((op.index for op in model.ops), default=0) + 1
        self._calls: list[int] = []
        self._written = WrittenOut()

    def _learn(self, index: int, tensor: Tensor) -> None:
        self._known.add(index)
        self._tensors[tensor.name] = tensor

    def _folded(self, op: FileOp) -> bool:
        """Whether all that the operator computes is known now: shapes, counters, wider constants.

        Its outputs are then constants.
        """
        if not op.outputs or self._widened(op):
            return bool(op.outputs)
        file_tensors = self._file_tensors
        outputs = [file_tensors[i].tensor for i in op.outputs]
        inputs = [self._tensors.get(file_tensors[i].name) for i in op.inputs if i != -1]
        values = shapes.folded(op, inputs, outputs)
        if values is None:
            return False
        for index, output, value in zip(op.outputs, outputs, values, strict=True):
            assert output is not None
            self._learn(index, replace(output, shape=value.shape, constant=value))
        return True

    def _widened(self, op: FileOp) -> bool:
        """Whether it is DEQUANTIZE of a constant: weights stored in float16 or int8."""
        if op.code != "DEQUANTIZE" or (len(op.inputs), len(op.outputs)) != (1, 1):
            return False
        source = self._tensors.get(self._file_tensors[op.inputs[0]].name)
        target = self._file_tensors[op.outputs[0]].tensor
        is_output = op.outputs[0] in self._model.outputs
        if source is None or source.constant is None or target is None or is_output:
            return False
        value = dequantized(source, source.constant)
        self._learn(op.outputs[0], replace(target, shape=value.shape, constant=value))
        return True

    def _with_real_table(self, op: FileOp) -> FileOp:
        """EMBEDDING_LOOKUP of real numbers from a table of int8: the table as the float32 that
        LiteRT makes of a row when it is asked for."""
        if op.code != "EMBEDDING_LOOKUP" or (len(op.inputs), len(op.outputs)) != (2, 1):
            return op
        place, table_tensor = op.inputs[1], self._file_tensors[op.inputs[1]]
        table, output = table_tensor.tensor, self._file_tensors[op.outputs[0]].tensor
        if table is None or output is None or table.constant is None:
            return op
        if (table.dtype, output.dtype) != (DType.INT8, DType.FLOAT32) or not table.quantisation:
            return op
        real = dequantized(table, table.constant)
        name = self._names.fresh(f"{table_tensor.name}_real")
        made = Tensor(name, table.shape, DType.FLOAT32, None, real)
        self._file_tensors.append(
            replace(table_tensor, name=name, tensor=made, type_name="FLOAT32")
        )
        self._variables.grow(self._file_tensors[-1:])
        self._learn(len(self._file_tensors) - 1, made)
        inputs = tuple(len(self._file_tensors) - 1 if i == place else i for i in op.inputs)
        return replace(op, inputs=inputs)

    def _read(self, op: FileOp) -> list[Op]:
        """The operator; none where its outputs have no elements."""
        op = self._with_real_table(self._without_empty(op))
        file_tensors = self._file_tensors
        given = [None if i == -1 else self._folded_tensor(i) for i in op.inputs]
        form = _form_for(op, given, [file_tensors[i] for i in op.outputs if i != -1])
        assert form.tflite is not None
        inputs = tuple(self._input(i) for i in op.inputs)
        narrowed = form.quantised.stored and all(x is None or x.dtype in _PLAIN for x in inputs)
        outputs = tuple(self._output(file_tensors[i], narrowed) for i in op.outputs)
        if not outputs:
            raise InputError(f"{op} has no output")
        between = tuple(file_tensors[i].tensor for i in op.intermediates)
        is_open = any(file_tensors[i].dynamic for i in op.outputs if i != -1)
        node = _Node(op, inputs, outputs, between, is_open)
        answer = form.tflite.read(node)
        _check_all_are_read(node, answer)
        _check_finite(op, answer.attributes)
        kept = [inputs[i] for i in answer.inputs]
        updated = self._updated(op, answer.states)
        if answer.memories:
            check_outside(op)
        for place, first in enumerate(answer.memories):
            kept.append(self._memory(f"{outputs[0].name}_memory{'_' * place}", first))
            updated.append(self._tensors[self._states[-1].output])
        result = Op(
            form.kind,
            f"{form.kind}_{op.index}",
            tuple("" if tensor is None else tensor.name for tensor in kept),
            tuple(tensor.name for tensor in (*outputs, *updated)),
            answer.attributes,
        )
        self._tensors.update({tensor.name: tensor for tensor in outputs})
        seen = Graph("", MappingProxyType(self._tensors), (), (), ())
        derived = form.infer(operator_of(result, seen))[: len(outputs)]
        for index, output, inferred in zip(op.outputs, outputs, derived, strict=True):
            end = replace(file_tensors[index], tensor=output)
            settled = settled_as(end, inferred, op)
            if not settled.elements:
                settled = replace(settled, constant=np.zeros(settled.shape, settled.dtype.numpy))
            self._learn(index, settled)
        made = [self._tensors[name] for name in result.outputs]
        return [result] if any(tensor.elements for tensor in made) else []

    def _folded_tensor(self, index: int) -> FileTensor:
        """A tensor of the file, as the constant that it is by now where operators were folded."""
        tensor = self._file_tensors[index]
        known = self._tensors.get(tensor.name)
        folded = known is not None and known.is_constant and tensor.tensor is not None
        return replace(tensor, tensor=known) if folded else tensor

    def _without_empty(self, op: FileOp) -> FileOp:
        """A CONCATENATION without inputs that have no elements; other operators as they are."""
        if op.code != "CONCATENATION":
            return op
        known = {i: self._tensors.get(self._file_tensors[i].name) for i in op.inputs}
        kept = [i for i, tensor in known.items() if tensor is None or tensor.elements]
        return replace(op, inputs=tuple(i for i in op.inputs if i in kept))

    def _updated(self, op: FileOp, states: tuple[int, ...]) -> list[Tensor]:
        """The next values of the variable tensors that the operator updates, its own alone."""
        updated = {op.inputs[index] for index in states}
        result = []
        for index in op.inputs:
            if index == -1 or not self._file_tensors[index].variable:
                continue
            variable = self._file_tensors[index]
            readers = sum(other.inputs.count(index) for other in self._model.ops)
            if index not in updated or readers != 1:
                raise RefusedError(
                    f"it reads the variable {variable.name!r}", "leave variables to SVDF and LSTM"
                )
        for number in states:
            tensor = self._tensors[self._file_tensors[op.inputs[number]].name]
            after, state = of_variable(tensor, self._names)
            self._tensors[after.name] = after
            self._states.append(state)
            result.append(after)
        return result

    def _memory(self, wished: str, first: Array) -> Tensor:
        """A state that the operator keeps and the file does not mention, by its first value."""
        name = self._names.fresh(wished)
        tensor = Tensor(name, first.shape, DType(first.dtype.name))
        after = replace(tensor, name=self._names.fresh(f"{name}_next"))
        self._tensors |= {name: tensor, after.name: after}
        self._states.append(State(name, after.name, first))
        return tensor

    def _input(self, index: int) -> Tensor | None:
        if index == -1:
            return None
        tensor = self._tensors[self._file_tensors[index].name]
        if tensor.dtype is DType.INT8 and tensor.quantisation is None:
            raise InputError(f"int8 tensor {tensor.name!r} has no scale")
        return tensor

    def _output(self, file_tensor: FileTensor, narrowed: bool) -> Tensor:
        """The operator's output. Plain integers that are `narrowed` to int8 have the scale 1."""
        assert file_tensor.tensor is not None
        if file_tensor.tensor.dtype is DType.INT8 and file_tensor.tensor.quantisation is None:
            if narrowed:
                return replace(file_tensor.tensor, quantisation=Quantisation((1.0,), (0,)))
            raise InputError(f"int8 tensor {file_tensor.name!r} has no scale")
        return file_tensor.tensor


def _check_finite(op: FileOp, attributes: Attributes) -> None:
    for name, value in vars(attributes).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{op} has the {name} {value}")


def settled_as(file_tensor: FileTensor, inferred: TensorType, op: FileOp) -> Tensor:
    """The output as the operator's shape rule has it; the file may leave a shape open."""
    tensor = file_tensor.tensor
    assert tensor is not None
    if inferred.dtype is not tensor.dtype:
        raise InputError(
            f"{op}: output {file_tensor.name!r} is {tensor.dtype.value}, not {inferred.dtype.value}"
        )
    if inferred.shape == tensor.shape:
        return tensor
    if not file_tensor.dynamic:
        raise InputError(
            f"{op}: output {file_tensor.name!r} has shape {list(tensor.shape)} in the file, but "
            f"its inputs make it {list(inferred.shape)}; if the file is whole, its shapes were "
            f"changed after conversion: {refusals.FIXED_SHAPES}"
        )
    settled = replace(tensor, shape=inferred.shape)
    if settled.size_bytes > LARGEST_ACTIVATION_BYTES:
        raise InputError(
            f"{op}: output {file_tensor.name!r} has the impossible {list(inferred.shape)}"
        )
    return settled
