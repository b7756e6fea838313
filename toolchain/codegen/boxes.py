"""The boxes that `--decode` puts behind a detector's outputs, as the header describes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.codegen.header import Accessor
from toolchain.ir import Graph
from toolchain.ops.detection.decode_boxes import KIND, DecodeBoxes


@dataclass(frozen=True)
class Boxes:
    """The outputs that hold them, how many there are at `most`, and of how many classes."""

    sides: Accessor
    labels: Accessor
    scores: Accessor
    count: Accessor
    most: int
    classes: int


def boxes_of(graph: Graph, outputs: Sequence[Accessor]) -> Boxes | None:
    """The boxes of a graph; None where it decodes none."""
    op = next((op for op in graph.ops if op.kind == KIND), None)
    if op is None:
        return None
    named = {end.tensor.name: end for end in outputs}
    assert isinstance(op.attributes, DecodeBoxes)
    sides, labels, scores, count = (named[name] for name in op.outputs)
    return Boxes(sides, labels, scores, count, op.attributes.detections, op.attributes.classes)
