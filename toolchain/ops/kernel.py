"""The kernel chosen for an operator, as a value.

A kind's `select` chooses once. Planner, memory, cost and codegen read the answer: the C functions
to call and their arguments, the constants and scratch they need, where the output may overlap an
input, which images may be strided views, which bytes the calls touch, and how often their loops
run.

For example the call `thimble_add_s8(a, 1, b, 1, y, 96, &params)` is:

    Call(
        "thimble_add_s8",
        {
            "input_1": Input(0), "step_1": 1, "input_2": Input(1), "step_2": 1,
            "output": Output(0), "size": 96,
            "params": Struct("thimble_add_params", {"bias": 7, "min": -128, "max": 127}),
        },
    )

`codegen` prints the numbers. Blocks of one operator whose calls differ only in numbers share a C
function. No value here contains C text except names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import DType, Graph, Op
from toolchain.kernels import cmsis_nn
from toolchain.ops.extents import Extents, Pointer

Array = NDArray[np.generic]
Terms: TypeAlias = Mapping[str, float]
"""The count of each loop of a kernel, by the name of what the loop does."""
Steps: TypeAlias = tuple[tuple[str, int], ...]
"""How far a pointer advances in the loops around a call: each loop's variable, and the elements per
iteration."""


@dataclass(frozen=True)
class Input:
    """A pointer to element `at` of the operator's input `index`; NULL if the input is absent.

    `element` is the C type to cast to, where it is not the tensor's own.
    """

    index: int
    at: int = 0
    steps: Steps = ()
    element: str = ""


@dataclass(frozen=True)
class Output:
    """A pointer to element `at` of output `index`. `element` is as in `Input`."""

    index: int
    at: int = 0
    steps: Steps = ()
    element: str = ""


@dataclass(frozen=True)
class Packed:
    """A pointer to element `at` of the constant `key`.

    `writable`: the pointer's type lacks const, as in CMSIS-NN's structs, although it is only read.
    `element` is as in `Input`.
    """

    key: str
    writable: bool = False
    at: int = 0
    steps: Steps = ()
    element: str = ""


@dataclass(frozen=True)
class Scratch:
    """A pointer to the operator's scratch, `at_bytes` from its start; NULL if there is none.

    `element` is the C type to cast to; '' for void.
    """

    at_bytes: int = 0
    element: str = ""
    steps: Steps = ()


@dataclass(frozen=True)
class Symbol:
    """An enumerator or a macro of a public header."""

    name: str


NULL = Symbol("NULL")
SUFFIXES: Mapping[DType, str] = MappingProxyType(
    {
        DType.INT8: "s8",
        DType.UINT8: "u8",
        DType.BOOL: "u8",
        DType.INT16: "s16",
        DType.INT32: "s32",
        DType.INT64: "s64",
        DType.FLOAT32: "f32",
    }
)
"""The words for types of elements in the names of C functions."""


@dataclass(frozen=True)
class Struct:
    """An initialiser of a struct. As an argument it becomes an object whose address is passed."""

    type: str
    members: Mapping[str, Argument]


@dataclass(frozen=True)
class Row:
    """An initialiser of an array that is a member of a struct."""

    values: tuple[Argument, ...]


@dataclass(frozen=True)
class Items:
    """An array whose first element's address is passed. `element` is its C type."""

    element: str
    values: tuple[Argument, ...]


Argument: TypeAlias = (
    int | float | Input | Output | Packed | Scratch | Symbol | Struct | Row | Items
)
"""An argument of a call. A float is printed as a float32."""


@dataclass(frozen=True)
class Loop:
    """A loop around a call: `variable` runs from 0 to below `count`."""

    variable: str
    count: int


