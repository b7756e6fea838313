"""Boxes that a board decoded (`--decode`): its own heads give the NumPy reference's boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import End, Graph, Op
from toolchain.ops import spec_of
from toolchain.ops.detection.decode_boxes import KIND

Array = NDArray[np.generic]


@dataclass(frozen=True)
class Decoding:
    """How decoding compared over all runs: `detections` boxes were found, in `elements` numbers."""

    elements: int = 0
    differing: int = 0
    detections: int = 0

    def with_output(self, elements: int, differing: int) -> Decoding:
        return replace(
            self, elements=self.elements + elements, differing=self.differing + differing
        )


@dataclass(frozen=True)
class Decoder:
    """The operator that `--decode` put behind the model's outputs, and its graph."""

    op: Op
    graph: Graph

    @staticmethod
    def of(graph: Graph) -> Decoder | None:
        """The decoder of a graph; None for a graph without one."""
        op = next((op for op in graph.ops if op.kind == KIND), None)
        return None if op is None else Decoder(op, graph)

    def expected(self, ends: Sequence[End], outputs: Mapping[str, Array]) -> dict[str, Array]:
        """The boxes that the reference makes of the heads that the board returned, by name of the
        output."""
        heads = {end.name: end.to_graph(outputs[end.name].reshape(end.model_shape)) for end in ends}
        given: list[Array] = []
        for name in self.op.inputs:
            constant = self.graph.tensors[name].constant
            given.append(heads[name] if constant is None else constant)
        arrays = spec_of(KIND).reference(self.op, self.graph, given)
        return dict(zip(self.op.outputs, arrays, strict=True))

    def detections(self, expected: Mapping[str, Array]) -> int:
        """The number of boxes among them."""
        return int(expected[self.op.outputs[-1]].reshape(-1)[0])
