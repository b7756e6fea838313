"""SSD: a list of boxes relative to anchors, and a list of scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolchain.decode.common import Choosing
from toolchain.decode.layout import Bound, MadeHead, Output, listed
from toolchain.errors import InputError
from toolchain.files.arrays import read_array
from toolchain.files.tables import TABLE_SUFFIXES, read_table
from toolchain.ops.detection.heads import BoxCoding, Scoring, Suppression

Float32 = NDArray[np.float32]
_SIDES = 4
_SPEC = "[1, boxes, 4] encoded boxes and [1, boxes, classes] scores"


class Scores(StrEnum):
    """The function that is still to be applied to the model's scores."""

    NONE = "none"
    SIGMOID = "sigmoid"
    SOFTMAX = "softmax"


SCORINGS = {
    Scores.NONE: Scoring.PLAIN,
    Scores.SIGMOID: Scoring.LOGISTIC,
    Scores.SOFTMAX: Scoring.SOFTMAX,
}


class Order(StrEnum):
    """The order of a box's four numbers: centre, then size."""

    YXHW = "yxhw"
    XYWH = "xywh"


@dataclass(frozen=True)
class Grid:
    """Anchors as TensorFlow's Object Detection API makes them (`create_ssd_anchors`).

    feature_maps   rows and columns of each, from the finest.
    min_scale, max_scale  of the first and the last one; those between lie evenly between.
    aspect_ratios  width to height.
    between        aspect ratio of one anchor more, of a scale between this feature map's and the
                   next one's; 0 for none.
    reduce_lowest  three anchors in the first feature map: scale 0.1, and aspect ratios 2 and 0.5.
    """

    feature_maps: tuple[tuple[int, int], ...]
    min_scale: float = 0.2
    max_scale: float = 0.95
    aspect_ratios: tuple[float, ...] = (1.0, 2.0, 0.5, 3.0, 0.3333)
    between: float = 1.0
    reduce_lowest: bool = True

    def __post_init__(self) -> None:
        """Check the numbers. Raises InputError for an impossible one."""
        sizes = [size for pair in self.feature_maps for size in pair]
        if not sizes or not all(1 <= size <= 1024 for size in sizes):
            raise InputError("--decode ssd: grid.feature_maps are pairs of rows and columns")
        if min(self.min_scale, self.max_scale, *self.aspect_ratios) <= 0 or self.between < 0:
            raise InputError("--decode ssd: scales and aspect ratios of grid are above 0")

    def anchors(self) -> Float32:
        """Anchors [n][4]: centre y, x, height, width, as shares of the image."""
        boxes = []
        for layer, (rows, columns) in enumerate(self.feature_maps):
            shapes = self._shapes(layer)
            y, x = np.meshgrid(
                (np.arange(rows) + 0.5) / rows, (np.arange(columns) + 0.5) / columns, indexing="ij"
            )
            for row, column in zip(y.reshape(-1), x.reshape(-1), strict=True):
                boxes += [
                    (row, column, scale / math.sqrt(ratio), scale * math.sqrt(ratio))
                    for scale, ratio in shapes
                ]
        return np.array(boxes, np.float32)

    def _shapes(self, layer: int) -> list[tuple[float, float]]:
        """Scale and aspect ratio of the anchors of a cell."""
        scale, following = self._scale(layer), self._scale(layer + 1)
        if layer == 0 and self.reduce_lowest:
            return [(0.1, 1.0), (scale, 2.0), (scale, 0.5)]
        shapes = [(scale, ratio) for ratio in self.aspect_ratios]
        if self.between:
            shapes.append((math.sqrt(scale * following), self.between))
        return shapes

    def _scale(self, layer: int) -> float:
        layers = len(self.feature_maps)
        if layer >= layers:
            return 1.0
        span = self.max_scale - self.min_scale
        return self.min_scale + (span * layer / (layers - 1) if layers > 1 else 0.0)


