"""Random networks of images with branches, and random schemes that split a part of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tests.support import grids
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import spec_of
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.convolution.transpose_conv2d import TransposeConv2D
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.depth_blocks import Blocks
from toolchain.ops.movement.pad import Pad
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.resize.common import Resize
from toolchain.ops.unary.leaky_relu import LeakyRelu
from toolchain.ops.window import Padding, Window
from toolchain.partition import CannotSplitError, Mode, Scheme, split

_Q = Quantisation((0.0625,), (-5,))


class _Network:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.tensors: dict[str, Tensor] = {}
        self.ops: list[Op] = []

    def tensor(self, shape: tuple[int, ...]) -> Tensor:
        made = Tensor(f"t{len(self.tensors)}", shape, DType.INT8, _Q)
        self.tensors[made.name] = made
        return made

    def weights(self, shape: tuple[int, ...], channels: int, axis: int) -> tuple[str, str]:
        scales = tuple(float(np.float32(s)) for s in self.rng.uniform(0.002, 0.02, channels))
        q = Quantisation(scales, (0,) * channels, axis if channels > 1 else None)
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        number = len(self.tensors)
        self.tensors[f"w{number}"] = Tensor(f"w{number}", shape, DType.INT8, q, data)
        bias = self.rng.integers(-3000, 3000, channels).astype(np.int32)
        self.tensors[f"b{number}"] = Tensor(f"b{number}", (channels,), DType.INT32, None, bias)
        return f"w{number}", f"b{number}"

    def add(
        self, kind: str, attributes: Attributes, inputs: tuple[str, ...], shape: tuple[int, ...]
    ) -> Tensor:
        y = self.tensor(shape)
        self.ops.append(Op(kind, f"op{len(self.ops)}", inputs, (y.name,), attributes))
        return y

    def window(self, x: Tensor) -> Window | None:
        rng = self.rng
        kernel = (int(rng.integers(1, 5)), int(rng.integers(1, 4)))
        stride = (int(rng.integers(1, 4)), int(rng.integers(1, 3)))
        dilation = (int(rng.integers(1, 3)), 1) if stride == (1, 1) else (1, 1)
        sides = [int(rng.integers(0, k)) for k in (*kernel, *kernel)]
        window = Window(kernel, stride, dilation, Padding(*sides))
        try:
            window.output_size(*x.shape[1:3])
        except ValueError:
            return None
        return window

    def step(self, x: Tensor) -> Tensor:
        rng = self.rng
        kinds = "conv2d conv2d depthwise_conv2d depthwise_conv2d pool leaky_relu pad add concat end"
        kind = str(rng.choice([*kinds.split(), "other size", "other size"]))
        _, height, width, depth = x.shape
        window = self.window(x)
        if kind == "conv2d" and window is not None:
            channels = int(rng.integers(1, 9))
            out = window.output_size(height, width)
            w = self.weights((channels, *window.kernel, depth), channels, 0)
            walk = Conv2D(window.stride, window.dilation, window.padding)
            return self.add("conv2d", walk, (x.name, *w), (1, *out, channels))
        if kind == "depthwise_conv2d" and window is not None:
            out = window.output_size(height, width)
            w = self.weights((1, *window.kernel, depth), depth, 3)
            walked = DepthwiseConv2D(window.stride, window.dilation, window.padding)
            return self.add("depthwise_conv2d", walked, (x.name, *w), (1, *out, depth))
        if kind == "pool" and height >= 3 and width >= 2:
            step = int(rng.integers(1, 3))
            pool = Pool2D(3, 2, step, 1, Padding(top=1))
            which = str(rng.choice(["max_pool2d", "average_pool2d"]))
            return self.add(which, pool, (x.name,), (1, (height - 2) // step + 1, width - 1, depth))
        if kind == "end":
            return self.end(x)
        if kind == "other size" and height * width <= 150:
            return self.other_size(x)
        if kind == "pad":
            ends = ((0, 0), (1, 1), (0, 1), (0, 0))
            return self.add("pad", Pad(ends, 7), (x.name,), (1, height + 2, width + 1, depth))
        same = [t for t in self.tensors.values() if t.shape == x.shape and not t.is_constant]
        other = same[int(rng.integers(len(same)))]
        if kind == "add":
            attributes = spec_of("add").plain_attributes()
            return self.add("add", attributes, (x.name, other.name), x.shape)
        if kind == "concat" and depth < 16:
            shape = (1, height, width, 2 * depth)
            return self.add("concat", Concat(3), (x.name, other.name), shape)
        return self.add("leaky_relu", LeakyRelu(-0.75), (x.name,), x.shape)

    def other_size(self, x: Tensor) -> Tensor:
        """An operator that enlarges an image or folds it otherwise."""
        rng = self.rng
        _, height, width, depth = x.shape
        kinds = [
            "resize_nearest",
            "resize_bilinear",
            "transpose_conv2d",
            "reshape",
            "depth_to_space",
        ]
        kind = str(rng.choice([*kinds, "space_to_depth"]))
        if kind.startswith("resize"):
            size = (height * int(rng.integers(1, 4)), int(rng.integers(1, 2 * width + 1)))
            if rng.random() < 0.3:
                size = (int(rng.integers(1, 2 * height + 1)), size[1])
            corners = bool(rng.random() < 0.3)
            resize = Resize(*size, corners, not corners and bool(rng.random() < 0.6))
            return self.add(kind, resize, (x.name,), (1, *size, depth))
        if kind == "transpose_conv2d":
            kernel, stride = rng.integers(1, 5, 2).tolist(), rng.integers(1, 4, 2).tolist()
            pad = [int(rng.integers(0, k)) for k in kernel]
            size = tuple(
                max((length - 1) * s + k - 2 * p, 1)
                for length, k, s, p in zip((height, width), kernel, stride, pad, strict=True)
            )
            w = self.weights((3, *kernel, depth), 3, 0)
            walk = TransposeConv2D(size, tuple(stride), Padding(top=pad[0], left=pad[1]))
            return self.add(kind, walk, (x.name, *w), (1, *size, 3))
        if kind == "depth_to_space" and depth % 4 == 0:
            shape = (1, 2 * height, 2 * width, depth // 4)
            return self.add(kind, Blocks(2), (x.name,), shape)
        if kind == "space_to_depth" and height % 2 == 0 and width % 2 == 0:
            shape = (1, height // 2, width // 2, 4 * depth)
            return self.add(kind, Blocks(2), (x.name,), shape)
        shapes = [(1, height * width, 1, depth), (1, height, 1, width * depth)]
        if height % 2 == 0:
            shapes.append((1, height // 2, 2 * width, depth))
        if width % 2 == 0:
            shapes.append((1, 2 * height, width // 2, depth))
        shape = shapes[int(rng.integers(len(shapes)))]
        return self.add("reshape", Reshape(shape), (x.name,), shape)

    def end(self, x: Tensor) -> Tensor:
        """An operator that sums over most of an image."""
        rng = self.rng
        _, height, width, depth = x.shape
        kind = str(rng.choice(["fully_connected", "mean", "sum", "average_pool2d", "conv2d"]))
        if kind == "fully_connected":
            weights = self.weights((3, height * width * depth), 3, 0)
            return self.add(kind, FullyConnected(), (x.name, *weights), (1, 3))
        if kind == "average_pool2d":
            pool = Pool2D(height, width, 1, 1)
            return self.add(kind, pool, (x.name,), (1, 1, 1, depth))
        if kind == "conv2d":
            w = self.weights((3, height, width, depth), 3, 0)
            return self.add(kind, Conv2D(), (x.name, *w), (1, 1, 1, 3))
        return self.add(kind, Reduce((1, 2)), (x.name,), (1, depth))


def random_network(rng: np.random.Generator) -> Graph:
    """Operators on images, with branches; all that nothing reads is an output."""
    network = _Network(rng)
    x = network.tensor((1, int(rng.integers(4, 20)), int(rng.integers(2, 9)), 4))
    for _ in range(int(rng.integers(2, 9))):
        known = [t for t in network.tensors.values() if not t.is_constant and len(t.shape) == 4]
        base = known[-1] if rng.random() < 0.8 else known[int(rng.integers(len(known)))]
        network.step(base)
    images = [t for t in network.tensors.values() if len(t.shape) == 4 and not t.is_constant]
    if rng.random() < 0.3:
        network.end(images[-1])
    read = {name for op in network.ops for name in op.inputs}
    outputs = [op.outputs[0] for op in network.ops if op.outputs[0] not in read]
    return Graph.build("network", network.tensors.values(), network.ops, [x.name], outputs)


def inverted_bottleneck(
    rng: np.random.Generator, size: int, channels: int, hidden: int, out: int
) -> Graph:
    """Expansion, 3x3 depthwise and projection of a square image."""
    network = _Network(rng)
    x = network.tensor((1, size, size, channels))
    weights = network.weights((hidden, 1, 1, channels), hidden, 0)
    wide = network.add("conv2d", Conv2D(), (x.name, *weights), (1, size, size, hidden))
    weights = network.weights((1, 3, 3, hidden), hidden, 3)
    walk = DepthwiseConv2D(padding=Padding(1, 1, 1, 1))
    deep = network.add("depthwise_conv2d", walk, (wide.name, *weights), wide.shape)
    weights = network.weights((out, 1, 1, hidden), out, 0)
    y = network.add("conv2d", Conv2D(), (deep.name, *weights), (1, size, size, out))
    return Graph.build("bottleneck", network.tensors.values(), network.ops, [x.name], [y.name])


def in_tiles(graph: Graph, rows: int, columns: int) -> Graph:
    """The only operator of `graph` in blocks of rows, each of those in blocks of columns.

    Raises CannotSplitError where there are fewer of them.
    """
    (op,) = graph.ops
    if rows > 1:
        graph = split(graph, Scheme((op.name,), (op.outputs[0], 1), rows))
    for block in [o for o in graph.ops if o.kind == op.kind]:
        graph = split(graph, Scheme((block.name,), (block.outputs[0], 2), columns))
    return graph


def tiled_convolutions(
    kind: str, wanted: int, rng: np.random.Generator
) -> list[tuple[Graph, Graph]]:
    """Convolutions of the grid, whole and in tiles; `kind` names a function of `grids`."""
    every: list[Graph] = getattr(grids, kind)()
    found = []
    for index in rng.permutation(len(every)):
        graph = every[index]
        try:
            tiled = in_tiles(graph, int(rng.integers(1, 3)), int(rng.integers(2, 4)))
        except CannotSplitError:
            continue
        if graph.output(graph.ops[0]).shape[0] == 1:
            found.append((graph, tiled))
        if len(found) == wanted:
            break
    return found


def random_scheme(graph: Graph, rng: np.random.Generator) -> Scheme:
    """Consecutive operators, any axis of what one makes or reads, any count: valid or not."""
    begin = int(rng.integers(len(graph.ops)))
    end = int(rng.integers(begin, len(graph.ops))) + 1
    op = graph.ops[int(rng.integers(begin, end))]
    seed = op.outputs[0] if rng.random() < 0.5 else op.inputs[0]
    axis = int(rng.integers(1, len(graph.tensors[seed].shape))) if rng.random() < 0.5 else 1
    names = tuple(op.name for op in graph.ops[begin:end])
    mode = (Mode.SLIDING, Mode.SLIDING, Mode.LINES, Mode.TILES, Mode.TILES)[rng.integers(5)]
    slack = int(rng.integers(1, 5)) if rng.random() < 0.4 else 1
    grains = random_grains(names, rng) if mode is Mode.LINES else ()
    count = int(rng.integers(2, 9))
    heights = random_heights(count, np.random.default_rng((begin, end, axis, count)))
    scheme = Scheme(names, (seed, axis), count, mode, slack, grains, heights)
    return replace(scheme, mode=Mode.LEADING) if sum(grains) % 2 else scheme


def random_heights(count: int, rng: np.random.Generator) -> tuple[int, ...]:
    """How much each of so many blocks takes; empty where they are even."""
    return tuple(rng.integers(1, 5, count).tolist()) if rng.random() < 0.4 else ()


def random_grains(names: Sequence[str], rng: np.random.Generator) -> tuple[int, ...]:
    """Indices that each operator computes at a time."""
    return tuple(int(rng.choice((1, 1, 2, 4))) for _ in names)
