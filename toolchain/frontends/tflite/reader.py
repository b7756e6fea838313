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

import numpy as np

from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.front_end import (
    AS_WRITTEN,
    FrontEnd,
    Problem,
    Reading,
    RefusedError,
    unsupported,
)
from toolchain.frontends.tflite import (
    bidirectional,
    circular,
    control,
    legacy,
    refusals,
    shapes,
    spectra,
)
from toolchain.frontends.tflite.file import (
    IDENTIFIER,
    LARGEST_ACTIVATION_BYTES,
    FileModel,
    FileOp,
    FileTensor,
    read_file,
)
from toolchain.frontends.tflite.metadata import labels
from toolchain.frontends.tflite.spectra import Spectra, plain
from toolchain.frontends.tflite.states import OPERATORS, Variables, free_name, of_variable
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, State, Tensor
from toolchain.ir.verify import InvalidGraphError
from toolchain.ops import specs
from toolchain.ops.check import check
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.spec import Array, OpSpec, TensorType
from toolchain.ops.unary.dequantize import dequantized

_CONTRADICTIONS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
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
        self._found = list(model.tensors)
        self._tensors: dict[str, Tensor] = {}
        self._known: set[int] = set()
        self._problems: list[Problem] = []
        self._broken: list[str] = []
        self._variables = Variables(model)
        self._spectra = Spectra(model)
        self._states: list[State] = []
        self._constants: dict[int, Mapping[int, int]] = {}
        self._next_op = max((op.index for op in model.ops), default=0) + 1
        self._calls: list[int] = []
        self._names = {tensor.name for tensor in model.tensors}

    def graph(self) -> Graph:
        model = self._model
        self._enter()
        ops = [op for file_op in model.ops for op in self._operator(file_op)]
        self._refuse()
        if why := refusals.of_model(model):
            raise UnsupportedError(f"{self._path.name}: {why}")
        if not model.ops:
            raise InputError("the model has no operators")
        inputs = tuple(model.tensors[i].name for i in model.inputs)
        outputs = self._leave()
        updates, states = self._variables.finish(self._tensors)
        ops = self._copied(outputs, ops + updates)
        order = {t.name: self._tensors[t.name] for t in self._found if t.name in self._tensors}
        order |= self._tensors
        ends = inputs, outputs, (*self._states, *states)
        whole = Graph.build(self._path.stem, order.values(), ops, *ends)
        try:
            return check(whole.with_ops(ops))
        except InvalidGraphError as error:
            raise InputError(str(error)) from error

    def _refuse(self) -> None:
        """Raise one error for all operators that could not be read, if there are any."""
        if not self._problems and not self._broken:
            return
        lines = list(self._broken)
        if self._problems:
            refusal = unsupported(self._path, self._problems, len(self._model.ops))
            if not lines:
                raise refusal
            lines.append(str(refusal))
        raise InputError("\n".join(lines))

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
        """Names of the model's outputs: what an operator has produced, or a constant."""
        produced = {i for op in self._model.ops for i in op.outputs}
        for index in self._model.outputs:
            found = self._found[index]
            known = self._tensors.get(found.name)
            if index not in produced and (known is None or not known.is_constant):
                raise InputError(f"no operator computes the model's output {found.name!r}")
            if known is not None and not known.elements:
                raise InputError(f"nothing is left of the model's output {found.name!r}")
        if not self._model.outputs:
            raise InputError("the model has no outputs")
        if len(set(self._model.outputs)) != len(self._model.outputs):
            raise InputError("the model lists an output twice")
        return tuple(self._found[i].name for i in self._model.outputs)

    def _copied(self, outputs: Sequence[str], ops: list[Op]) -> list[Op]:
        """Outputs that are constants, in the file or folded, become copies of these.

        `ops` read the constants, whose new names end in "/value".
        """
        renamed: dict[str, str] = {}
        for name in outputs:
            value = self._tensors[name]
            if not value.is_constant:
                continue
            taken = {*self._tensors, *(t.name for t in self._found)}
            inner = renamed[name] = free_name(f"{name}/value", taken)
            self._tensors[inner] = replace(value, name=inner)
            self._tensors[name] = replace(value, constant=None)
        read = [replace(op, inputs=tuple(renamed.get(i, i) for i in op.inputs)) for op in ops]
        return read + [
            Op("reshape", f"copy_of_{inner}", (inner,), (name,), Reshape(self._tensors[name].shape))
            for name, inner in renamed.items()
        ]

    def _learn(self, index: int, tensor: Tensor) -> None:
        self._known.add(index)
        self._tensors[tensor.name] = tensor

    def _operator(self, op: FileOp) -> list[Op]:
        """Read one operator, or note why it cannot be read."""
        file_tensors = self._found
        try:
            self._check_order(op)
            if op.code in OPERATORS:
                read = self._variables.operator(op, self._tensors)
                self._known.update(op.outputs)
                return [] if read is None else [read]
            if op.code in control.OPERATORS:
                return self._called(op)
            if op.code in bidirectional.OPERATORS:
                return self._bidirectional(op)
            if op.custom == circular.CUSTOM:
                return self._ring(op)
            if self._spectra.takes(op):
                return self._of_spectrum(op)
            return [] if self._folded(op) else self._read(op)
        except RefusedError as refused:
            self._problems.append(Problem(op.name, op.place, refused.why, refused.remedy))
        except InputError as error:
            self._broken.append(str(error))
        except ValueError as error:
            self._broken.append(f"{op}: {error}")
        except _CONTRADICTIONS as error:
            self._broken.append(f"{op} is malformed: {error or type(error).__name__}")
        for index in op.outputs:
            self._known.add(index)
            tensor = file_tensors[index].tensor
            if tensor is not None:
                self._tensors[tensor.name] = tensor
        return []

    def _check_order(self, op: FileOp) -> None:
        """Raise InputError if the operator reads what is not there, or writes what is."""
        for index in op.inputs:
            if index != -1 and index not in self._known:
                raise InputError(
                    f"{op} reads {self._found[index].name!r}, which is neither computed before "
                    "it nor a constant with data"
                )
        for index in op.outputs:
            if index in self._known:
                raise InputError(f"{op} writes {self._found[index].name!r}, which is not its own")

    def _called(self, op: FileOp) -> list[Op]:
        """The operators of the subgraphs that the operator calls, in its place."""
        numbers = control.called_by(op)
        given = op.inputs
        if op.code == "IF":
            taken = self._known_condition(op.inputs[0])
            if taken is None:
                raise RefusedError(
                    "its condition is computed at run time",
                    "export the model without branches, or with a constant condition",
                )
            numbers, given = (numbers[0 if taken else 1],), op.inputs[1:]
        made: list[Op] = []
        if op.code == "WHILE":
            condition, body = numbers
            while self._goes_on(op, condition, given):
                ops, given = self._inline(op, body, given)
                made += ops
        else:
            made, given = self._inline(op, numbers[0], given)
        if len(given) != len(op.outputs):
            raise InputError(
                f"{op} has {len(op.outputs)} outputs, where its subgraph has {len(given)}"
            )
        for source, target in zip(given, op.outputs, strict=True):
            made += self._passed_on(op, source, target)
        return made

    def _known_condition(self, index: int) -> bool | None:
        """A condition that is a constant; None for one that is not."""
        value = self._tensors[self._found[index].name].constant
        if value is not None and value.size != 1:
            raise InputError(f"the condition {self._found[index].name!r} is not one value")
        return None if value is None else bool(value.reshape(()))

    def _goes_on(self, op: FileOp, number: int, given: Sequence[int]) -> bool:
        """Whether a loop takes another turn. Raises RefusedError where that depends on data."""
        called = self._enter_subgraph(op, number, given)
        for step in called.ops:
            self._folded(step)
        (result,) = called.results
        known = result in self._known
        taken = self._known_condition(result) if known else None
        if taken is None:
            raise RefusedError(
                "how often it loops depends on data",
                "export the model with a fixed number of steps",
            )
        return taken

    def _inline(
        self, op: FileOp, number: int, given: Sequence[int]
    ) -> tuple[list[Op], tuple[int, ...]]:
        """The operators of one call, and the numbers of its results."""
        if number in self._calls:
            raise InputError(f"{op} calls subgraph {number}, which calls itself")
        called = self._enter_subgraph(op, number, given)
        self._calls.append(number)
        made = [read for step in called.ops for read in self._operator(step)]
        self._calls.pop()
        return made, called.results

    def _enter_subgraph(self, op: FileOp, number: int, given: Sequence[int]) -> control.Inlined:
        """Add the tensors of a called subgraph to the model's, and learn its constants."""
        called = control.inlined(
            self._model.others,
            self._found,
            number,
            op,
            given,
            constants=self._constants.get(number, {}),
            first_op=self._next_op,
            taken=self._names,
        )
        self._constants[number] = called.constants
        self._next_op += len(called.ops)
        if self._next_op > control.MOST_OPERATORS:
            raise RefusedError(
                f"its loops make more than {control.MOST_OPERATORS} operators",
                "export the model with fewer steps",
            )
        self._names |= {tensor.name for tensor in called.tensors}
        self._found += called.tensors
        self._variables.grow(called.tensors)
        produced = {i for step in called.ops for i in step.outputs}
        for index, tensor in enumerate(called.tensors, called.first):
            if tensor.tensor is not None and tensor.tensor.is_constant:
                self._learn(index, tensor.tensor)
            elif tensor.tensor is None and index not in produced:
                self._known.add(index)
        return called

    def _passed_on(self, op: FileOp, source: int, target: int) -> list[Op]:
        """A result of a subgraph as an output of its caller: a reshape to the same shape."""
        if source not in self._known:
            name = self._found[source].name
            raise InputError(f"{op}: no operator of its subgraph computes {name!r}")
        found = self._found[target]
        control.check_alike(op, self._found[source], found)
        self._known.add(target)
        value = self._tensors.get(self._found[source].name)
        if found.tensor is None or value is None:  # a variable, say
            return []
        if not found.dynamic and value.shape != found.tensor.shape:
            raise InputError(
                f"{op}: output {found.name!r} has shape {list(found.tensor.shape)} in the file, "
                f"but its subgraph makes it {list(value.shape)}"
            )
        self._learn(target, replace(value, name=found.name))
        if value.is_constant and target not in self._model.outputs:
            return []
        self._learn(target, replace(value, name=found.name, constant=None))
        name = f"passed_on_{self._next_op}"
        self._next_op += 1
        return [Op("reshape", name, (value.name,), (found.name,), Reshape(value.shape))]

    def _folded(self, op: FileOp) -> bool:
        """Whether all that the operator computes is known now: shapes, counters, wider constants.

        Its outputs are then constants.
        """
        if not op.outputs or self._widened(op):
            return bool(op.outputs)
        file_tensors = self._found
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
        source = self._tensors.get(self._found[op.inputs[0]].name)
        target = self._found[op.outputs[0]].tensor
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
        place, found = op.inputs[1], self._found[op.inputs[1]]
        table, output = found.tensor, self._found[op.outputs[0]].tensor
        if table is None or output is None or table.constant is None:
            return op
        if (table.dtype, output.dtype) != (DType.INT8, DType.FLOAT32) or not table.quantisation:
            return op
        real = dequantized(table, table.constant)
        name = free_name(f"{found.name}_real", self._names | self._tensors.keys())
        made = Tensor(name, table.shape, DType.FLOAT32, None, real)
        self._names.add(name)
        self._found.append(replace(found, name=name, tensor=made, type_name="FLOAT32"))
        self._variables.grow(self._found[-1:])
        self._learn(len(self._found) - 1, made)
        inputs = tuple(len(self._found) - 1 if i == place else i for i in op.inputs)
        return replace(op, inputs=inputs)

    def _read(self, op: FileOp) -> list[Op]:
        """The operator; none where its outputs have no elements."""
        op = self._with_real_table(self._without_empty(op))
        file_tensors = self._found
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
            settled = _settled(found, inferred, op)
            if not settled.elements:
                settled = replace(settled, constant=np.zeros(settled.shape, settled.dtype.numpy))
            self._learn(index, settled)
        made = [self._tensors[name] for name in result.outputs]
        return [result] if any(tensor.elements for tensor in made) else []

    def _without_empty(self, op: FileOp) -> FileOp:
        """A CONCATENATION without inputs that have no elements; other operators as they are."""
        if op.code != "CONCATENATION":
            return op
        known = {i: self._tensors.get(self._found[i].name) for i in op.inputs}
        kept = [i for i, tensor in known.items() if tensor is None or tensor.elements]
        return replace(op, inputs=tuple(i for i in op.inputs if i in kept))

    def _bidirectional(self, op: FileOp) -> list[Op]:
        """Two layers, the second one backwards; their outputs are joined if the file says so."""
        layers = bidirectional.layers(op)
        merged = len(op.outputs) == 1
        targets = op.outputs
        if merged:
            endings = ("forwards", "backwards")
            targets = tuple(self._added(op.outputs[0], ending) for ending in endings)
        made = [
            replace(found, name=f"{found.name}_{name}")
            for layer, target, name in zip(layers, targets, ("forwards", "backwards"), strict=True)
            for found in self._read(replace(layer, outputs=(target,)))
        ]
        if merged:
            (target,) = op.outputs
            joined = bidirectional.joined(op, made)
            found = self._found[target]
            assert found.tensor is not None
            seen = Graph("", MappingProxyType(self._tensors), (), (), ())
            joined = replace(joined, outputs=(found.name,))
            (inferred,) = specs()[joined.kind].infer(joined, seen)
            self._learn(target, _settled(found, inferred, op))
            made.append(joined)
        return made

    def _added(self, like: int, ending: str) -> int:
        """The number of a tensor more, whose shape its operator says."""
        found = self._found[like]
        if found.tensor is None:
            raise RefusedError(f"tensor {found.name!r} is {found.type_name.lower()}")
        name = free_name(f"{found.name}_{ending}", self._names | self._tensors.keys())
        added = plain(found, name)
        self._names.add(name)
        self._found.append(added)
        self._variables.grow([added])
        return len(self._found) - 1

    def _ring(self, op: FileOp) -> list[Op]:
        """A circular buffer, whose output the file may mark as a variable."""
        if (len(op.inputs), len(op.outputs)) != (1, 1) or op.inputs[0] == -1:
            raise InputError(f"{op} has {len(op.inputs)} inputs and {len(op.outputs)} outputs")
        (source,), (target,) = op.inputs, op.outputs
        found = self._found[target]
        reason = refusals.of_tensor(found, frozenset(DType)) or refusals.of_tensor(
            self._found[source], frozenset(DType)
        )
        if reason is not None:
            raise RefusedError(*reason)
        x, y = self._input(source), self._output(found, narrowed=False)
        assert x is not None
        made = circular.ring(op, x, y, self._names | self._tensors.keys())
        self._tensors |= {tensor.name: tensor for tensor in made.tensors}
        self._states += made.states
        self._found[target] = replace(found, variable=False)
        self._learn(target, y)
        return list(made.ops)

    def _of_spectrum(self, op: FileOp) -> list[Op]:
        """Of operators that make and reshape complex numbers nothing; one that reads them."""
        behind = self._spectra.operator(op)
        if behind is None:
            self._known.update(op.outputs)
            return []
        if not behind.reshaped:
            return self._read(behind.op)
        (target,) = op.outputs
        found = self._found[target]
        number = self._added(target, "spectrum")
        name = self._found[number].name
        assert found.tensor is not None
        (read,) = self._read(replace(behind.op, outputs=(number,)))
        value = self._tensors[name]
        if value.elements != found.tensor.elements:
            raise InputError(f"{op}: {value} does not fit its output {found.tensor}")
        self._learn(target, found.tensor)
        shape = Reshape(found.tensor.shape)
        return [read, Op("reshape", f"{read.name}_reshaped", (name,), (found.name,), shape)]

    def _updated(self, op: FileOp, states: tuple[int, ...]) -> list[Tensor]:
        """The next values of the variable tensors that the operator updates, its own alone."""
        own = {op.inputs[index] for index in states}
        result = []
        for index in op.inputs:
            if index == -1 or not self._found[index].variable:
                continue
            found = self._found[index]
            readers = sum(other.inputs.count(index) for other in self._model.ops)
            if index not in own or readers != 1:
                raise RefusedError(
                    f"it reads the variable {found.name!r}", "leave variables to SVDF and LSTM"
                )
        for number in states:
            tensor = self._tensors[self._found[op.inputs[number]].name]
            taken = {*self._tensors, *(t.name for t in self._found)}
            after, state = of_variable(tensor, taken)
            self._tensors[after.name] = after
            self._states.append(state)
            result.append(after)
        return result

    def _memory(self, output: Tensor, first: Array) -> Tensor:
        """A state that the operator keeps and the file does not mention, by its first value."""
        taken = {*self._tensors, *(t.name for t in self._found)}
        name = free_name(f"{output.name}_memory", taken)
        tensor = Tensor(name, first.shape, DType(first.dtype.name))
        after = replace(tensor, name=free_name(f"{name}_next", taken))
        self._tensors |= {name: tensor, after.name: after}
        self._states.append(State(name, after.name, first))
        return tensor

    def _input(self, index: int) -> Tensor | None:
        if index == -1:
            return None
        tensor = self._tensors[self._found[index].name]
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


READ_AWAY = tuple(
    sorted(
        {
            *OPERATORS,
            *control.OPERATORS,
            *shapes.OPERATORS,
            *spectra.OPERATORS,
            circular.CUSTOM,
            *bidirectional.OPERATORS,
        }
    )
)
"""Operators that reading removes: states, known control flow, arithmetic on shapes, and complex
numbers."""


def _read(data: bytes, path: Path, wanted: Reading = AS_WRITTEN) -> Graph:
    if wanted.input_shapes:
        raise InputError(
            f"{path.name}: --input-shape is for ONNX files; the shapes of a TFLite file are fixed "
            "by its converter"
        )
    return read(data, path)


FRONT_END = FrontEnd("TFLite", (".tflite", ".lite"), _recognises, _read, labels)
