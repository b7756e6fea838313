"""Generated C: the answer of codegen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolchain.ir.arena import ArenaPart


@dataclass(frozen=True)
class Sources:
    """One model as C.

    `name` is the C identifier that prefixes every symbol. `files` maps file names to their text.
    `cmsis_nn` and `runtime` are the paths, below CMSIS-NN's folder and below `runtime_c`, of the
    C files to compile with it. `calls[k]` is the index in `graph.ops` of the operator that the
    generated code runs as its k-th (the index which THIMBLE_OP_BEGIN gets); views have none.
    `inputs` and `outputs` are the identifiers of the graph's inputs and outputs, in its order.
    `parts`: those of an arena that is spread over memory banks; its code takes a struct of them.
    `stateful`: the model keeps values in its arena from run to run.
    """

    name: str
    files: Mapping[str, str]
    cmsis_nn: tuple[str, ...]
    runtime: tuple[str, ...]
    calls: tuple[int, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weight_bytes: int
    parts: tuple[ArenaPart, ...] = ()
    stateful: bool = False
