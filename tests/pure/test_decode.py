"""`--decode`: what it says, where the heads lie, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from toolchain.decode.append import with_boxes
from toolchain.decode.option import decoding
from toolchain.decode.ssd import Grid, Ssd
from toolchain.decode.yolo import Version, Yolo
from toolchain.errors import InputError
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.detection.decode_boxes import DecodeBoxes
from toolchain.ops.detection.heads import BoxCoding, Scoring, Suppression

_Q = Quantisation((1 / 256,), (-128,))


def model(*shapes: tuple[int, ...], dtype: DType = DType.INT8, scale: float = 1 / 256) -> Graph:
    """A network of one operator for each output, whose image is 64 rows and 96 columns."""
    q = None
    if dtype is not DType.FLOAT32:
        q = Quantisation((scale,), (0 if dtype is DType.INT16 else -128,))
    tensors = [Tensor("image", (1, 64, 96, 3), DType.INT8, _Q)]
    ops = []
    for number, shape in enumerate(shapes):
        flat = (1, int(np.prod(shape)))
        tensors.append(Tensor(f"x{number}", flat, dtype, q))
        tensors.append(Tensor(f"y{number}", shape, dtype, q))
        ends = (f"x{number}",), (f"y{number}",)
        ops.append(Op("reshape", f"op{number}", *ends, Attributes()))
    inputs = ["image", *(f"x{number}" for number in range(len(shapes)))]
    return Graph.build("m", tensors, ops, inputs, [f"y{n}" for n in range(len(shapes))])


def attributes(graph: Graph, text: str) -> DecodeBoxes:
    grown = with_boxes(graph, (), decoding(text))
    assert grown.outputs[: len(graph.outputs)] == graph.outputs
    found = grown.ops[-1].attributes
    assert isinstance(found, DecodeBoxes)
    return found


def test_the_text_gives_values() -> None:
    found = decoding("ssd:anchors=a.npy,scores=softmax,background=off", 0.5, None, 7)
    assert found.text.endswith(",background=off,score_threshold=0.5,max_detections=7")
    kind = found.kind
    assert isinstance(kind, Ssd)
    assert (kind.anchors, kind.background, kind.score_threshold) == ("a.npy", False, 0.5)
    assert (kind.max_detections, kind.iou_threshold) == (7, 0.6)
    assert decoding(found.text).kind == kind


def test_a_file_gives_lists_and_names_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "ssd.toml").write_text('anchors = "a.csv"\nscales = [1, 2, 3, 4]\n')
    kind = decoding(f"ssd:{tmp_path / 'ssd.toml'}").kind
    assert isinstance(kind, Ssd)
    assert (Path(kind.anchors), kind.scales) == (tmp_path / "a.csv", (1, 2, 3, 4))
    (tmp_path / "y.toml").write_text('version = "v3"\nanchors = [[1, 2], [3, 4]]\n')
    yolo = decoding(f"yolo:{tmp_path / 'y.toml'},classes=2").kind
    assert isinstance(yolo, Yolo)
    assert (yolo.version, yolo.anchors, yolo.classes) == (Version.V3, ((1, 2), (3, 4)), 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fcos", "begins with ssd or yolo"),
        ("ssd", "it needs anchors"),
        ("ssd:anchors=a.npy,anchors_output=a", "one of these"),
        ("ssd:anchors=a.npy,colour=1", "'colour' is unknown; there are: anchors, "),
        ("ssd:anchors=a.npy,anchors=b.npy", "anchors is given twice"),
        ("ssd:anchors=a.npy,scores=tanh", "not one of 'none', 'sigmoid', 'softmax'"),
        ("ssd:anchors=a.npy,background=1", "is not on or off"),
        ("ssd:anchors=a.npy,scales=1", "scales is a list or a table"),
        ("ssd:missing.toml", "missing.toml"),
        ("yolo:version=v9", "not one of 'v3'"),
        ("yolo:iou_threshold=0", "iou_threshold=0.0 is not above 0"),
        ("yolo:score_threshold=2", "score_threshold=2.0 is not within 0..1"),
        ("yolo:max_detections=many", "is not a whole number"),
        ("yolo:max_detections=0", "max_detections=0 is not within"),
        ("yolo:anchors", "neither a .toml file nor a parameter"),
    ],
)
def test_errors_of_the_text(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        decoding(text)


@pytest.mark.parametrize(
    ("text", "graph", "said"),
    [
        ("yolo", model((1, 4, 30)), r"\[1, 4 \+ classes, boxes\]"),
        ("yolo:version=v3", model((1, 6, 30)), "v3 is two or three grids"),
        ("ssd:anchors_output=y1", model((1, 30, 4), (30, 4)), "'y1' is no constant output"),
        ("yolo", model((1, 9, 9)), "two equal sides; say classes=NUMBER"),
        ("yolo", model((1, 8, 8, 21)), "is no list"),
        ("yolo", model((1, 6, 30), (1, 6, 30)), "v8 is one output"),
        ("yolo", model((1, 6, 30), dtype=DType.INT16), "holds int16; heads are int8 or float32"),
        ("yolo:outputs=nose", model((1, 6, 30)), "no output 'nose', only y0"),
        ("yolo:classes=5", model((1, 6, 30)), "is no list"),
        ("ssd:ANCHORS", model((1, 30, 4), (1, 30, 4)), "boxes_output=NAME"),
        ("ssd:ANCHORS", model((1, 30, 4)), "expected are two outputs"),
        ("ssd:ANCHORS", model((1, 31, 4), (1, 31, 3)), "there are 30 anchors, and 31 boxes"),
        ("ssd:ANCHORS", model((1, 30, 4), (1, 31, 3)), "has 30 boxes, .* scores of 31"),
        ("ssd:ANCHORS", model((1, 30, 4), (1, 30, 1)), "has no class"),
    ],
)
def test_heads_of_other_shapes_are_refused(
    tmp_path: Path, text: str, graph: Graph, said: str
) -> None:
    np.save(tmp_path / "a.npy", np.ones((30, 4), np.float32))
    asked = decoding(text.replace("ANCHORS", f"anchors={tmp_path / 'a.npy'}"))
    with pytest.raises(InputError, match=said):
        with_boxes(graph, (), asked)


def test_grids_of_other_shapes_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "y.toml"
    file.write_text("anchors = [[1, 2, 3, 4, 5, 6]]\n")
    for graph, said in (
        (model((1, 8, 12, 20)), "is no grid of 3 anchors for an image of 64 rows and 96 columns"),
        (model((1, 8, 8, 21)), "is no grid of 3 anchors"),
        (model((1, 8, 12, 21), (1, 4, 6, 21)), "anchors of 1 heads, and the model has"),
    ):
        with pytest.raises(InputError, match=said):
            with_boxes(graph, (), decoding(f"yolo:{file}"))


def test_what_the_shapes_tell(tmp_path: Path) -> None:
    v8 = attributes(model((1, 7, 126)), "yolo")
    assert (v8.classes, v8.places, v8.objectness, v8.scales) == (3, 126, False, (1, 1, 1, 1))
    assert (v8.coding, v8.scoring) == (BoxCoding.CENTRES, Scoring.PLAIN)
    assert v8.suppression is Suppression.BEST_CLASS
    pixels = attributes(model((1, 126, 7), dtype=DType.FLOAT32), "yolo:version=v5")
    assert (pixels.classes, pixels.objectness) == (2, True)
    assert pixels.scales == (64, 96, 64, 96)
    assert attributes(model((1, 7, 126), scale=0.5), "yolo").scales == (64, 96, 64, 96)
    assert attributes(model((1, 9, 9)), "yolo:classes=5").classes == 5
    file = tmp_path / "y.toml"
    file.write_text("anchors = [[48, 32, 12, 8], [96, 64, 24, 16]]\n")
    grids = attributes(model((1, 4, 6, 14), (1, 8, 12, 14)), f"yolo:{file}")
    assert [(head.boxes, head.cells, head.columns) for head in grids.heads] == [
        (0, 96, 12),
        (2, 24, 6),
    ]
    assert (grids.classes, grids.coding, grids.candidates) == (2, BoxCoding.SQUARES, 240)


def test_anchors_that_are_known(tmp_path: Path) -> None:
    """Of COCO, for a version that is given; and of an output that folds to a constant."""
    graph = with_boxes(model((1, 4, 6, 21), (1, 8, 12, 21)), (), decoding("yolo:version=v3"))
    fine = graph.tensors["detection_anchors0"].constant
    np.testing.assert_allclose(fine, np.array([[14, 10], [27, 23], [58, 37]]) / [64, 96], 1e-6)
    plain = model((1, 30, 4), (1, 30, 3))
    values = np.random.default_rng(0).random((1, 30, 4)).astype(np.float32)
    anchors = Tensor("anchors", values.shape, DType.FLOAT32, None, values)
    tensors = [*plain.tensors.values(), anchors]
    given = Graph.build("m", tensors, plain.ops, plain.inputs, ("anchors", *plain.outputs))
    graph = with_boxes(given, (), decoding("ssd:anchors_output=anchors"))
    np.testing.assert_array_equal(graph.tensors["detection_anchors0"].constant, values[0])


def test_anchors_of_the_object_detection_api() -> None:
    """MobileNet's: 3 in each cell of the finest map, 6 in the others."""
    grid = Grid(((19, 19), (10, 10), (5, 5), (3, 3), (2, 2), (1, 1)))
    anchors = grid.anchors()
    assert anchors.shape == (1917, 4)
    half, root = 0.5 / 19, 2**0.5
    first = [
        [half, half, 0.1, 0.1],
        [half, half, 0.2 / root, 0.2 * root],
        [half, half, 0.2 * root, 0.2 / root],
    ]
    np.testing.assert_allclose(anchors[:3], first, rtol=1e-6)
    np.testing.assert_allclose(anchors[3, :2], [half, 3 * half], rtol=1e-6)
    np.testing.assert_allclose(anchors[1083 + 5, 2:], (0.35 * 0.5) ** 0.5, rtol=1e-6)
    np.testing.assert_allclose(anchors[-1], [0.5, 0.5, 0.95**0.5, 0.95**0.5], rtol=1e-6)
