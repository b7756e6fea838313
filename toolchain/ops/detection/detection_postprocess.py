"""The boxes that a detector found. TFLite's custom operator TFLite_Detection_PostProcess.

Boxes are encoded relative to anchors. Boxes with too low a score are dropped, and boxes that
overlap a better one: over the best class of each box ("fast"), or within each class ("regular").
Arithmetic: `detection_postprocess.cc` of LiteRT. The exponential is Thimble's own, in double,
within one unit in its last place. LiteRT leaves what lies behind the boxes found as it was; here it
is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.detection.boxes import Float32, best_of, decode, stored_numbers, suppressed
from toolchain.ops.unary.dequantize import dequantized

CUSTOM = "TFLite_Detection_PostProcess"
_ENCODINGS, _SCORES, _ANCHORS = range(3)
_COORDINATES = 4
_DEFAULT_EACH_CLASS = 100


@dataclass(frozen=True)
class DetectionPostprocess(kit.Attributes):
    """detections      boxes to report at most.
    best_classes    classes that are reported of a box, where suppression is fast.
    classes         classes that count; a first one more in the scores is the background.
    each_class      boxes of a class at most, where suppression is regular; 0 where it is fast.
    least_score, most_overlap  a box with less, or that shares more with a better one, is dropped.
    scales          by which the encoded y, x, height and width are divided.
    """

    detections: int
    best_classes: int
    classes: int
    each_class: int = 0
    least_score: float = 0.0
    most_overlap: float = 0.5
    scales: tuple[float, float, float, float] = (10.0, 10.0, 5.0, 5.0)

    @property
    def places(self) -> int:
        """The boxes of the output."""
        return self.detections * self.best_classes


def _infer(op: kit.Operator[DetectionPostprocess]) -> kit.TensorTypes:
    encodings, scores, anchors = (op.input(i) for i in range(3))
    a = op.attributes
    if len(encodings.shape) != 3 or encodings.shape[0] != 1 or encodings.shape[2] < _COORDINATES:
        raise ValueError(f"encodings are [1, boxes, 4 or more], not {encodings}")
    boxes = encodings.shape[1]
    if scores.shape not in ((1, boxes, a.classes), (1, boxes, a.classes + 1)):
        raise ValueError(f"{scores} does not hold {a.classes} classes of {boxes} boxes")
    if anchors.shape != (boxes, _COORDINATES) or anchors.dtype is not kit.DType.FLOAT32:
        raise ValueError(f"anchors are float32 [{boxes}, 4], not {anchors}")
    if min(a.detections, a.best_classes, a.classes) < 1 or a.each_class < 0:
        raise ValueError("it wants no detections, or of no class")
    if not 0 < a.most_overlap <= 1:
        raise ValueError(f"its nms_iou_threshold is {a.most_overlap}, not above 0 and up to 1")
    if not all(a.scales):
        raise ValueError("a scale of its boxes is 0")
    kinds = ((1, a.places, _COORDINATES), (1, a.places), (1, a.places), (1,))
    return tuple(kit.TensorType(shape, kit.DType.FLOAT32) for shape in kinds)


def _reals(tensor: kit.Tensor, stored: kit.Array) -> Float32:
    return dequantized(tensor, stored).astype(np.float32)


def _reference(op: kit.Operator[DetectionPostprocess], inputs: kit.Inputs) -> kit.Arrays:
    a = op.attributes
    encodings, scores = (_reals(op.input(i), inputs[i])[0] for i in (_ENCODINGS, _SCORES))
    scores = scores[:, scores.shape[1] - a.classes :]
    boxes = decode(encodings, inputs[_ANCHORS].astype(np.float32), a.scales)
    reported = (
        _of_each_class(a, boxes, scores) if a.each_class else _of_best_class(a, boxes, scores)
    )
    outputs = [np.zeros(y.shape, np.float32) for y in op.outputs]
    for place, anchor, label in reported:
        outputs[0][0, place] = boxes[anchor]
        outputs[1][0, place] = label
        outputs[2][0, place] = scores[anchor, label]
    step = 1 if a.each_class else min(a.best_classes, a.classes)
    outputs[3][0] = len(reported) // step
    return tuple(outputs)


def _of_best_class(
    a: DetectionPostprocess, boxes: Float32, scores: Float32
) -> list[tuple[int, int, int]]:
    """Place in the output, anchor and class of each detection."""
    kept = suppressed(boxes, scores.max(axis=1), a.least_score, a.most_overlap, a.detections)
    given = min(a.best_classes, a.classes)
    return [
        (number * a.best_classes + rank, anchor, label)
        for number, anchor in enumerate(kept)
        for rank, label in enumerate(best_of(scores[anchor].tolist(), given))
    ]


def _of_each_class(
    a: DetectionPostprocess, boxes: Float32, scores: Float32
) -> list[tuple[int, int, int]]:
    best: list[tuple[int, int]] = []
    for label in range(a.classes):
        column = scores[:, label]
        kept = suppressed(boxes, column, a.least_score, a.most_overlap, a.each_class)
        best += [(anchor, label) for anchor in kept]
        best = sorted(best, key=lambda one: -float(scores[one]))[: a.detections]
    return [(place, anchor, label) for place, (anchor, label) in enumerate(best)]


def _select(op: kit.Operator[DetectionPostprocess], core: kit.Core) -> kit.Kernel:
    a = op.attributes
    encodings, scores = op.input(_ENCODINGS), op.input(_SCORES)
    params = kit.Struct(
        "thimble_detect_params",
        {
            "anchors": encodings.shape[1],
            "coordinates": encodings.shape[2],
            "classes": a.classes,
            "background": scores.shape[2] - a.classes,
            "best_classes": a.best_classes,
            "detections": a.detections,
            "each_class": a.each_class,
            "least_score": np.float32(a.least_score).item(),
            "most_overlap": np.float32(a.most_overlap).item(),
            "scales": kit.Row(tuple(np.float32(scale).item() for scale in a.scales)),
            "encodings": stored_numbers(encodings),
            "scores": stored_numbers(scores),
        },
    )
    arguments: dict[str, kit.Argument] = {
        "params": params,
        "encodings": kit.Input(_ENCODINGS),
        "scores": kit.Input(_SCORES),
        "anchors": kit.Input(_ANCHORS),
        "scratch": kit.Scratch(),
        "found": kit.Output(0),
        "found_classes": kit.Output(1),
        "found_scores": kit.Output(2),
        "found_count": kit.Output(3),
    }
    call = kit.Call("thimble_detect", arguments)
    scratch = _scratch_bytes(encodings.shape[1], a)
    return kit.Kernel(
        (call,), _extents, scratch_bytes=scratch, find_terms=lambda: _terms(encodings.shape[1], a)
    )


def _scratch_bytes(anchors: int, a: DetectionPostprocess) -> int:
    """A score and a place for each candidate. See `thimble_detect`."""
    if a.each_class:
        return 24 * anchors + 8 * (a.detections + min(anchors, a.each_class))
    return 8 * anchors + (8 * a.classes if min(a.best_classes, a.classes) > 1 else 0)


def _terms(anchors: int, a: DetectionPostprocess) -> kit.Terms:
    """Every score is compared; how many boxes are decoded and sorted depends on the scores."""
    scores = anchors * a.classes
    return {
        "call": 1.0,
        "anchor": anchors,
        "score": 0 if a.each_class else scores,
        "score of a class": scores if a.each_class else 0,
        "place": a.places,
    }


def _extents(touched: kit.Touched) -> kit.Extents:
    """Anchors are read, and boxes written, whole."""
    number = {
        name: touched.call[f"params.{name}"]
        for name in ("anchors", "classes", "best_classes", "detections", "each_class")
    }
    anchors = number["anchors"]
    columns = number["classes"] + touched.call["params.background"]
    widths = [touched.call[f"params.{name}.bytes"] for name in ("encodings", "scores")]
    stored = anchors * touched.call["params.coordinates"], anchors * columns
    asked = DetectionPostprocess(
        number["detections"], number["best_classes"], number["classes"], number["each_class"]
    )
    places = asked.places
    return kit.Extents(
        {
            _ENCODINGS: kit.whole(stored[0], widths[0]),
            _SCORES: kit.whole(stored[1], widths[1]),
            _ANCHORS: kit.whole(_COORDINATES * anchors, 4),
        },
        {
            0: kit.whole(_COORDINATES * places, 4),
            1: kit.whole(places, 4),
            2: kit.whole(places, 4),
            3: kit.whole(1, 4),
        },
        scratch=_scratch_bytes(anchors, asked),
        largest=max(anchors * number["classes"], *stored),
    )


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    options, anchors = node.options, node.constant(_ANCHORS).astype(np.float32)
    if (anchors[:, 2:] < 0).any():
        raise node.unsupported(
            "an anchor has a negative size",
            "export the detector with the anchors that it was trained with",
        )
    regular = bool(getattr(options, "use_regular_nms", False))
    each_class = int(getattr(options, "detections_per_class", _DEFAULT_EACH_CLASS))
    y, x, height, width = (float(getattr(options, f"{side}_scale")) for side in "yxhw")
    attributes = DetectionPostprocess(
        int(options.max_detections),
        int(options.max_classes_per_detection),
        int(options.num_classes),
        each_class if regular else 0,
        float(options.nms_score_threshold),
        float(options.nms_iou_threshold),
        (y, x, height, width),
    )
    if regular and attributes.best_classes != 1:
        raise node.unsupported(
            f"{attributes.best_classes} classes of each detection beside use_regular_nms, which "
            "reports one",
            "export it with max_classes_per_detection 1",
        )
    if regular and each_class < 1:
        raise node.unsupported("no detections of a class", "export it with detections_per_class")
    return kit.ReadOp(attributes, (0, 1, 2))


def _write(op: kit.Operator[DetectionPostprocess]) -> kit.WrittenOp:
    a = op.attributes
    options = {
        "max_detections": a.detections,
        "max_classes_per_detection": a.best_classes,
        "num_classes": a.classes,
        "nms_score_threshold": a.least_score,
        "nms_iou_threshold": a.most_overlap,
        "use_regular_nms": a.each_class > 0,
    }
    options |= {f"{side}_scale": scale for side, scale in zip("yxhw", a.scales, strict=True)}
    if a.each_class:
        options["detections_per_class"] = a.each_class
    return kit.WrittenOp(CUSTOM, "", options)


def _sample(rng: np.random.Generator) -> kit.Graph:
    """Anchors on a grid; scores of few levels, so that some are equal."""
    count, classes = int(rng.integers(1, 60)), int(rng.integers(1, 8))
    coordinates, background = 4 + int(rng.random() < 0.2) * 3, int(rng.random() < 0.5)
    regular = rng.random() < 0.5
    anchors = np.concatenate(
        [rng.random((count, 2)), rng.uniform(0.05, 0.6, (count, 2))], axis=1
    ).astype(np.float32)
    attributes = DetectionPostprocess(
        int(rng.integers(1, 13)),
        1 if regular or rng.random() < 0.6 else int(rng.integers(1, 5)),
        classes,
        int(rng.integers(1, 12)) if regular else 0,
        float(np.float32(rng.choice([1e-8, 0.0, 0.3, -60.0, 20.0]))),
        float(np.float32(rng.choice([0.6, 0.1, 0.9, 1.0]))),
        (10.0, 10.0, 5.0, 5.0) if rng.random() < 0.5 else (50.0, 40.0, 70.0, 90.0),
    )
    names = ("boxes", "labels", "found_scores", "count")
    encodings = kit.Tensor("encodings", (1, count, coordinates), kit.DType.FLOAT32)
    scores = kit.Tensor("scores", (1, count, classes + background), kit.DType.FLOAT32)
    inputs = (encodings, scores, kit.constant_sample("anchors", anchors))
    kind = "detection_postprocess"
    return kit.sample(kind, attributes, *inputs, outputs=names, name="detect")


def _sample_stored(rng: np.random.Generator) -> kit.Graph:
    """Encodings, and mostly scores, stored in int8."""
    graph = _sample(rng)

    def stored(tensor: kit.Tensor) -> kit.Tensor:
        q = kit.Quantisation(
            (float(np.float32(rng.uniform(0.01, 0.2))),), (int(rng.integers(-128, 128)),)
        )
        return replace(tensor, dtype=kit.DType.INT8, quantisation=q)

    chosen = {"encodings"} | ({"scores"} if rng.random() < 0.8 else set())
    return kit.with_tensors(graph, lambda t: stored(t) if t.name in chosen else t)


_DTYPES = frozenset({kit.DType.FLOAT32, kit.DType.INT8})
_FLOAT32 = kit.Form(
    kind="detection_postprocess",
    attributes=DetectionPostprocess,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding((CUSTOM,), _read, _write),
    types=_DTYPES,
    dtype=kit.DType.FLOAT32,
    limits="float32 encodings and scores, or int8 ones behind their DEQUANTIZE; constant anchors",
)
_INT8 = replace(
    _FLOAT32, sample=_sample_stored, tflite=None, made_by_passes=True, dtype=kit.DType.INT8
)
SPEC = kit.OpSpec((_FLOAT32, _INT8))