@dataclass(frozen=True)
class Call:
    """A call of the C function `function`, which a file of its own name or a header defines.

    arguments  in order, by the names of the function's parameters.
    loops      loops around the call, outermost first.
    status     the call's result is what the operator's function must return.
    template   the file in `templates/ops` that prints it; other than `call` where the body is an
               expression.
    note       a line for the reader of the C that explains what the numbers do not show.
    defined    whether our C or CMSIS-NN's defines the function; False where the template does.
    """

    function: str
    arguments: Mapping[str, Argument]
    loops: tuple[Loop, ...] = ()
    status: bool = False
    template: str = "call"
    note: str = ""
    defined: bool = True

    def find(self, path: str) -> Argument | None:
        """The argument at `path`, for example `shape.kernel_h` or `params.gates.0.shift`; None if
        absent.
        """
        argument: Argument | None = None
        members: Mapping[str, Argument] = self.arguments
        for name in path.split("."):
            argument = members.get(name)
            if isinstance(argument, Struct):
                members = argument.members
            elif isinstance(argument, Row | Items):
                members = {str(i): value for i, value in enumerate(argument.values)}
            else:
                members = {}
        return argument

    @cached_property
    def references(self) -> tuple[Input | Packed, ...]:
        """The inputs and the packed constants among the arguments and their parts, each once."""
        waiting: list[Argument] = list(self.arguments.values())
        found: dict[Input | Packed, None] = {}
        while waiting:
            value = waiting.pop(0)
            if isinstance(value, Input | Packed):
                found[value] = None
            elif isinstance(value, Struct):
                waiting += value.members.values()
            elif isinstance(value, Row | Items):
                waiting += value.values
        return tuple(found)

    def params(self, *names: str) -> tuple[int, ...]:
        """The integers of these names in the struct `params`."""
        return tuple(self[f"params.{name}"] for name in names)

    def __getitem__(self, path: str) -> int:
        """The integer at `path`. Raises KeyError where there is none."""
        argument = self.find(path)
        if not isinstance(argument, int | np.integer):
            raise KeyError(f"{self.function} has no integer argument {path}")
        return int(argument)

    def get(self, path: str, default: int = 0) -> int:
        """The integer at `path`; `default` where there is none."""
        return self[path] if self.find(path) is not None else default

    def row(self, path: str) -> tuple[int, ...]:
        """The integers of the array at `path`; () where it is absent or NULL."""
        argument = self.find(path)
        if not isinstance(argument, Row | Items):
            return ()
        return tuple(self[f"{path}.{i}"] for i in range(len(argument.values)))

    def integers(self) -> Iterator[tuple[str, int]]:
        """Every integer that is printed, with the innermost name on the path to it."""
        for loop in self.loops:
            yield "count", loop.count
        for name, value in self.arguments.items():
            yield from _integers(name, value)


def _integers(name: str, value: Argument) -> Iterator[tuple[str, int]]:
    if isinstance(value, int | np.integer):
        yield name, int(value)
    elif isinstance(value, Struct):
        for member, part in value.members.items():
            yield from _integers(member, part)
    elif isinstance(value, Row | Items):
        for part in value.values:
            yield from _integers(name, part)
    elif isinstance(value, Input | Output):
        yield "at", value.at
        for _, elements in value.steps:
            yield "step", elements


@dataclass(frozen=True)
class Constant:
    """An array that codegen emits as `static const` in the model's weights.

    `key` is the name that `Packed` refers to. `comment` is a line for the reader of the C. `make`
    packs the data; it is called when they are first read, and only then. `most`: of a table whose
    length depends on scales, the elements that none exceeds; else 0.
    """

    key: str
    make: Callable[[], Array]
    comment: str = ""
    most: int = 0

    @cached_property
    def data(self) -> Array:
        return self.make()


def constant(key: str, data: Array, comment: str = "", most: int = 0) -> Constant:
    """A constant whose data need no packing."""
    return Constant(key, lambda: data, comment, most)


@dataclass(frozen=True)
class Nested:
    """A graph that an operator runs inside of itself, and the kernels that compute it.

    `called` are the indices of its operators that are more than copies; `copied_bytes` the sizes of
    the copies. `kernels` is parallel to `graph.ops`.
    """

    graph: Graph
    kernels: tuple[Kernel, ...]
    called: tuple[int, ...]
    copied_bytes: tuple[int, ...]


@dataclass(frozen=True)
class SafeOverlap:
    """Output `output` may begin `lead_bytes` below input `input` (or further), or in place at 0.

    The kernel has then read every input byte before it overwrites it. `exact`: the claim holds at
    that distance only. See `ir.memory.Overlap`.
    """

    input: int
    output: int = 0
    lead_bytes: int = 0
    exact: bool = False


