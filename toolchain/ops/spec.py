"""The one place that says what an operator kind is: `OpSpec`, and the values it trades in.

Every `toolchain/ops/<kind>.py` holds one `SPEC`. Its presence registers it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Tensor

Array = NDArray[np.generic]


@dataclass(frozen=True)
class TensorType:
    """A shape and an element type: what the shape rule derives for each output."""

    shape: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True)
class Constant:
    """Data that codegen emits as `static const` next to the operator's weights.

    `key` is what the template calls it by; `comment` is one line for the reader of the C.
    """

    key: str
    data: Array
    comment: str = ""


@dataclass(frozen=True)
class Lowering:
    """How one operator becomes C on one core.

    `functions` are the C functions that the template calls; each is defined in a file of its own
    name, in CMSIS-NN or in `runtime_c/`, so they also say which sources to link. `fields` are the
    numbers that `templates/ops/<kind>.c.j2` prints. `scratch_bytes` is working memory in the arena
    while the operator runs.
    """

    functions: tuple[str, ...] = ()
    scratch_bytes: int = 0
    constants: tuple[Constant, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


class TfliteNode(Protocol):
    """What the TFLite front end shows a reader of one operator in the file."""

    @property
    def options(self) -> Any:
        """The operator's builtin options in the flatbuffer object API; None where absent."""

    @property
    def version(self) -> int: ...

    @property
    def inputs(self) -> tuple[Tensor | None, ...]: ...

    @property
    def outputs(self) -> tuple[Tensor, ...]: ...

    def constant(self, index: int) -> Array:
        """The data of input `index`. Raises UnsupportedError where it is not constant."""

    def unsupported(self, why: str, remedy: str = "") -> Exception:
        """The error to raise for a form of the operator that has no kernel."""


@dataclass(frozen=True)
class ReadOp:
    """A reader's answer: attributes, and which of the file's inputs stay inputs, by index.

    Inputs that became attributes (a reshape's shape, a pad's paddings) are left out.
    """

    attributes: Attributes
    inputs: tuple[int, ...]


@dataclass(frozen=True)
class WrittenOp:
    """The inverse, for tests that hand single operators to LiteRT.

    `options_type` names the member of the schema's BuiltinOptions union ('' for none), `options`
    are the fields to set; `extra_inputs` are constants to append after the operator's own inputs.
    """

    builtin: str
    options_type: str = ""
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    extra_inputs: tuple[Tensor, ...] = ()
    version: int = 1


@dataclass(frozen=True)
class TfliteBinding:
    """`builtins`: names in the schema's BuiltinOperator enum that this kind reads."""

    builtins: tuple[str, ...]
    read: Callable[[TfliteNode], ReadOp]
    write: Callable[[Op, Graph], WrittenOp]


@dataclass(frozen=True)
class Alias:
    """Tensor `view` is bytes [offset, offset + size) of tensor `base`: it owns none of its own."""

    view: str
    base: str
    offset_bytes: int = 0


@dataclass(frozen=True)
class SafeOverlap:
    """Output `output` may begin at or below input `input`, `lead_bytes` apart (see ir.memory)."""

    input: int
    output: int = 0
    lead_bytes: int = 0


def _no_macs(op: Op, graph: Graph) -> int:
    return 0


def _no_aliases(op: Op, graph: Graph) -> tuple[Alias, ...]:
    return ()


def _no_overlaps(op: Op, graph: Graph, core: Core) -> tuple[SafeOverlap, ...]:
    return ()


@dataclass(frozen=True)
class OpSpec:
    """All that the toolchain knows of an operator kind.

    infer      output types from the op's inputs and attributes; raises ValueError with the reason
               where they contradict each other (the verifier calls it).
    reference  exact NumPy semantics, integers in and out, one array per output; written from the
               TFLite reference kernels' arithmetic, independent of the C.
    lower      kernel choice, constants and scratch for one core; raises UnsupportedError where the
               kernels have a limit that this op exceeds.
    macs       multiply-accumulates.
    aliases    tensors that are views of one another through this op (then it emits no C where all
               its outputs are whole views).
    overlaps   safe in-place and diagonal overlaps of the kernel that `lower` chooses.
    sample     a random single-operator Graph, for differential tests: odd shapes, strides,
               zero points and scales included.
    limits     one line for `thimble ops`: what is supported.
    """

    kind: str
    attributes: type[Attributes]
    infer: Callable[[Op, Graph], tuple[TensorType, ...]]
    reference: Callable[[Op, Graph, Sequence[Array]], tuple[Array, ...]]
    lower: Callable[[Op, Graph, Core], Lowering]
    sample: Callable[[np.random.Generator], Graph]
    tflite: TfliteBinding | None = None
    macs: Callable[[Op, Graph], int] = _no_macs
    aliases: Callable[[Op, Graph], tuple[Alias, ...]] = _no_aliases
    overlaps: Callable[[Op, Graph, Core], tuple[SafeOverlap, ...]] = _no_overlaps
    limits: str = ""
