"""A model that takes a camera's frames, and frames for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.support.host import plan_of
from tests.support.with_files import run_with_files
from toolchain.boards import Board
from toolchain.codegen import generate
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.kernels import cmsis_nn
from toolchain.ops.unary.relu import Relu
from toolchain.preprocess.image import BoundImage, ImageInput, PixelFormat, Resize

UInt8 = NDArray[np.uint8]
Shape = tuple[int, int, int]
SEEN: Mapping[str, tuple[Shape, ImageInput]] = {
    "smaller": ((24, 24, 3), ImageInput(40, 30)),
    "grey": ((20, 33, 1), ImageInput(37, 51, PixelFormat.RGB565BE, crop=False)),
    "of grey": ((9, 17, 3), ImageInput(64, 48, PixelFormat.GREY8)),
    "larger": ((40, 30, 3), ImageInput(20, 15, PixelFormat.BGR888, crop=False)),
    "nearest": ((51, 49, 1), ImageInput(50, 50, PixelFormat.RGB565LE, Resize.NEAREST, False)),
    "the same": ((16, 16, 3), ImageInput(16, 16)),
    "one pixel": ((1, 1, 1), ImageInput(21, 19, mean=(127.5,), std=(127.5,))),
    "scaled": ((12, 12, 3), ImageInput(31, 29, mean=(124, 117, 104), std=(58, 57, 57.5))),
}


def seeing(shape: Shape) -> Graph:
    """max(x, 0) of an image."""
    scale = Quantisation((1 / 127,), (-5,))
    tensors = [Tensor(name, (1, *shape), DType.INT8, scale) for name in "xy"]
    return Graph.build("seeing", tensors, [Op("relu", "relu", ("x",), ("y",), Relu())], "x", "y")


def frames(bound: BoundImage) -> list[UInt8]:
    """Noise, black, white, and a ramp."""
    size = bound.frame_bytes
    noise = np.random.default_rng(size).integers(0, 256, size).astype(np.uint8)
    ramp = (np.arange(size) * 255 // max(size - 1, 1)).astype(np.uint8)
    return [noise, np.zeros_like(noise), np.full_like(noise, 255), ramp]


def check_seen(board: Board, case: str, folder: Path) -> None:
    """The input that the C writes is NumPy's, for every frame."""
    shape, image = SEEN[case]
    graph = seeing(shape)
    plan = plan_of(graph, board.core)
    sources = generate(plan, board.core, cmsis_nn.find(), name="net", preprocess=image)
    bound = image.bound(graph.tensors["x"])
    (folder / "frames.bin").write_bytes(b"".join(frame.tobytes() for frame in frames(bound)))
    run_with_files(board, sources, "seen.c", folder)
    want = np.concatenate([bound.input_of(frame) for frame in frames(bound)])
    inputs = np.fromfile(folder / "inputs.bin", dtype=np.int8).reshape(want.shape)
    np.testing.assert_array_equal(inputs, want)
    rows = np.fromfile(folder / "rows.bin", dtype=np.int8).reshape(want.shape)
    np.testing.assert_array_equal(rows, want[:, ::-1])