@dataclass(frozen=True)
class Touched:
    """All that the extents of a call may depend on: its arguments and where its operands lie.

    An absent input is None in `inputs`.
    """

    calls: tuple[Call, ...]
    constants: Mapping[str, Array]
    inputs: tuple[Pointer | None, ...]
    outputs: tuple[Pointer, ...]

    @property
    def call(self) -> Call:
        """The only call."""
        (call,) = self.calls
        return call

    def has(self, index: int) -> bool:
        """Whether input `index` is present; otherwise the kernel gets NULL for it."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def input_line(self, index: int = 0) -> int:
        """Bytes from one line to the next of input `index`; 0 where lines are contiguous."""
        pointer = self.inputs[index]
        return 0 if pointer is None else pointer.line

    @property
    def output_line(self) -> int:
        return self.outputs[0].line


def _nothing() -> tuple[SafeOverlap, ...]:
    return ()


@dataclass(frozen=True)
class Kernel:
    """How one operator becomes C on one core.

    calls       what its function does, in order; empty for an operator that is a view.
    extents     the bytes that the calls touch, from their arguments alone (`ops/extents.py`).
    constants   the arrays that `Packed` arguments name.
    scratch_bytes  working memory in the arena while the operator runs.
    strided     which of input 0 and output 0 may be a strided view: an image whose lines have gaps
                between them because it is a part of a wider image.
    at_words    the operands that must lie at words, because of what loads or stores them. All
                buffers do; views do not everywhere.
    calls_with_gaps  the calls for strided views, from `(input_line, output_line)`: bytes from one
                line to the next of input 0 and output 0, or 0 where lines are contiguous.
    find_overlaps  the safe in-place and diagonal overlaps of output and input.
    find_terms  how often the kernel's loops run, for the cost model. None where only the rough
                formula by multiply-accumulates is known.
    more_scratch  forms that take more scratch, quickest first, for where the arena has room left
                (`planning.room`).
    more_flash  forms whose constants take more flash, and which are quicker if time says so: one is
                taken by a look at the whole network (`planning.flash`). Each may have forms with
                more scratch.
    smaller     slower kernels that may have less code: one is taken by a look at the whole network
                (`planning.small`).
    rows        of an output image that it computes at a time: the height of a tile.
    packed_bytes  of its constants, where these are much more than the model's; 0 elsewhere.
    form        what tells it from forms that call the same functions at the same shape; '' for the
                one with the least scratch.
    name        what the cost model calls it; by default its functions.
    inexact     where its results may differ from the reference's: why, in a few words.
    suspicion   what an operator has that suggests a broken quantisation of the model, if it has.
    instead     why it is not the kernel that `--kernels` prefers, if it is not.
    nested      the graphs of which the calls are parts, in an operator that holds graphs.
    one_of      one of these is run; otherwise one after the other.
    constants_in, code_in  the banks of RAM to which the start-up copies its constants and its
                code; '': they stay in flash.
    """

    calls: tuple[Call, ...]
    extents: Callable[[Touched], Extents]
    constants: tuple[Constant, ...] = ()
    scratch_bytes: int = 0
    strided: frozenset[str] = frozenset()
    at_words: frozenset[str] = frozenset()
    calls_with_gaps: Callable[[int, int], tuple[Call, ...]] | None = None
    find_overlaps: Callable[[], tuple[SafeOverlap, ...]] = _nothing
    find_terms: Callable[[], Terms] | None = None
    more_scratch: Callable[[], tuple[Kernel, ...]] = tuple
    more_flash: Callable[[], tuple[Kernel, ...]] = tuple
    smaller: Callable[[], tuple[Kernel, ...]] = tuple
    rows: int = 1
    packed_bytes: int = 0
    form: str = ""
    label: str = field(default="", repr=False)
    inexact: str = ""
    suspicion: str = ""
    instead: str = ""
    nested: tuple[Nested, ...] = ()
    one_of: bool = False
    constants_in: str = ""
    code_in: str = ""

    @cached_property
    def functions(self) -> tuple[str, ...]:
        """The C functions that are called, each once: they say which sources to link."""
        return tuple(dict.fromkeys(call.function for call in self.calls if call.defined))

    @cached_property
    def name(self) -> str:
        return self.label or "+".join(self.functions)

    def moved(self, constants_in: str, code_in: str) -> Kernel:
        """The kernel with its constants and its code in these banks: its loops are the same, and
        are not counted again.
        """
        if (constants_in, code_in) == (self.constants_in, self.code_in):
            return self
        terms = None if self.find_terms is None else self._terms
        return replace(self, constants_in=constants_in, code_in=code_in, find_terms=terms)

    def _terms(self) -> Terms:
        assert self.terms is not None, "a kernel that is moved has a count of its loops"
        return self.terms

    @property
    def copied(self) -> bool:
        """Whether the start-up copies something of it."""
        return bool(self.constants_in or self.code_in)

    def forms(self) -> tuple[Kernel, ...]:
        """The kernel, the form that takes least, and all others, each before those of it with more
        scratch. All compute the same bytes with one library's functions; a plan takes a form when
        it knows the memory that is free. Which library's is asked before (`forms.Choice`).
        """
        first = (self, *self.flash_forms)
        return tuple(one for form in first for one in (form, *form.scratch_forms))

    @cached_property
    def scratch_forms(self) -> tuple[Kernel, ...]:
        """The forms of `more_scratch`, made once."""
        return self.more_scratch()

    @cached_property
    def flash_forms(self) -> tuple[Kernel, ...]:
        """The forms of `more_flash`, made once."""
        return self.more_flash()

    @cached_property
    def smaller_forms(self) -> tuple[Kernel, ...]:
        """The kernels of `smaller`, made once."""
        return self.smaller()

    @cached_property
    def checked(self) -> set[tuple[int, int]]:
        """The lines, as `calls_at` takes them, with which its calls were seen to stay within the
        operands that it was chosen for.
        """
        return set()

    @cached_property
    def title(self) -> str:
        """The name, and which form it is."""
        return f"{self.name} {self.form}" if self.form else self.name

    @property
    def of_cmsis_nn(self) -> bool:
        """Whether it calls a function of CMSIS-NN's."""
        return any(map(cmsis_nn.is_named, self.functions))

    def calls_at(self, input_line: int, output_line: int) -> tuple[Call, ...]:
        """The calls for operands with these line strides in bytes (see `calls_with_gaps`).

        A kernel without support for strided views returns its ordinary calls; the check of extents
        then refuses them.
        """
        if self.calls_with_gaps is None or not (input_line or output_line):
            return self.calls
        return self.calls_with_gaps(input_line, output_line)

    @cached_property
    def apart_bytes(self) -> int:
        """Scratch, and how far its output must lie below its input."""
        leads = (overlap.lead_bytes for overlap in self.overlaps)
        return self.scratch_bytes + max(min(leads, default=0), 0)

    @cached_property
    def overlaps(self) -> tuple[SafeOverlap, ...]:
        return self.find_overlaps()

    @cached_property
    def terms(self) -> Terms | None:
        return None if self.find_terms is None else MappingProxyType(dict(self.find_terms()))

    @cached_property
    def constant_bytes(self) -> int:
        """Bytes of its constants, including those that share data with another operator's."""
        return sum(int(one.data.nbytes) for one in self.constants)

    def largest_constant(self, op: Op, graph: Graph) -> int:
        """Bytes of the largest constant that it reads: one that it packs, or of the model."""
        packed = {one.key: one for one in self.constants}
        largest = 0
        for reference in (one for call in self.calls for one in call.references):
            if isinstance(reference, Packed):
                largest = max(largest, int(packed[reference.key].data.nbytes))
            elif reference.index < len(op.inputs) and (name := op.inputs[reference.index]):
                tensor = graph.tensors[name]
                largest = max(largest, tensor.size_bytes if tensor.is_constant else 0)
        return largest


def numbers(values: Sequence[int]) -> Row:
    """An initialiser of integers."""
    return Row(tuple(int(value) for value in values))
