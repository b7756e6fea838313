"""Random TFLite files whose IF and WHILE depend on data, nested in one another.

Results of branches and bodies are tensors of their own: LiteRT leaves some unwritten that are
operands or constants, or that are listed twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import ai_edge_litert.schema_py_generated as schema
import numpy as np

from tests.support.tflite_subgraphs import File, Subgraph
from toolchain.ir import Quantisation

QUANTISED = Quantisation((0.25,), (3,))
Shape: TypeAlias = tuple[int, ...]
Value: TypeAlias = tuple[int, str, Shape]
"""A tensor's number, element type and shape."""
_ORDERED = ("int8", "float32")
_PAIRS = ("ADD", "SUB", "MAXIMUM", "MINIMUM")


def _options(name: str, **fields: object) -> Any:
    made: Any = getattr(schema, f"{name}OptionsT")()
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def _pair_options(builtin: str) -> Any:
    return _options(builtin.capitalize() if builtin in ("ADD", "SUB") else "MaximumMinimum")


class ControlFlow:
    """Builds one file."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._file = File()

    def model(self) -> bytes:
        graph, values = self._file.subgraph(), []
        for _ in range(int(self._rng.integers(1, 4))):
            dtype = _ORDERED[int(self._rng.integers(2))]
            shape = tuple(int(d) for d in self._rng.integers(1, 5, int(self._rng.integers(1, 3))))
            values.append(self._new(graph, dtype, shape))
        graph.inputs.extend(number for number, _, _ in values)
        given = len(values)
        self._steps(graph, values, 2, 2)
        values += (self._branch if self._rng.random() < 0.5 else self._loop)(graph, values, 2)
        self._steps(graph, values, 1, 2)
        made = [number for number, _, _ in values[given:]]
        kept = self._rng.choice(len(made), min(4, len(made)), replace=False)
        graph.outputs.extend(sorted(made[int(i)] for i in kept))
        return self._file.data()

    def _new(self, graph: Subgraph, dtype: str, shape: Shape, data: Any = None) -> Value:
        quantised = QUANTISED if dtype == "int8" else None
        return graph.tensor(shape, dtype, data, quantised), dtype, shape

    def _constant(self, graph: Subgraph, dtype: str, shape: Shape) -> Value:
        rng = self._rng
        data: Any = rng.normal(0, 2, shape).astype(np.float32)
        if dtype in ("int8", "int32"):
            data = rng.integers(-30, 30, shape)
        elif dtype == "bool":
            data = rng.random(shape) < 0.5
        return self._new(graph, dtype, shape, data)

    def _alike(self, graph: Subgraph, values: Sequence[Value], dtype: str, shape: Shape) -> int:
        found = [number for number, own, of in values if (own, of) == (dtype, shape)]
        if not found or self._rng.random() < 0.2:
            return self._constant(graph, dtype, shape)[0]
        return found[int(self._rng.integers(len(found)))]

    def _steps(self, graph: Subgraph, values: list[Value], depth: int, most: int) -> None:
        rng = self._rng
        for _ in range(int(rng.integers(1, most + 1))):
            pick = rng.random()
            if depth and pick < 0.5:
                values += (self._branch if pick < 0.3 else self._loop)(graph, values, depth)
                continue
            number, dtype, shape = values[int(rng.integers(len(values)))]
            result = self._new(graph, dtype, shape)
            other = self._alike(graph, values, dtype, shape)
            if dtype == "bool":
                graph.op("LOGICAL_AND", [number, other], [result[0]])
            elif pick < 0.7 and len(shape) == 2:
                wide = self._new(graph, dtype, (2 * shape[0], shape[1]))
                joined = _options("Concatenation", axis=0)
                graph.op("CONCATENATION", [number, other], [wide[0]], joined)
                limits = [graph.constant([1, 0]), graph.constant(list(shape))]
                graph.op("SLICE", [wide[0], *limits], [result[0]], _options("Slice"))
                values.append(wide)
            elif pick < 0.8 and dtype in _ORDERED:
                graph.op("RELU", [number], [result[0]])
            else:
                builtin = _PAIRS[int(rng.integers(len(_PAIRS)))]
                graph.op(builtin, [number, other], [result[0]], _pair_options(builtin))
            values.append(result)

    def _flag(self, graph: Subgraph, values: Sequence[Value]) -> int:
        """Whether the largest element of a tensor is below a constant."""
        ordered = [value for value in values if value[1] in _ORDERED and value[2]]
        number, dtype, shape = ordered[int(self._rng.integers(len(ordered)))]
        most, flag = self._new(graph, dtype, ()), self._new(graph, "bool", ())
        axes = graph.constant(list(range(len(shape))))
        graph.op("REDUCE_MAX", [number, axes], [most[0]], _options("Reducer", keepDims=False))
        limit = self._constant(graph, dtype, ())
        graph.op("LESS", [most[0], limit[0]], [flag[0]], _options("Less"))
        return flag[0]

    def _arguments(self, values: Sequence[Value]) -> list[Value]:
        """Some of the values, one of which can be compared."""
        count = min(int(self._rng.integers(1, 4)), len(values))
        found = [values[int(i)] for i in self._rng.choice(len(values), count, replace=False)]
        if not any(dtype in _ORDERED and shape for _, dtype, shape in found):
            found.append(next(v for v in values if v[1] in _ORDERED and v[2]))
        return found

    def _result(self, graph: Subgraph, values: Sequence[Value], dtype: str, shape: Shape) -> int:
        source, result = self._alike(graph, values, dtype, shape), self._new(graph, dtype, shape)
        if dtype == "bool":
            graph.op("LOGICAL_AND", [source, source], [result[0]])
        else:
            graph.op("MAXIMUM", [source, source], [result[0]], _options("MaximumMinimum"))
        return result[0]

    def _entered(self, kinds: Sequence[tuple[str, Shape]]) -> tuple[Subgraph, list[Value]]:
        graph = self._file.subgraph()
        values = [self._new(graph, dtype, shape) for dtype, shape in kinds]
        graph.inputs.extend(number for number, _, _ in values)
        return graph, values

    def _branch(self, graph: Subgraph, values: Sequence[Value], depth: int) -> list[Value]:
        rng, flag, given = self._rng, self._flag(graph, values), self._arguments(values)
        kinds = [(dtype, shape) for _, dtype, shape in given]
        wanted = [kinds[int(rng.integers(len(kinds)))] for _ in range(int(rng.integers(1, 4)))]
        numbers = []
        for _ in range(2):
            inside, known = self._entered(kinds)
            self._steps(inside, known, depth - 1, 3)
            inside.outputs.extend(self._result(inside, known, *kind) for kind in wanted)
            numbers.append(inside.number)
        if rng.random() < 0.4:
            given[0] = self._constant(graph, *kinds[0])
        results = [self._new(graph, *kind) for kind in wanted]
        graph.op(
            "IF",
            [flag, *(number for number, _, _ in given)],
            [number for number, _, _ in results],
            _options("If", thenSubgraphIndex=numbers[0], elseSubgraphIndex=numbers[1]),
        )
        return results

    def _loop(self, graph: Subgraph, values: Sequence[Value], depth: int) -> list[Value]:
        """At most four turns; some values are the same in all of them."""
        rng, given = self._rng, self._arguments(values)
        start = graph.constant(0)
        kinds = [("int32", ()), *((dtype, shape) for _, dtype, shape in given)]
        condition, (count, *known) = self._entered(kinds)
        few, goes_on = (self._new(condition, "bool", ())[0] for _ in range(2))
        most = condition.constant(int(rng.integers(1, 5)))
        condition.op("LESS", [count[0], most], [few], _options("Less"))
        condition.op("LOGICAL_AND", [few, self._flag(condition, known)], [goes_on])
        condition.outputs.append(goes_on)
        body, (count, *known) = self._entered(kinds)
        after = self._new(body, "int32", ())[0]
        body.op("ADD", [count[0], body.constant(1)], [after], _options("Add"))
        inside = list(known)
        self._steps(body, inside, depth - 1, 4)
        body.outputs.append(after)
        body.outputs.extend(
            number if rng.random() < 0.25 else self._result(body, inside, dtype, shape)
            for number, dtype, shape in known
        )
        results = [self._new(graph, *kind) for kind in kinds]
        graph.op(
            "WHILE",
            [start, *(number for number, _, _ in given)],
            [number for number, _, _ in results],
            _options("While", condSubgraphIndex=condition.number, bodySubgraphIndex=body.number),
        )
        return results
