"""The picture of a network: one box for an operator with its blocks, and the tensors between."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from toolchain.page.document import Box, Line, Network
from toolchain.page.layout import BOX_HEIGHT, BOX_WIDTH, layered
from toolchain.report.planned import PlannedOperator, PlannedTensor

_Name = tuple[str, str]
"""A side and a name: an operator's ('' before it), an input's or an output's."""


@dataclass
class _Drawing:
    """Boxes in the order of work, and the tensors that join two of them."""

    numbers: dict[_Name, int] = field(default_factory=dict)
    rows: list[dict[int, int]] = field(default_factory=list)
    """Rows of operators by box, with the work of each."""
    joined: dict[tuple[int, int], dict[str, None]] = field(default_factory=dict)

    def box(self, name: _Name) -> int:
        if name not in self.numbers:
            self.numbers[name] = len(self.rows)
            self.rows.append({})
        return self.numbers[name]

    def join(self, source: int, target: int, tensor: str) -> None:
        if source != target:
            self.joined.setdefault((source, target), {})[tensor] = None


def network(
    steps: Sequence[PlannedOperator],
    tensors: Mapping[str, PlannedTensor],
    rows: Mapping[tuple[str, str], int],
    inputs: Collection[str],
    outputs: Collection[str],
) -> Network:
    """The picture of a plan. `rows`: of operators, by `counted_as`.

    The slices and joins that a split needs stand in the box of the operator whose blocks they
    serve, or of the input that they slice: so a split network looks as the whole one does.
    """
    drawing = _Drawing()
    writers: dict[str, tuple[int, int]] = {}
    for op in steps:
        name, _ = op.counted_as
        if name in inputs:
            drawing.box(("input", name))
        for tensor in op.inputs:
            if tensor in inputs:
                drawing.box(("input", tensor))
        box = drawing.box(("input" if name in inputs else "", name))
        row = rows[op.counted_as]
        drawing.rows[box][row] = drawing.rows[box].get(row, 0) + op.count + op.macs
        writers |= dict.fromkeys(op.outputs, (box, op.step))
    for op in steps:
        name, _ = op.counted_as
        box = drawing.numbers["input" if name in inputs else "", name]
        for tensor in op.inputs:
            if tensor in inputs:
                drawing.join(drawing.box(("input", tensor)), box, tensor)
            elif tensor in writers and writers[tensor][1] < op.step:
                drawing.join(writers[tensor][0], box, tensor)
    for tensor in sorted(outputs):
        box = drawing.box(("output", tensor))
        if tensor in writers:
            drawing.join(writers[tensor][0], box, tensor)
    return _placed(drawing, tensors)


def _placed(drawing: _Drawing, tensors: Mapping[str, PlannedTensor]) -> Network:
    layout = layered(len(drawing.rows), [*drawing.joined])
    boxes = []
    for (side, name), held, place in zip(drawing.numbers, drawing.rows, layout.places, strict=True):
        shape = tensors[name].shape if side and name in tensors else ()
        ordered = sorted(held, key=lambda row: (-held[row], row))
        boxes.append(Box(name, tuple(ordered), side, shape, *place))
    lines = []
    for ((source, target), names), points in zip(drawing.joined.items(), layout.lines, strict=True):
        known = [tensors[name] for name in names if name in tensors]
        largest = max(known, key=lambda one: one.bytes, default=None)
        lines.append(
            Line(
                source,
                target,
                largest.shape if largest else (),
                largest.dtype if largest else "",
                len(names),
                sum(one.bytes for one in known),
                points,
            )
        )
    return Network(
        tuple(boxes),
        tuple(lines),
        layout.cuts,
        (BOX_WIDTH, BOX_HEIGHT),
        layout.width,
        layout.height,
    )
