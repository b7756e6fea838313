"""The TFLite front end: operators are read by the `tflite` binding of a form."""

from __future__ import annotations

import shlex
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

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
    chosen,
    circular,
    compressed,
    control,
    legacy,
    mediapipe,
    refusals,
    shapes,
    spectra,
    states,
)
from toolchain.frontends.tflite.composed import ComposedReader
from toolchain.frontends.tflite.expansion import check_calls
from toolchain.frontends.tflite.file import IDENTIFIER, FileOp, FileTensor, read_file
from toolchain.frontends.tflite.metadata import labels
from toolchain.frontends.tflite.resized import resized
from toolchain.frontends.tflite.states import OUTSIDE
from toolchain.frontends.written_out import TooManyError
from toolchain.ir import Graph, Op, Tensor
from toolchain.ir.names import Names
from toolchain.ir.verify import InvalidGraphError
from toolchain.ops.check import check
from toolchain.ops.control.body import Body, alike
from toolchain.ops.control.branch import Branch
from toolchain.ops.control.while_loop import WhileLoop
from toolchain.ops.movement.reshape import Reshape

_CONTRADICTIONS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    struct.error,
)
"""Errors that reading may raise where an operator's options and tensors contradict each other."""


def read(data: bytes, path: Path) -> Graph:
    """A TFLite file's main subgraph. See `FrontEnd.read`."""
    try:
        model = read_file(data)
        check_calls(model)
        if legacy.is_legacy(model):
            model = legacy.as_int8(model)
        return _Reader(model, path).graph()
    except UnsupportedError:
        raise
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from error


