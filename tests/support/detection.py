"""A detector as TensorFlow's Object Detection API exports it: two heads, then post-processing.

Of int8, whose heads are dequantised; or of legacy uint8, which the post-processing reads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tests.support.legacy import raised
from tests.support.tflite_writer import tflite_bytes
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.detection.detection_postprocess import DetectionPostprocess
from toolchain.ops.movement.reshape import Reshape

_BOXES = 36


def heads() -> Graph:
    """Box encodings and class scores of 36 anchors."""
    rng = np.random.default_rng(4)
    q = Quantisation((0.05,), (3,))
    tensors = [Tensor("image", (1, 6, 6, 3), DType.INT8, q)]
    ops = []
    for name, depth in (("boxes", 4), ("classes", 5)):
        weights = rng.integers(-127, 128, (depth, 1, 1, 3)).astype(np.int8)
        bias = rng.integers(-99, 99, depth).astype(np.int32)
        tensors += [
            Tensor(f"{name}_w", weights.shape, DType.INT8, Quantisation((0.01,), (0,)), weights),
            Tensor(f"{name}_b", (depth,), DType.INT32, Quantisation((0.0005,), (0,)), bias),
            Tensor(f"{name}_map", (1, 6, 6, depth), DType.INT8, q),
            Tensor(f"{name}_list", (1, _BOXES, depth), DType.INT8, q),
        ]
        inputs = ("image", f"{name}_w", f"{name}_b")
        ops.append(Op("conv2d", f"{name}_conv", inputs, (f"{name}_map",), Conv2D()))
        attributes = Reshape((1, _BOXES, depth))
        rows = (f"{name}_map",), (f"{name}_list",)
        ops.append(Op("reshape", f"{name}_reshape", *rows, attributes))
    scores = Tensor("scores", (1, _BOXES, 5), DType.INT8, Quantisation((1 / 256,), (-128,)))
    ops.append(Op("logistic", "logistic", ("classes_list",), ("scores",), Attributes()))
    return Graph.build("heads", [*tensors, scores], ops, ["image"], ["boxes_list", "scores"])


def anchors_of(size: float) -> NDArray[np.float32]:
    """Of `heads`: on a grid of 6x6, the largest of this size."""
    rng = np.random.default_rng(7)
    middle = np.stack(np.meshgrid(*(np.arange(6) / 6 + 1 / 12,) * 2, indexing="ij"), -1)
    sizes = size * rng.uniform(0.2, 1, (_BOXES, 2))
    return np.concatenate([middle.reshape(-1, 2), sizes], axis=1).astype(np.float32)


def detector(
    *, legacy: bool = False, regular: bool = False, size: float = 0.6, each_class: int = 5
) -> bytes:
    """`heads` with TFLite_Detection_PostProcess behind them, and a RESHAPE of its classes.

    `size`: of the largest anchor. `each_class`: boxes of a class at most, if it is `regular`.
    """
    graph, anchors = heads(), anchors_of(size)
    most = each_class if regular else 0
    attributes = DetectionPostprocess(10, 1, 4, most, 0.3, 0.4, (9.0, 9.0, 5.0, 5.0))
    names = ("boxes", "labels", "found_scores", "count")
    shapes = ((1, 10, 4), (1, 10), (1, 10), (1,))
    tensors = [
        *(raised(t) if legacy else t for t in graph.tensors.values()),
        Tensor("anchors", anchors.shape, DType.FLOAT32, None, anchors),
        *(Tensor(name, shape, DType.FLOAT32) for name, shape in zip(names, shapes, strict=True)),
        Tensor("flat", (10,), DType.FLOAT32),
    ]
    ops = list(graph.ops)
    reads = ["boxes_list", "scores"]
    if legacy:
        low = Quantisation((1 / 255,), (0,))
        tensors[-6] = Tensor(
            "anchors",
            anchors.shape,
            DType.UINT8,
            low,
            np.clip(anchors * 255, 0, 255).astype(np.uint8),
        )
    else:
        for name in reads:
            real = f"{name}_real"
            tensors.append(Tensor(real, graph.tensors[name].shape, DType.FLOAT32))
            ops.append(Op("dequantize", real, (name,), (real,), Attributes()))
        reads = [f"{name}_real" for name in reads]
    ops.append(Op("detection_postprocess", "detect", (*reads, "anchors"), names, attributes))
    ops.append(Op("reshape", "flatten", ("labels",), ("flat",), Reshape((10,))))
    ends = ("boxes", "flat", "found_scores", "count")
    return tflite_bytes(Graph.build("detector", tensors, ops, graph.inputs, ends))
