"""Generated C: the answer of codegen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolchain.ir.arena import ArenaPart


@dataclass(frozen=True)
class CodeOperator:
    """What hooks, counts and error codes know as one operator: all blocks of one, by kind.

    `numbers`: the operators of the graph that it runs, in the order of the schedule.
    """

    name: str
    kind: str
    numbers: tuple[int, ...]


ERROR_ARENA = -1
"""What generated code returns for an arena that is missing or misaligned; 0 is success, and above 0
is the number, from 1, of the operator that failed."""


@dataclass(frozen=True)
class Sources:
    """One model as C.

    `name` is the C identifier that prefixes every symbol. `files` maps file names to their text.
    `cmsis_nn` and `runtime` are the paths, below CMSIS-NN's folder and below `runtime_c`, of the
    C files to compile with it. `calls[k]` is the index in `graph.ops` of the operator that the
    generated code runs as its k-th; views have none. `operators` by the index that THIMBLE_OP_BEGIN
    gets, in the order of their first call.
    `inputs` and `outputs` are the identifiers of the graph's inputs and outputs, in its order.
    `parts`: those of an arena that is spread over memory banks; its code takes a struct of them.
    `stateful`: the model keeps values in its arena from run to run.
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
