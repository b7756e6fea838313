"""The boxes of a detector whose file ends with raw heads. Made by `--decode`, read from no file.

Scores that are enough are chosen over all heads; boxes are decoded, best score first, and dropped
where they overlap a better one. Arithmetic is float32, one rounding an operation, except that boxes
relative to anchors (SSD) are decoded in double, as TFLite_Detection_PostProcess does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.detection.boxes import Float32, stored_numbers
from toolchain.ops.detection.heads import (
    COORDINATES,
    BoxCoding,
    Head,
    Scoring,
    Suppression,
    View,
    chosen,
    head_boxes,
    joined,
    kept,
    scores_of,
)
from toolchain.ops.unary.dequantize import dequantized

KIND = "decode_boxes"
OUTPUTS = ("boxes", "classes", "scores", "count")
"""Names of the outputs."""
_CANDIDATE_BYTES = 8
_LEAST = -3.0e38
_SURE = 15.0
"""A logistic function is below 1 up to here, so that no score of 1 is passed over."""
_MARGIN = 1e-3
"""Far more than what the last bits of a score are worth in the number that it comes from."""


@dataclass(frozen=True)
class DecodeBoxes(kit.Attributes):
    """heads         of the network.
    coding, scoring, suppression  how a box is encoded, what makes a score, what boxes suppress.
    classes       scores of a box that count.
    detections    boxes to report at most.
    candidates    the best of all scores, of which boxes are chosen.
    background    1 if the first score is that of the background.
    objectness    a score is multiplied by that of there being an object.
    x_first       boxes are encoded as x, y, width, height; else as y, x, height, width.
    least_score, most_overlap  a box with less, or that shares more with a better one, is dropped.
    scales        by which the encoded y, x, height and width are divided.
    """

    heads: tuple[Head, ...]
    coding: BoxCoding
    classes: int
    detections: int
    candidates: int
    scoring: Scoring = Scoring.PLAIN
    suppression: Suppression = Suppression.BEST_CLASS
    background: int = 0
    objectness: bool = False
    x_first: bool = True
    least_score: float = 0.25
    most_overlap: float = 0.45
    scales: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)

    @property
    def places(self) -> int:
        """The boxes of all heads."""
        return sum(head.places for head in self.heads)

    @property
    def channels(self) -> int:
        """Scores of a box."""
        return self.background + self.classes

    @property
    def least_number(self) -> float:
        """A number below this has less than `least_score`, by more than a rounding. With a softmax
        it is relative to the largest number.
        """
        if self.scoring is Scoring.PLAIN:
            return _LEAST if self.objectness else self.least_score
        if self.least_score <= 0:
            return _LEAST
        if self.scoring is Scoring.SOFTMAX:
            return math.log(self.least_score) - _MARGIN
        below = min(self.least_score, 1 / (1 + math.exp(-_SURE)))
        return math.log(below / (1 - below)) - _MARGIN


def output_types(detections: int) -> kit.TensorTypes:
    """Boxes, classes, scores and their number."""
    shapes = ((1, detections, COORDINATES), (1, detections), (1, detections), (1,))
    return tuple(kit.TensorType(shape, kit.DType.FLOAT32) for shape in shapes)


def _infer(op: kit.Operator[DecodeBoxes]) -> kit.TensorTypes:
    a = op.attributes
    if min(a.classes, a.detections, a.candidates) < 1:
        raise ValueError("it wants no classes, detections or candidates")
    if a.objectness and a.scoring is Scoring.SOFTMAX:
        raise ValueError("objectness beside a softmax")
    if not 0 < a.most_overlap <= 1 or not all(a.scales):
        raise ValueError("an overlap is above 0 and up to 1, and a scale is not 0")
    for head in a.heads:
        boxes, scores = op.input(head.boxes), op.input(head.scores)
        reach = head.box_view.reach(head.cells, head.anchors, COORDINATES)
        score_reach = head.score_view.reach(head.cells, head.anchors, a.channels)
        if head.columns < 1 or head.cells % head.columns:
            raise ValueError(f"{head.cells} cells do not fill rows of {head.columns}")
        if reach > boxes.elements or score_reach > scores.elements:
            raise ValueError(f"{boxes} or {scores} is smaller than its head")
        if a.objectness and head.score_view.first < head.score_view.channel_step:
            raise ValueError("objectness lies before the scores, which are the first there is")
        if a.coding is BoxCoding.CENTRES:
            continue
        rows = head.cells if a.coding is BoxCoding.OFFSETS else head.anchors
        width = COORDINATES if a.coding is BoxCoding.OFFSETS else 2
        sizes = op.input(head.sizes)
        if sizes.shape != (rows, width) or sizes.dtype is not kit.DType.FLOAT32:
            raise ValueError(f"anchors are float32 [{rows}, {width}], not {sizes}")
    return output_types(a.detections)


def _reals(tensor: kit.Tensor, stored: kit.Array) -> Float32:
    return dequantized(tensor, stored).astype(np.float32)


def _reference(op: kit.Operator[DecodeBoxes], inputs: kit.Inputs) -> kit.Arrays:
    a = op.attributes
    boxes, numbers, objects = [], [], []
    order = [1, 0, 3, 2] if a.x_first else [0, 1, 2, 3]
    for head in a.heads:
        encoded, scored = (_reals(op.input(i), inputs[i]) for i in (head.boxes, head.scores))
        size = head.cells, head.anchors
        four = head.box_view.numbers(encoded, *size, 0, COORDINATES)[:, order]
        sizes = None if head.sizes < 0 else inputs[head.sizes].astype(np.float32)
        boxes.append(head_boxes(four, sizes, head, a.coding, a.scales))
        numbers.append(head.score_view.numbers(scored, *size, 0, a.channels))
        if a.objectness:
            objects.append(head.score_view.numbers(scored, *size, -1, 0))
    decoded, raw = joined(boxes), joined(numbers)
    scores = scores_of(raw, joined(objects) if objects else None, a.scoring, a.background)
    candidates = chosen(scores, raw[:, a.background :], a.suppression, a.least_score, a.candidates)
    across = a.suppression is Suppression.ACROSS
    reported = kept(candidates, decoded, across, a.most_overlap, a.detections)
    outputs = [np.zeros(kind.shape, np.float32) for kind in output_types(a.detections)]
    for number, (place, label) in enumerate(reported):
        outputs[0][0, number] = decoded[place]
        outputs[1][0, number] = label
        outputs[2][0, number] = scores[place, label]
    outputs[3][0] = len(reported)
    return tuple(outputs)


def _view(view: View, tensor: kit.Tensor) -> kit.Struct:
    return kit.Struct(
        "thimble_view",
        {
            "numbers": stored_numbers(tensor),
            "first": view.first,
            "cell_step": view.cell_step,
            "anchor_step": view.anchor_step,
            "channel_step": view.channel_step,
        },
    )


def _head(head: Head, op: kit.AnyOperator) -> kit.Struct:
    return kit.Struct(
        "thimble_head",
        {
            "boxes": kit.Input(head.boxes),
            "scores": kit.Input(head.scores),
            "sizes": kit.NULL if head.sizes < 0 else kit.Input(head.sizes),
            "cells": head.cells,
            "columns": head.columns,
            "anchors": head.anchors,
            "box_view": _view(head.box_view, op.input(head.boxes)),
            "score_view": _view(head.score_view, op.input(head.scores)),
        },
    )


def _enumerator(prefix: str, value: BoxCoding | Scoring | Suppression) -> kit.Symbol:
    return kit.Symbol(f"THIMBLE_{prefix}_{value.upper().replace('-', '_')}")


def _select(op: kit.Operator[DecodeBoxes], core: kit.Core) -> kit.Kernel:
    a = op.attributes
    params = kit.Struct(
        "thimble_decode_params",
        {
            "heads": len(a.heads),
            "places": a.places,
            "coding": _enumerator("BOX", a.coding),
            "scoring": _enumerator("SCORE", a.scoring),
            "suppression": _enumerator("SUPPRESS", a.suppression),
            "x_first": int(a.x_first),
            "objectness": int(a.objectness),
            "background": a.background,
            "classes": a.classes,
            "candidates": a.candidates,
            "detections": a.detections,
            "least_score": np.float32(a.least_score).item(),
            "most_overlap": np.float32(a.most_overlap).item(),
            "least_number": np.float32(a.least_number).item(),
            "scales": kit.Row(tuple(np.float32(scale).item() for scale in a.scales)),
        },
    )
    arguments: dict[str, kit.Argument] = {
        "params": params,
        "heads": kit.Items("thimble_head", tuple(_head(head, op) for head in a.heads)),
        "scratch": kit.Scratch(),
        "found": kit.Output(0),
        "found_classes": kit.Output(1),
        "found_scores": kit.Output(2),
        "found_count": kit.Output(3),
    }
    return kit.Kernel(
        (kit.Call("thimble_decode_boxes", arguments),),
        _extents,
        scratch_bytes=_CANDIDATE_BYTES * a.candidates,
        find_terms=lambda: _terms(a),
    )


def _terms(a: DecodeBoxes) -> kit.Terms:
    """Every score is compared; how many boxes are decoded and sorted depends on the scores."""
    scores = a.places * a.channels
    softmax = a.scoring is Scoring.SOFTMAX
    return {
        "call": 1.0,
        "anchor": a.places,
        "score": scores,
        "power": scores if softmax else 0,
        "place": a.detections,
    }


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    number = {
        name: call[f"params.{name}"]
        for name in ("heads", "places", "classes", "background", "candidates", "detections")
    }
    read: list[tuple[int, kit.Extent]] = []
    channels = number["classes"] + number["background"]
    largest = number["places"] * number["classes"]
    for place in range(number["heads"]):
        at = f"heads.{place}"
        size = call[f"{at}.cells"], call[f"{at}.anchors"]
        for name, view, count in (
            ("boxes", "box_view", COORDINATES),
            ("scores", "score_view", channels),
        ):
            steps = ("first", "cell_step", "anchor_step", "channel_step")
            seen = View(*(call[f"{at}.{view}.{step}"] for step in steps))
            elements = seen.reach(*size, count)
            width = call[f"{at}.{view}.numbers.bytes"]
            read.append((_index(call, f"{at}.{name}"), kit.whole(elements, width)))
            largest = max(largest, elements)
        if call.find(f"{at}.sizes") != kit.NULL:
            offsets = call.find("params.coding") == _enumerator("BOX", BoxCoding.OFFSETS)
            numbers = COORDINATES * size[0] if offsets else 2 * size[1]
            read.append((_index(call, f"{at}.sizes"), kit.whole(numbers, 4)))
    detections = number["detections"]
    outputs = (COORDINATES * detections, detections, detections, 1)
    return kit.Extents(
        kit.joined(read),
        {index: kit.whole(elements, 4) for index, elements in enumerate(outputs)},
        scratch=_CANDIDATE_BYTES * number["candidates"],
        largest=largest,
    )


def _index(call: kit.Call, path: str) -> int:
    pointer = call.find(path)
    assert isinstance(pointer, kit.Input)
    return pointer.index


def _sample(rng: np.random.Generator) -> kit.Graph:
    """Heads of every coding and layout, stored in int8 or in float32."""
    coding = list(BoxCoding)[int(rng.integers(4))]
    grid = coding in (BoxCoding.SQUARES, BoxCoding.EXPONENTS)
    scoring = list(Scoring)[int(rng.integers(2 if grid else 3))]
    background = 0 if grid else int(rng.random() < 0.4)
    classes = int(rng.integers(1, 7))
    objectness = scoring is not Scoring.SOFTMAX and not background and rng.random() < 0.5
    tensors: list[kit.Tensor] = []
    heads: list[Head] = []
    for number in range(int(rng.integers(1, 4)) if grid else 1):
        made = _sample_head(rng, number, coding, len(tensors), classes, background, objectness)
        tensors += made[1]
        heads.append(made[0])
    places = sum(head.places for head in heads)
    suppression = list(Suppression)[int(rng.integers(3))]
    attributes = DecodeBoxes(
        tuple(heads),
        coding,
        classes,
        detections=int(rng.integers(1, 13)),
        candidates=int(rng.integers(1, places + 1)) if rng.random() < 0.5 else places,
        scoring=scoring,
        suppression=suppression,
        background=background,
        objectness=objectness,
        x_first=bool(rng.random() < 0.5),
        least_score=float(np.float32(rng.choice([0.0, 0.1, 0.3, 0.6]))),
        most_overlap=float(np.float32(rng.choice([0.6, 0.1, 0.9, 1.0]))),
        scales=(10.0, 10.0, 5.0, 5.0) if coding is BoxCoding.OFFSETS else (1.0, 3.0, 0.5, 7.0),
    )
    names = ("found", "labels", "found_scores", "count")
    return kit.sample(KIND, attributes, *tensors, outputs=names, name="decode")


def _sample_head(
    rng: np.random.Generator,
    number: int,
    coding: BoxCoding,
    index: int,
    classes: int,
    background: int,
    objectness: bool,
) -> tuple[Head, list[kit.Tensor]]:
    """A head and its tensors, of which the first is input `index`."""
    columns, rows = (int(n) for n in rng.integers(1, 6, 2))
    cells = columns * rows
    offsets = coding is BoxCoding.OFFSETS
    anchors = 1 if coding in (BoxCoding.OFFSETS, BoxCoding.CENTRES) else int(rng.integers(1, 4))
    q = kit.Quantisation(
        (float(np.float32(rng.uniform(0.005, 0.05))),), (int(rng.integers(-128, 128)),)
    )
    stored = (kit.DType.INT8, q) if rng.random() < 0.6 else (kit.DType.FLOAT32, None)
    channels = background + classes + int(objectness)
    tensors: list[kit.Tensor] = []

    def tensor(name: str, width: int, begin: int) -> View:
        """Channels last, or first, of all anchors."""
        last = rng.random() < 0.5
        shape = (1, cells, anchors, width) if last else (1, anchors, width, cells)
        tensors.append(kit.Tensor(f"{name}{number}", shape, *stored))
        steps = (anchors * width, width, 1) if last else (1, width * cells, cells)
        return View(begin * steps[2], *steps)

    if offsets or rng.random() < 0.3:
        box_view = tensor("boxes", COORDINATES, 0)
        score_view = tensor("scores", channels, int(objectness))
        scores = index + 1
    else:
        score_view = tensor("head", COORDINATES + channels, COORDINATES + int(objectness))
        box_view, scores = View(0, *_steps(score_view)), index
    sizes = -1
    if coding is not BoxCoding.CENTRES:
        sizes = index + len(tensors)
        shape = (cells, COORDINATES) if offsets else (anchors, 2)
        values = rng.uniform(0.1, 0.6, shape).astype(np.float32)
        tensors.append(kit.Tensor(f"sizes{number}", shape, kit.DType.FLOAT32, None, values))
    head = Head(index, scores, cells, columns, anchors, box_view, score_view, sizes)
    return head, tensors


def _steps(view: View) -> tuple[int, int, int]:
    return view.cell_step, view.anchor_step, view.channel_step


SPEC = kit.Form(
    kind=KIND,
    attributes=DecodeBoxes,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    types=frozenset({kit.DType.FLOAT32, kit.DType.INT8}),
    limits="int8 or float32 heads of SSD and YOLO, by --decode",
    made_by_passes=True,
)
