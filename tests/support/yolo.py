"""Heads as YOLO's exporters write them, and their boxes as PyTorch code computes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from tests.support.onnx_models import Float, model_of, quantised

CLASSES = 3
SIDE = 32
ANCHORS = ((4.0, 5.0, 9.0, 7.0, 6.0, 12.0), (14.0, 11.0, 22.0, 16.0, 18.0, 30.0))
Found = list[tuple[Float, int, float]]
"""Corners x, y, x, y as shares of the image, class, score."""


def _conv(
    rng: np.random.Generator, name: str, depth: int, stride: int
) -> tuple[onnx.NodeProto, dict[str, NDArray[np.generic]]]:
    node = helper.make_node(
        "Conv",
        ["image", f"{name}_w", f"{name}_b"],
        [name],
        kernel_shape=[3, 3],
        strides=[stride, stride],
        pads=[1, 1, 1, 1],
    )
    constants: dict[str, NDArray[np.generic]] = {
        f"{name}_w": (0.3 * rng.standard_normal((depth, 3, 3, 3))).astype(np.float32),
        f"{name}_b": (0.5 * rng.standard_normal(depth)).astype(np.float32),
    }
    return node, constants


def listed(*, channels_last: bool, logits: bool) -> bytes:
    """v8: 1 x (4 + classes) x boxes, normalised, its scores without their sigmoid if `logits`."""
    rng = np.random.default_rng(11)
    boxes, constants = _conv(rng, "boxes", 4, 4)
    scores, more = _conv(rng, "scores", CLASSES, 4)
    cells = (SIDE // 4) ** 2
    nodes = [boxes, scores, helper.make_node("Sigmoid", ["boxes"], ["shares"])]
    last = "scores"
    if not logits:
        nodes.append(helper.make_node("Sigmoid", ["scores"], ["likely"]))
        last = "likely"
    nodes.append(helper.make_node("Concat", ["shares", last], ["maps"], axis=1))
    nodes.append(helper.make_node("Reshape", ["maps", "shape"], ["list"]))
    constants |= more | {"shape": np.array([1, 4 + CLASSES, cells])}
    if channels_last:
        nodes.append(helper.make_node("Transpose", ["list"], ["turned"], perm=[0, 2, 1]))
    output = "turned" if channels_last else "list"
    model = model_of(nodes, {"image": (1, 3, SIDE, SIDE)}, [output], constants)
    return quantised(model)


def grids(*, split: bool) -> bytes:
    """v3 or v5: two heads, 1 x anchors * (5 + classes) x rows x columns, or (`split`) 1 x anchors x
    rows x columns x (5 + classes).
    """
    rng = np.random.default_rng(12)
    nodes, constants, outputs = [], {}, []
    each = 5 + CLASSES
    for number, stride in enumerate((16, 8)):
        name, side = f"head{number}", SIDE // stride
        node, more = _conv(rng, name, 3 * each, stride)
        nodes.append(node)
        constants |= more
        if split:
            constants[f"shape{number}"] = np.array([1, 3, each, side, side])
            parts, turned = f"parts{number}", f"grid{number}"
            nodes.append(helper.make_node("Reshape", [name, f"shape{number}"], [parts]))
            nodes.append(helper.make_node("Transpose", [parts], [turned], perm=[0, 1, 3, 4, 2]))
            name = turned
        outputs.append(name)
    return quantised(model_of(nodes, {"image": (1, 3, SIDE, SIDE)}, outputs, constants))


def sigmoid(x: Float) -> Float:
    return (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)


def decoded(heads: Sequence[Float], version: str) -> Float:
    """[boxes][5 + classes] of v3's and v5's heads (1, anchors, rows, columns, 5 + classes), from
    the finest, as `Detect.forward` has it: pixels, then the sigmoid of an object and of classes.
    """
    rows = []
    for head, pairs in zip(heads, ANCHORS, strict=True):
        _, _, ny, nx, _ = head.shape
        stride = SIDE / ny
        y, x = np.meshgrid(np.arange(ny), np.arange(nx), indexing="ij")
        grid = np.stack([x, y], -1)[None, None]
        anchors = np.array(pairs, np.float32).reshape(1, 3, 1, 1, 2)
        s = sigmoid(head)
        if version == "v5":
            xy, wh = (s[..., :2] * 2 - 0.5 + grid) * stride, (s[..., 2:4] * 2) ** 2 * anchors
        else:
            xy, wh = (s[..., :2] + grid) * stride, np.exp(head[..., 2:4]) * anchors
        rows.append(np.concatenate([xy, wh, s[..., 4:]], -1).reshape(-1, head.shape[-1]))
    return np.concatenate(rows).astype(np.float32)


def suppressed(boxes: Float, scores: Float, least: float, most_overlap: float, most: int) -> Found:
    """`non_max_suppression`: the best class of each box; boxes of other classes lie far apart.

    Boxes are centre x, y, width, height as shares.
    """
    label = scores.argmax(1)
    best = scores[np.arange(len(scores)), label]
    corners = np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], 1)
    apart = corners.astype(np.float64) + 100.0 * label[:, None]
    order = [i for i in np.argsort(-best, kind="stable") if best[i] >= least]
    found: Found = []
    while order and len(found) < most:
        first = order.pop(0)
        found.append((corners[first], int(label[first]), float(best[first])))
        order = [i for i in order if _iou(apart[first], apart[i]) <= most_overlap]
    return found


def _iou(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    sides = np.clip(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0, None)
    both = float(sides.prod())
    return both / float((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - both)
