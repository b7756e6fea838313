"""Values that a TFLite model keeps between runs: resource variables, and variable tensors.

VAR_HANDLE names a variable, READ_VARIABLE and ASSIGN_VARIABLE use it, and the subgraph of a
CALL_ONCE gives it its initial value. A read becomes a reshape to the same shape (which a pass
removes) of the state, or of the value that an earlier operator of the run assigned. The last value
assigned in a run is the next value of the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.front_end import RefusedError
from toolchain.frontends.tflite.file import FileModel, FileOp, FileTensor
from toolchain.ir import DType, Op, State, Tensor
from toolchain.ir.names import Names
from toolchain.ops.movement.assign import Assign
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.spec import Array

OPERATORS = ("CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE")
_NO_VALUE = "run the model's initialisation function when it is converted"
_SIMPLE = "initialise variables by constants"

OUTSIDE = "keep state outside of branches and loops"
"""The remedy: runtimes differ in whose state it is where a subgraph is called more than once."""


def _no_numbers(verb: str, tensor: FileTensor) -> tuple[str, str]:
    """Reason and remedy for a variable of a type that no tensor here has."""
    why = f"it {verb} {tensor.name!r}, which is {tensor.type_name.lower()}"
    return why, "keep numbers in variables: int8, or float32"


def check_outside(op: FileOp) -> None:
    """Raise RefusedError where an operator that keeps samples stands in a called subgraph."""
    if op.caller is not None:
        raise RefusedError("it keeps samples from run to run, in a subgraph", OUTSIDE)


Key = tuple[str, str]
"""A variable's container and shared name."""


def _key(op: FileOp) -> Key:
    options = op.needed_options
    return options.container or "", options.sharedName or ""


def _first_values(model: FileModel) -> dict[Key, Array]:
    """Values that the subgraphs of all CALL_ONCE assign."""
    assigned: dict[Key, Array] = {}
    for call in model.ops:
        if call.code != "CALL_ONCE":
            continue
        number = call.needed_options.initSubgraphIndex
        if not 0 < number <= len(model.others):
            raise InputError(f"{call} calls subgraph {number}, which does not exist")
        called = model.others[number - 1]
        handles: dict[int, Key] = {}
        for op in called.ops:
            if op.code == "VAR_HANDLE":
                handles[op.outputs[0]] = _key(op)
                continue
            tensor = called.tensors[op.inputs[1]].tensor if len(op.inputs) == 2 else None
            if op.code != "ASSIGN_VARIABLE" or tensor is None or tensor.constant is None:
                raise RefusedError(f"its subgraph computes with {op.code}", _SIMPLE)
            if op.inputs[0] not in handles:
                raise InputError(f"{op} of subgraph {number} assigns to no variable")
            assigned[handles[op.inputs[0]]] = tensor.constant
    return assigned


def of_variable(tensor: Tensor, names: Names) -> tuple[Tensor, State]:
    """The next value, called by one of `names`, and the state of a tensor that the file marks as a
    variable.

    It starts as real 0: the zero point of int8, otherwise 0 (LiteRT's `ResetVariableTensor`).
    """
    first = tensor.q.zero_point if tensor.dtype is DType.INT8 else 0
    after = replace(tensor, name=names.fresh(f"{tensor.name}_next"))
    initial = np.full(tensor.shape, first, tensor.dtype.numpy)
    return after, State(tensor.name, after.name, initial)


@dataclass(frozen=True)
class _Value:
    """The value of a variable at this point of the run. `assigned`: in this run."""

    tensor: Tensor
    assigned: bool