class _Reader(ComposedReader):
    """Walks the operators in the file's order."""

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
        ops = _distinct(self._copied(outputs, ops + updates))
        order = {
            t.name: self._tensors[t.name] for t in self._file_tensors if t.name in self._tensors
        }
        order |= self._tensors
        ends = inputs, outputs, (*self._states, *states)
        whole = Graph.build(self._path.stem, order.values(), ops, *ends)
        try:
            return check(whole.with_ops(ops))
        except InvalidGraphError as error:
            raise InputError(str(error)) from error

    def inside(self, name: str) -> Graph | None:
        """A subgraph that an operator holds; None where operators in it cannot be read."""
        model = self._model
        self._enter()
        ops = [op for file_op in model.ops for op in self._operator(file_op)]
        if self._problems or self._broken:
            return None
        if self._states or self._variables.finish(self._tensors)[1]:
            raise RefusedError(f"its {name.replace('_', ' ')} keeps a state", OUTSIDE)
        inputs = [model.tensors[i].name for i in model.inputs]
        outputs = []
        for index in model.outputs:
            output = self._file_tensors[index].name
            if output not in self._tensors:
                raise InputError(f"no operator computes {output!r}, which {name} returns")
            if output in inputs or output in outputs or self._tensors[output].is_constant:
                copy = self._names.fresh(f"{output}/copy")
                shape = self._tensors[output].shape
                self._tensors[copy] = replace(self._tensors[output], name=copy, constant=None)
                ops.append(Op("reshape", f"give_{copy}", (output,), (copy,), Reshape(shape)))
                output = copy
            outputs.append(output)
        ops = _distinct(ops)
        return Graph.build(name, self._tensors.values(), ops, inputs, outputs).with_ops(ops)

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
        """Enter constants and the model's inputs, which are known from the start.

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
            entering = model.tensors[index]
            if entering.tensor is not None:
                self._learn(index, entering.tensor)
                if any(axis > 0 for axis in entering.open_axes):
                    raise InputError(_open_shape(entering, entering.tensor.shape))
                if not entering.tensor.shape and not self._calls:
                    self._shapeless.add(index)
                if entering.tensor.elements == 0:
                    raise InputError(f"input {entering.name!r} is empty")
            self._known.add(index)

    def _leave(self) -> tuple[str, ...]:
        """Names of the model's outputs: what an operator has produced, or a constant."""
        produced = {i for op in self._model.ops for i in op.outputs}
        for index in self._model.outputs:
            leaving = self._file_tensors[index]
            known = self._tensors.get(leaving.name)
            if index not in produced and (known is None or not known.is_constant):
                raise InputError(f"no operator computes the model's output {leaving.name!r}")
            if known is None:
                raise InputError(
                    f"the model's output {leaving.name!r} holds no numbers that can be returned "
                    "(a complex value or a variable): return what is computed from it"
                )
            if not known.elements:
                raise InputError(f"nothing is left of the model's output {leaving.name!r}")
        if not self._model.outputs:
            raise InputError("the model has no outputs")
        if len(set(self._model.outputs)) != len(self._model.outputs):
            raise InputError("the model lists an output twice")
        return tuple(self._file_tensors[i].name for i in self._model.outputs)

    def _copied(self, outputs: Sequence[str], ops: list[Op]) -> list[Op]:
        """Outputs that are constants, in the file or folded, become copies of these.

        `ops` read the constants, whose new names end in "/value".
        """
        renamed: dict[str, str] = {}
        for name in outputs:
            value = self._tensors[name]
            if not value.is_constant:
                continue
            inner = renamed[name] = self._names.fresh(f"{name}/value")
            self._tensors[inner] = replace(value, name=inner)
            self._tensors[name] = replace(value, constant=None)
        read = [replace(op, inputs=tuple(renamed.get(i, i) for i in op.inputs)) for op in ops]
        return read + [
            Op("reshape", f"copy_of_{inner}", (inner,), (name,), Reshape(self._tensors[name].shape))
            for name, inner in renamed.items()
        ]

    def _operator(self, op: FileOp) -> list[Op]:
        """Read one operator, or note why it cannot be read."""
        try:
            if refusals.compiled_for(op):  # it reads what only its processor's driver gives
                raise RefusedError(*refusals.of_operator(op))
            self._check_order(op)
            special = _CUSTOM.get(op.custom) or _BUILTIN.get(op.code)
            if special is not None:
                return special(self, op)
            if self._spectra.takes(op):
                return self._of_spectrum(op)
            return [] if self._folded(op) else self._read(op)
        except RefusedError as refused:
            self._problems.append(Problem(op.name, op.place, refused.why, refused.remedy))
        except TooManyError:
            raise
        except (InputError, ValueError, *_CONTRADICTIONS) as error:
            if self._shapeless.isdisjoint(op.inputs):
                self._broken.append(_broken(op, error))
            else:
                self._note_shapeless(op)
        self._pretend(op)
        return []

    def _note_shapeless(self, op: FileOp) -> None:
        """Note an operator that fails for a model input whose shape the file leaves out; one behind
        an operator that could not be read is no problem of its own."""
        names = [self._file_tensors[i].name for i in self._model.inputs if i in self._shapeless]
        given = {self._file_tensors[i].name for i in op.inputs if i != -1}
        for name in names:
            if name in given:
                why = f"the shape of its input {name!r} is known only when it runs"
                problem = Problem(op.name, op.place, why, refusals.FIXED_SHAPES)
                self._problems.append(problem)

    def _pretend(self, op: FileOp) -> None:
        """Let later operators read the results of an operator that could not be read."""
        for index in op.outputs:
            self._known.add(index)
            if self._file_tensors[index].dynamic:
                self._shapeless.add(index)
            tensor = self._file_tensors[index].tensor
            if tensor is not None:
                self._tensors[tensor.name] = tensor

    def _check_order(self, op: FileOp) -> None:
        """Raise InputError if the operator reads a tensor that is not computed yet, or writes one
        that is."""
        for index in op.inputs:
            if index != -1 and index not in self._known:
                raise InputError(
                    f"{op} reads {self._file_tensors[index].name!r}, which is neither computed "
                    "before it nor a constant with data"
                )
        for index in op.outputs:
            if index in self._known:
                raise InputError(
                    f"{op} writes {self._file_tensors[index].name!r}, which is not its own"
                )

    def _called(self, op: FileOp) -> list[Op]:
        """The operators of the subgraphs that the operator calls, in its place."""
        numbers = control.called_by(op)
        given = op.inputs
        if op.code == "IF":
            taken = self._known_condition(op.inputs[0])
            if taken is None:
                return self._branch(op)
            numbers, given = (numbers[0 if taken else 1],), op.inputs[1:]
        made: list[Op] = []
        if op.code == "WHILE":
            unrolled = self._unrolled(op, *numbers)
            if unrolled is None:
                return self._loop(op)
            made, given = unrolled
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
        value = self._tensors[self._file_tensors[index].name].constant
        if value is not None and value.size != 1:
            raise InputError(f"the condition {self._file_tensors[index].name!r} is not one value")
        return None if value is None else bool(value.reshape(()))

    def _unrolled(
        self, op: FileOp, condition: int, body: int
    ) -> tuple[list[Op], tuple[int, ...]] | None:
        """The operators of all turns of a loop, and the numbers of its results.

        None where how often it turns depends on data, or is very often.
        """
        before = self._next_op, len(self._problems), len(self._broken)
        made: list[Op] = []
        given = op.inputs
        while True:
            goes_on = self._goes_on(op, condition, given)
            if goes_on is False:
                return made, given
            if goes_on is None or self._next_op > control.MOST_OPERATORS:
                self._next_op = before[0]
                del self._problems[before[1] :], self._broken[before[2] :]
                return None
            ops, given = self._inline(op, body, given)
            made += ops

    def _branch(self, op: FileOp) -> list[Op]:
        """An IF whose condition is computed: an operator that holds both subgraphs."""
        flag, given = self._input(op.inputs[0]), op.inputs[1:]
        assert flag is not None
        then, otherwise = (self._held(op, number, given) for number in control.called_by(op))
        if then is None or otherwise is None:
            self._pretend(op)
            return []
        first, second = ([g.tensors[name] for name in g.outputs] for g in (then, otherwise))
        if len(first) != len(second) or not all(map(alike, first, second)):
            raise RefusedError(
                "its branches give other shapes or scales", "make both give the same"
            )
        self._learn_results(op, op.outputs, first)
        names = [self._file_tensors[i].name for i in given]
        inputs = [name for name in names if not self._tensors[name].is_constant]
        outputs = tuple(self._file_tensors[i].name for i in op.outputs)
        attributes = Branch.of(then, otherwise)
        return [Op("branch", f"branch_{op.index}", (flag.name, *inputs), outputs, attributes)]

    def _loop(self, op: FileOp) -> list[Op]:
        """A WHILE whose number of turns is not known: an operator that holds both subgraphs.

        A value that the body returns unchanged is no result of the operator.
        """
        condition, body = control.called_by(op)
        file = control.subgraph(self._model.others, body, op)
        if not len(file.inputs) == len(file.outputs) == len(op.inputs) == len(op.outputs):
            raise InputError(f"{op} and its subgraph {body} carry other numbers of values")
        same = [i for i, inner in enumerate(file.inputs) if file.outputs[i] == inner]
        carried = [i for i in range(len(op.inputs)) if i not in same]
        order = (*carried, *same)
        goes_on = self._held(op, condition, op.inputs, order, changing=carried)
        turn = self._held(op, body, op.inputs, order, changing=carried, results=carried)
        if goes_on is None or turn is None:
            self._pretend(op)
            return []
        if all(goes_on.tensors[name].is_constant for step in goes_on.ops for name in step.inputs):
            raise RefusedError("it never ends", "export the model with a condition that changes")
        results = [turn.tensors[name] for name in turn.outputs]
        for index, result in zip(carried, results, strict=True):
            operand = self._file_tensors[op.inputs[index]]
            if not alike(result, self._tensors[operand.name]):
                raise RefusedError(
                    f"{operand.name!r} changes its shape or scale from turn to turn",
                    "export the model with a fixed number of steps",
                )
        self._learn_results(op, [op.outputs[i] for i in carried], results)
        given = [self._file_tensors[op.inputs[i]].name for i in order]
        inputs = given[: len(carried)]
        inputs += [name for name in given[len(carried) :] if not self._tensors[name].is_constant]
        outputs = tuple(self._file_tensors[op.outputs[i]].name for i in carried)
        attributes = WhileLoop(Body(goes_on), Body(turn))
        made = [Op("while_loop", f"while_{op.index}", tuple(inputs), outputs, attributes)]
        for index in same:
            made += self._passed_on(op, op.inputs[index], op.outputs[index])
        return made

    def _held(
        self,
        op: FileOp,
        number: int,
        given: Sequence[int],
        order: Sequence[int] | None = None,
        *,
        changing: Sequence[int] = (),
        results: Sequence[int] | None = None,
    ) -> Graph | None:
        """Subgraph `number` as a graph of its own; None where operators in it cannot be read.

        `order`: of its operands, by number; those that are `changing` are inputs although they
        begin as constants. `results`: its outputs, by number, if not all.
        """
        self._check_call(op, number)
        passed = []
        for place, index in enumerate(given):
            operand = self._file_tensors[index]
            known = self._tensors.get(operand.name)
            if known is not None and place in changing:
                known = replace(known, constant=None)
            passed.append((operand, known))
        file = control.as_model(self._model.others, number, op, passed)
        if order is not None:
            taken = control.subgraph(self._model.others, number, op).inputs
            listed = tuple(taken[place] for place in order if taken[place] in file.inputs)
            file = replace(file, inputs=listed)
        if results is not None:
            file = replace(file, outputs=tuple(file.outputs[place] for place in results))
        self._written.add(f"{op} calls subgraph {number}", len(file.ops))
        inner = _Reader(file, self._path)
        inner._calls, inner._written = [*self._calls, number], self._written
        graph = inner.inside(f"subgraph_{number}")
        self._problems += inner._problems
        self._broken += inner._broken
        return graph

    def _learn_results(self, op: FileOp, targets: Sequence[int], results: Sequence[Tensor]) -> None:
        """The results of subgraphs as outputs of their caller."""
        if len(targets) != len(results):
            raise InputError(
                f"{op} has {len(targets)} outputs, where its subgraph has {len(results)}"
            )
        for target, result in zip(targets, results, strict=True):
            output = self._file_tensors[target]
            given = replace(output, tensor=result, type_name=result.dtype.name, name=result.name)
            control.check_alike(op, given, output)
            _check_shape(op, output, result)
            self._learn(target, replace(result, name=output.name))

    def _check_call(self, op: FileOp, number: int) -> None:
        if number in self._calls:
            raise InputError(f"{op} calls subgraph {number}, which calls itself")

    def _goes_on(self, op: FileOp, number: int, given: Sequence[int]) -> bool | None:
        """Whether a loop takes another turn; None where that depends on data."""
        called = self._enter_subgraph(op, number, given)
        for step in called.ops:
            self._folded(step)
        (result,) = called.results
        known = result in self._known
        return self._known_condition(result) if known else None

    def _inline(
        self, op: FileOp, number: int, given: Sequence[int]
    ) -> tuple[list[Op], tuple[int, ...]]:
        """The operators of one call, and the numbers of its results."""
        self._check_call(op, number)
        called = self._enter_subgraph(op, number, given)
        self._calls.append(number)
        made = [read for step in called.ops for read in self._operator(step)]
        self._calls.pop()
        return made, called.results

    def _enter_subgraph(self, op: FileOp, number: int, given: Sequence[int]) -> control.Inlined:
        """Add the tensors of a called subgraph to the model's, and learn its constants."""
        called = control.inlined(
            self._model.others,
            self._file_tensors,
            number,
            op,
            given,
            constants=self._constants.get(number, {}),
            first_op=self._next_op,
            names=self._names,
        )
        self._constants[number] = called.constants
        self._written.add(f"{op} calls subgraph {number}", len(called.ops))
        self._next_op += len(called.ops)
        self._file_tensors += called.tensors
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
            name = self._file_tensors[source].name
            raise InputError(f"{op}: no operator of its subgraph computes {name!r}")
        output = self._file_tensors[target]
        control.check_alike(op, self._file_tensors[source], output)
        self._known.add(target)
        value = self._tensors.get(self._file_tensors[source].name)
        if output.tensor is None or value is None:  # a variable, say
            return []
        _check_shape(op, output, value)
        self._learn(target, replace(value, name=output.name))
        if value.is_constant and target not in self._model.outputs:
            return []
        self._learn(target, replace(value, name=output.name, constant=None))
        name = f"passed_on_{self._next_op}"
        self._next_op += 1
        return [Op("reshape", name, (value.name,), (output.name,), Reshape(value.shape))]


