"""Generated C, the result of codegen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolchain.ir.arena import ArenaPart
from toolchain.ir.stack_need import StackNeed


@dataclass(frozen=True)
class CodeOperator:
    """All blocks of one operator and kind, which hooks, counters and error codes treat as one
    operator.

    `numbers` are the operators of the graph that it runs, in the order of the schedule.
    """

    name: str
    kind: str
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class ExternalWeights:
    """Constants that lie outside of the code: the bytes of their blob, and the layout that the code
    takes for granted, by name (`codegen.blob.Layout`). `address`: where another tool puts them;
    None: a firmware holds them. `fetched`: the code fetches them to its arena, a few at a time.
    """

    data: bytes
    layout: tuple[tuple[str, str], ...]
    address: int | None = None
    fetched: bool = False


INFO_SUFFIX = "_info.c"
"""The ending of the name of the file that describes a model."""


@dataclass(frozen=True)
class Sources:
    """One model as C.

    name       the C identifier that prefixes every symbol.
    files      file names and their text.
    cmsis_nn, runtime  paths of the C files to compile with it, below CMSIS-NN's folder and below
               `runtime_c`.
    calls[k]   the index in `graph.ops` of the operator that the generated code runs as its k-th;
               views have none.
    operators  by the index that THIMBLE_OP_BEGIN gets, in the order of their first call.
    inputs, outputs  identifiers of the graph's inputs and outputs, in its order.
    parts      the parts of an arena spread over memory banks; the code takes a struct of them.
    stateful   whether the model keeps values in its arena from run to run.
    weights    the constants, where the code does not hold them; `<name>_weights.bin` is for them.
    in_steps   whether the code can also run the model in steps.
    pushed     the identifier of the input that arrives by rows; '' where none does.
    stack      what its functions take of the stack, where the C was compiled.
    """

    name: str
    files: Mapping[str, str]
    cmsis_nn: tuple[str, ...]
    runtime: tuple[str, ...]
    calls: tuple[int, ...]
    operators: tuple[CodeOperator, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weight_bytes: int
    parts: tuple[ArenaPart, ...] = ()
    stateful: bool = False
    in_steps: bool = False
    weights: ExternalWeights | None = None
    pushed: str = ""
    stack: StackNeed | None = None

    @property
    def weights_file(self) -> str:
        """The name of the file for weights that lie outside of the code."""
        return f"{self.name}_weights.bin"

    @property
    def run_files(self) -> tuple[str, ...]:
        """The C files that running it needs: the one that describes it is for those who read it."""
        return tuple(
            name for name in self.files if name.endswith(".c") and not name.endswith(INFO_SUFFIX)
        )