@dataclass(frozen=True)
class Ssd(Choosing):
    """Parameters of `--decode ssd`, beside thresholds.

    anchors     file of them, .npy or .csv: [boxes][4], in the order of the encoded boxes, as
                shares of the image. Or `grid` computes them, or they are a constant output of the
                model, `anchors_output`.
    scales      by which the encoded y, x, height and width are divided.
    order       of a box's numbers, in the model and in the file.
    scores      what is left to do for the scores.
    background  the first score is that of the background.
    boxes_output, scores_output  their names, where shapes do not tell.
    """

    score_threshold: float = 0.3
    iou_threshold: float = 0.6
    suppression: Suppression = Suppression.EACH_CLASS
    anchors: str = ""
    grid: Grid | None = None
    anchors_output: str = ""
    scales: tuple[float, float, float, float] = (10.0, 10.0, 5.0, 5.0)
    order: Order = Order.YXHW
    scores: Scores = Scores.NONE
    background: bool = True
    boxes_output: str = ""
    scores_output: str = ""

    def __post_init__(self) -> None:
        """Check the parameters. Raises InputError naming the wrong one."""
        super().__post_init__()
        if bool(self.anchors) + bool(self.anchors_output) + (self.grid is not None) != 1:
            raise InputError(
                "--decode ssd: it needs anchors, the boxes that the encoded ones are relative to: "
                "--decode ssd:anchors=FILE (.npy or .csv), a table [grid] in a TOML file, or "
                "anchors_output=NAME if they are an output of the model; one of these"
            )
        if not all(self.scales):
            raise InputError("--decode ssd: scales are not 0")

    def bound(self, outputs: tuple[Output, ...], image: tuple[int, int] | None) -> Bound:
        """Bind the parameters to a model's outputs. Raises InputError where these are no SSD's."""
        anchors = self._anchors(outputs)
        boxes, scores = self._ends(tuple(o for o in outputs if o.name != self.anchors_output))
        places, coordinates = listed(boxes, _SIDES, "ssd", _SPEC)
        score_places, channels = listed(scores, None, "ssd", _SPEC, places.size)
        if score_places.size != places.size:
            raise InputError(
                f"--decode ssd: {boxes} has {places.size:,} boxes, {scores} scores of "
                f"{score_places.size:,}; expected are {_SPEC}"
            )
        if len(anchors) != places.size:
            raise InputError(
                f"--decode ssd: there are {len(anchors):,} anchors, and {places.size:,} boxes in "
                f"{boxes}"
            )
        background = int(self.background)
        classes = channels.size - background
        if classes < 1:
            raise InputError(f"--decode ssd: {scores} has no class; expected are {_SPEC}")
        scale = self.scales
        if self.order is Order.XYWH:
            anchors, scale = anchors[:, [1, 0, 3, 2]], (scale[1], scale[0], scale[3], scale[2])
        head = MadeHead(
            boxes,
            scores,
            places.size,
            places.size,
            1,
            boxes.view(0, places, None, coordinates),
            scores.view(0, score_places, None, channels),
            np.ascontiguousarray(anchors),
        )
        return Bound(
            (head,),
            BoxCoding.OFFSETS,
            classes,
            SCORINGS[self.scores],
            background=background,
            x_first=self.order is Order.XYWH,
            scales=scale,
        )

    def _anchors(self, outputs: tuple[Output, ...]) -> Float32:
        """Anchors [boxes][4], in the order of the encoded boxes."""
        if self.grid is not None:
            made = self.grid.anchors()
            return made if self.order is Order.YXHW else made[:, [1, 0, 3, 2]]
        if self.anchors_output:
            output = next((o for o in outputs if o.name == self.anchors_output), None)
            if output is None or output.end.tensor.constant is None:
                listed = ", ".join(map(str, outputs))
                raise InputError(
                    f"--decode ssd: {self.anchors_output!r} is no constant output; there are "
                    f"{listed}"
                )
            return _checked(output.end.to_model(output.end.tensor.constant), str(output))
        file = Path(self.anchors)
        table = file.suffix in TABLE_SUFFIXES
        return _checked(read_table(file) if table else read_array(file), str(file))

    def _ends(self, outputs: tuple[Output, ...]) -> tuple[Output, Output]:
        """The outputs of boxes and of scores."""
        named = {output.name: output for output in outputs}
        for name in filter(None, (self.boxes_output, self.scores_output)):
            if name not in named:
                raise InputError(
                    f"--decode ssd: there is no output {name!r}, only {', '.join(named)}"
                )
        rest = [o for o in outputs if o.name not in (self.boxes_output, self.scores_output)]
        of_four = [o for o in rest if o.sizes[-1:] == (_SIDES,)]
        of_four = of_four or [o for o in rest if _SIDES in o.sizes]
        boxes = named[self.boxes_output] if self.boxes_output else _only(of_four)
        others = [o for o in rest if o is not boxes]
        scores = named[self.scores_output] if self.scores_output else _only(others)
        if boxes is None or scores is None:
            raise InputError(
                f"--decode ssd: expected are two outputs, {_SPEC}, and the model has "
                f"{', '.join(map(str, outputs))}; name them: boxes_output=NAME,scores_output=NAME"
            )
        return boxes, scores


def _checked(given: NDArray[np.generic], where: str) -> Float32:
    """Anchors that a user or a model gives. Raises InputError for what are none."""
    one = given.ndim == 3 and given.shape[0] == 1
    array = given.reshape(given.shape[1:]) if one else given
    if array.ndim != 2 or array.shape[1] != _SIDES or array.dtype.kind not in "fiu":
        raise InputError(
            f"--decode ssd: {where} is {list(array.shape)}; expected are anchors [boxes, 4]: "
            "centre and size"
        )
    anchors = array.astype(np.float32)
    if not np.isfinite(anchors).all() or (anchors[:, 2:] < 0).any():
        raise InputError(f"--decode ssd: {where} has an anchor of a size below 0, or no number")
    return anchors


def _only(outputs: list[Output]) -> Output | None:
    return outputs[0] if len(outputs) == 1 else None


def beside(ssd: Ssd, folder: Path) -> Ssd:
    """The parameters, with the path of a file of anchors taken from the folder of the TOML file
    that names it."""
    return replace(ssd, anchors=str(folder / ssd.anchors)) if ssd.anchors else ssd