def _broken(op: FileOp, error: Exception) -> str:
    """The fault of the file, where reading the operator raised the error."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, ValueError):
        return f"{op}: {error}"
    return f"{op} is malformed: {error or type(error).__name__}"


def _check_shape(op: FileOp, output: FileTensor, result: Tensor) -> None:
    """Raise InputError for a result of a subgraph that has not the output's shape."""
    declared = None if output.dynamic or output.tensor is None else output.tensor.shape
    if declared not in (None, result.shape):
        raise InputError(
            f"{op}: output {output.name!r} has shape {list(declared or ())} in the file, but its "
            f"subgraph makes it {list(result.shape)}"
        )


def _distinct(ops: Sequence[Op]) -> list[Op]:
    """The operators, each under a name of its own. The file has none: they are made by patterns."""
    names = Names()
    return [replace(op, name=names.fresh(op.name)) for op in ops]


def _recognises(data: bytes) -> bool:
    return data[4:8] == IDENTIFIER


_Own = Callable[[_Reader, FileOp], list[Op]]
_BUILTIN: Mapping[str, _Own] = MappingProxyType(
    {
        **dict.fromkeys(bidirectional.OPERATORS, _Reader._bidirectional),
        **dict.fromkeys(chosen.OPERATORS, _Reader._chosen),
        **dict.fromkeys(control.OPERATORS, _Reader._called),
        **dict.fromkeys(states.OPERATORS, _Reader._variable),
    }
)
_CUSTOM: Mapping[str, _Own] = MappingProxyType(
    {
        circular.CUSTOM: _Reader._ring,
        compressed.CUSTOM: _Reader._decoded,
        mediapipe.TRANSPOSED: _Reader._transposed,
        **dict.fromkeys((mediapipe.POOLED, mediapipe.UNPOOLED), _Reader._windows),
    }
)
"""Readers of operators that no kind reads: by builtin name, and by the name of a custom one."""
READ_AWAY = tuple(sorted({*_BUILTIN, *_CUSTOM, *shapes.OPERATORS, *spectra.OPERATORS}))
"""Operators that reading removes: states, known control flow, arithmetic on shapes, and complex
numbers."""


def _open_shape(entering: FileTensor, sizes: Sequence[int]) -> str:
    """The refusal of an input with open dimensions behind the first one."""
    marked = ("?" if axis and axis in entering.open_axes else n for axis, n in enumerate(sizes))
    shape = "x".join(map(str, marked))
    return (
        f"input {entering.name!r} has the open shape {shape}: only a first dimension may be open "
        f"(it becomes 1); {refusals.FIXED_SHAPES}, or give it: --input-shape "
        f"{shlex.quote(entering.name)}={shape}, with a number for each ?"
    )


def _read(data: bytes, path: Path, wanted: Reading = AS_WRITTEN) -> Graph:
    return read(data, path)


def _whole(data: bytes, path: Path, wanted: Reading) -> bytes:
    if not wanted.input_shapes:
        return data
    try:
        return resized(data, wanted.input_shapes)
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from error


FRONT_END = FrontEnd("TFLite", (".tflite", ".lite"), _recognises, _read, labels, _whole)
