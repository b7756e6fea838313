"""LiteRT without its int8 SUM, whose reference kernel gives bytes that have nothing to do with it.

In the file each such operator's result becomes an input and its operand an output; sums are taken
by our own reference, and LiteRT runs again until all of them stand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ai_edge_litert.schema_py_generated as schema
import flatbuffers.builder
import numpy as np

from toolchain.ir import Graph, Op
from toolchain.ops.interpret import evaluate
from toolchain.ops.spec import Array


def without_sums(data: bytes) -> tuple[bytes, int]:
    """The file with its int8 SUM operators cut out, and how many there were."""
    types: Any = schema  # code without types, as its builder
    written = types.ModelT.InitFromObj(types.Model.GetRootAs(data))
    main = written.subgraphs[0]
    codes = [code.builtinCode for code in written.operatorCodes]

    def is_sum(op: Any) -> bool:
        int8 = main.tensors[op.inputs[0]].type == types.TensorType.INT8 if len(op.inputs) else False
        return bool(codes[op.opcodeIndex] == types.BuiltinOperator.SUM and int8)

    sums = [op for op in main.operators if is_sum(op)]
    main.operators = [op for op in main.operators if not is_sum(op)]
    main.inputs = [*main.inputs, *(op.outputs[0] for op in sums)]
    main.outputs = [*main.outputs, *(op.inputs[0] for op in sums)]
    written.signatureDefs = None
    make: Any = flatbuffers.builder.Builder
    builder = make(1 << 16)
    builder.Finish(written.Pack(builder), b"TFL3")
    return bytes(builder.Output()), len(sums)


@dataclass(frozen=True)
class SumsApart:
    """An interpreter of `without_sums`, and the graph's own sums in the file's order."""

    interpreter: Any
    graph: Graph
    sums: tuple[Op, ...]

    def run(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The model's outputs."""
        given = self.interpreter.get_input_details()
        places = self.interpreter.get_output_details()
        ends = len(places) - len(self.sums)
        totals: list[Array] = [
            np.zeros(self.graph.output(op).shape, self.graph.output(op).dtype.numpy)
            for op in self.sums
        ]
        while True:
            for detail, value in zip(given, (*inputs, *totals), strict=True):
                self.interpreter.set_tensor(detail["index"], value)
            self.interpreter.invoke()
            results = [self.interpreter.get_tensor(detail["index"]) for detail in places]
            found = [
                evaluate(op, self.graph, [value])[0]
                for op, value in zip(self.sums, results[ends:], strict=True)
            ]
            if all(map(np.array_equal, found, totals)):
                return tuple(results[:ends])
            totals = found


def sums_apart(data: bytes, graph: Graph, make: Callable[[bytes], Any]) -> SumsApart | None:
    """None where the graph keeps state, which several runs would change, or its sums differ."""
    cut, count = without_sums(data)
    sums = tuple(op for op in graph.ops if op.kind == "sum")
    if graph.states or len(sums) != count:
        return None
    return SumsApart(make(cut), graph, sums)
