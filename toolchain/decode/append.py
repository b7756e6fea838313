"""The operator `decode_boxes` behind a model's outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolchain.decode.layout import Bound, MadeHead, outputs_of
from toolchain.decode.option import Decode
from toolchain.errors import InputError
from toolchain.ir import Boundary, DType, End, Graph, Op, Tensor
from toolchain.ir.names import GraphNames
from toolchain.ops.detection.decode_boxes import KIND, DecodeBoxes, output_types
from toolchain.ops.detection.heads import Head

NAMES = ("detection_boxes", "detection_classes", "detection_scores", "detection_count")
_CHANNELS = (1, 3, 4)
_MOST = 1 << 30


def with_boxes(graph: Graph, boundaries: Sequence[Boundary], decode: Decode) -> Graph:
    """The graph with four more outputs: boxes, classes, scores and their number.

    Its own outputs stay. Raises InputError where they are not the heads that `decode` expects.
    """
    known = {boundary.tensor: boundary for boundary in boundaries}

    def ends(names: Sequence[str]) -> tuple[End, ...]:
        return tuple(End(graph.tensors[name], known.get(name)) for name in names)

    bound = decode.kind.bound(outputs_of(ends(graph.outputs)), _image(ends(graph.inputs)))
    fresh = GraphNames.of(graph)
    names = tuple(map(fresh.tensors.fresh, NAMES))
    operator, anchors = _operator(fresh, decode, bound, names)
    kinds = output_types(decode.kind.max_detections)
    made = [Tensor(n, kind.shape, kind.dtype) for n, kind in zip(names, kinds, strict=True)]
    tensors = [*graph.tensors.values(), *anchors, *made]
    grown = replace(graph, outputs=(*graph.outputs, *names))
    return grown.with_ops([*graph.ops, operator], tensors)


def _operator(
    fresh: GraphNames, decode: Decode, bound: Bound, names: tuple[str, ...]
) -> tuple[Op, list[Tensor]]:
    inputs: list[str] = []
    anchors: list[Tensor] = []

    def index(name: str) -> int:
        if name not in inputs:
            inputs.append(name)
        return inputs.index(name)

    def head(made: MadeHead) -> Head:
        boxes, scores = index(made.boxes.name), index(made.scores.name)
        sizes = -1
        if made.sizes is not None:
            name = fresh.tensors.fresh(f"detection_anchors{len(anchors)}")
            tensor = Tensor(name, made.sizes.shape, DType.FLOAT32, None, made.sizes)
            anchors.append(tensor)
            sizes = index(name)
        return Head(
            boxes,
            scores,
            made.cells,
            made.columns,
            made.anchors,
            made.box_view,
            made.score_view,
            sizes,
        )

    asked = decode.kind
    heads = tuple(map(head, bound.heads))
    places = sum(one.places for one in heads)
    if places * bound.classes > _MOST:
        raise InputError(f"--decode: {places:,} boxes of {bound.classes:,} classes are too many")
    attributes = DecodeBoxes(
        heads,
        bound.coding,
        bound.classes,
        asked.max_detections,
        asked.max_candidates or places,
        bound.scoring,
        asked.suppression,
        bound.background,
        bound.objectness,
        bound.x_first,
        asked.score_threshold,
        asked.iou_threshold,
        bound.scales,
    )
    return Op(KIND, fresh.ops.fresh(KIND), tuple(inputs), names, attributes), anchors


def _image(inputs: Sequence[End]) -> tuple[int, int] | None:
    """Rows and columns of the only input that is an image; None if there is none, or several."""
    sizes = []
    for end in inputs:
        shape = end.model_shape
        if len(shape) != 4:
            continue
        if shape[3] in _CHANNELS:
            sizes.append((shape[1], shape[2]))
        elif shape[1] in _CHANNELS:
            sizes.append((shape[2], shape[3]))
    return sizes[0] if len(sizes) == 1 else None