class Variables:
    """The resource variables of a file, while its operators are walked. `names`: of tensors."""

    def __init__(self, model: FileModel, names: Names) -> None:
        self._model = model
        self._file_tensors = list(model.tensors)
        self._names = names
        self._handles: dict[int, Key] = {}
        self._first: Mapping[Key, Array] | None = None
        self._values: dict[Key, _Value] = {}
        self._states: dict[Key, Tensor] = {}
        self._assigned = {
            _key(handle)
            for op in model.ops
            if op.code == "ASSIGN_VARIABLE" and op.inputs
            for handle in model.ops
            if handle.code == "VAR_HANDLE" and handle.outputs[:1] == op.inputs[:1]
        }

    def grow(self, tensors: Sequence[FileTensor]) -> None:
        """Number further tensors: those of a subgraph that is called."""
        self._file_tensors += tensors

    def operator(self, op: FileOp, tensors: dict[str, Tensor]) -> Op | None:
        """Handle one of `OPERATORS`; a read becomes an operator.

        `tensors`: those known so far, to which a state and the value read are added. Raises
        RefusedError and InputError.
        """
        if self._first is None:
            self._first = _first_values(self._model)
        if op.code == "VAR_HANDLE":
            self._handles[op.outputs[0]] = _key(op)
        if op.code in ("CALL_ONCE", "VAR_HANDLE"):
            return None
        key = self._handles.get(op.inputs[0])
        if key is None:
            raise InputError(f"{op} uses no variable that the file declares")
        if op.code == "READ_VARIABLE":
            return self._read(op, key, tensors)
        value = tensors.get(self._file_tensors[op.inputs[1]].name)
        if value is None:
            raise RefusedError(*_no_numbers("assigns", self._file_tensors[op.inputs[1]]))
        self._values[key] = _Value(value, assigned=True)
        return None

    def _read(self, op: FileOp, key: Key, tensors: dict[str, Tensor]) -> Op:
        declared = self._file_tensors[op.outputs[0]].tensor
        if declared is None:
            raise RefusedError(*_no_numbers("reads", self._file_tensors[op.outputs[0]]))
        if key not in self._values:
            self._values[key] = _Value(self._begin(key, declared, tensors), assigned=False)
        value = self._values[key].tensor
        open_shape = self._file_tensors[op.outputs[0]].dynamic
        if value.dtype is not declared.dtype or not (open_shape or value.shape == declared.shape):
            raise InputError(f"{op} reads {value} as {declared}")
        result = Tensor(declared.name, value.shape, value.dtype, declared.quantisation)
        tensors[result.name] = result
        name = f"read_variable_{op.index}"
        return Op("reshape", name, (value.name,), (result.name,), Reshape(value.shape))

    def _begin(self, key: Key, declared: Tensor, tensors: dict[str, Tensor]) -> Tensor:
        """The value of the variable when a run begins: a state, or a constant if it never
        changes."""
        assert self._first is not None
        first = self._first.get(key)
        if first is None:
            raise RefusedError(f"variable {key[1]!r} has no value before its first use", _NO_VALUE)
        if first.dtype != declared.dtype.numpy:
            raise InputError(
                f"variable {key[1]!r} is {first.dtype.name}, not {declared.dtype.value}"
            )
        wished = key[1] or "variable"  # converters call a tensor as the variable that it reads
        name = self._names.fresh(f"{wished}_" if wished in self._names else wished)
        constant = None if key in self._assigned else first
        tensor = Tensor(name, first.shape, declared.dtype, declared.quantisation, constant)
        tensors[name] = tensor
        if constant is None:
            self._states[key] = tensor
        return tensor

    def finish(self, tensors: dict[str, Tensor]) -> tuple[list[Op], list[State]]:
        """The operators that update the states, and the states."""
        ops, states = [], []
        for number, (key, before) in enumerate(self._states.items()):
            value = self._values[key].tensor
            if (value.shape, value.dtype) != (before.shape, before.dtype):
                raise InputError(f"variable {key[1]!r} is {before}, but {value} is assigned to it")
            after = replace(before, name=self._names.fresh(f"{before.name}_next"))
            tensors[after.name] = after
            inputs = (value.name, before.name)
            ops.append(Op("assign", f"assign_{number}", inputs, (after.name,), Assign()))
            assert self._first is not None
            states.append(State(before.name, after.name, self._first[key]))
        return ops, states
