"""Random image networks: convolutions of all sorts, pools, skip connections, resizes, concats."""

from __future__ import annotations

import numpy as np

from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.movement.concat import Concat
from toolchain.ops.movement.pad import Pad
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.resize.common import Resize
from toolchain.ops.unary.leaky_relu import LeakyRelu
from toolchain.ops.window import Padding, Window, same_padding

QUANTISATION = Quantisation((0.125,), (3,))
MOST_ELEMENTS = 3000
KINDS = "conv conv pointwise pointwise depthwise depthwise add pool leaky_relu concat resize pad"


class _Builder:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.tensors: dict[str, Tensor] = {}
        self.ops: list[Op] = []
        self.read: set[str] = set()

    def tensor(self, shape: tuple[int, ...]) -> Tensor:
        made = Tensor(f"t{len(self.tensors)}", shape, DType.INT8, QUANTISATION)
        self.tensors[made.name] = made
        return made

    def weights(self, shape: tuple[int, ...], taps: int) -> Tensor:
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        scale = float(np.float32(1 / (60 * np.sqrt(taps))))
        name = f"w{len(self.tensors)}"
        self.tensors[name] = Tensor(name, shape, DType.INT8, Quantisation((scale,), (0,)), data)
        return self.tensors[name]

    def add(
        self, kind: str, attributes: Attributes, inputs: list[Tensor], shape: tuple[int, ...]
    ) -> Tensor:
        names = tuple(t.name for t in inputs)
        self.read.update(names)
        output = self.tensor(shape)
        self.ops.append(Op(kind, f"op{len(self.ops)}", names, (output.name,), attributes))
        return output

    def activations(self) -> list[Tensor]:
        return [t for t in self.tensors.values() if not t.is_constant]

    def pick(self) -> Tensor:
        """The latest tensor most often."""
        made = self.activations()
        return made[-int(min(self.rng.geometric(0.7), len(made)))]

    def window(self, size: tuple[int, int]) -> Window | None:
        rng = self.rng
        kernel = (
            (3, 3) if rng.random() < 0.5 else (int(rng.integers(1, 6)), int(rng.integers(1, 6)))
        )
        stride = (
            (1, 1) if rng.random() < 0.6 else (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
        )
        dilation = (2, 2) if stride == (1, 1) and rng.random() < 0.2 else (1, 1)
        padding = same_padding(size, kernel, stride, dilation)
        if rng.random() < 0.4:
            padding = Padding(*(int(p) for p in rng.integers(0, 3, 4)))
        window = Window(kernel, stride, dilation, padding)
        try:
            window.output_size(*size)
        except ValueError:
            return None
        return window

    def step(self) -> None:
        kind, x = str(self.rng.choice(KINDS.split())), self.pick()
        if kind in ("conv", "pointwise", "depthwise"):
            self.convolution(kind, x)
        elif kind == "pool":
            self.pool(x)
        elif kind == "leaky_relu":
            self.add("leaky_relu", LeakyRelu(-0.75), [x], x.shape)
        elif kind == "add":
            alike = [t for t in self.activations() if t.shape == x.shape]
            other = alike[int(self.rng.integers(len(alike)))]
            self.add("add", Sum(Activation.NONE), [x, other], x.shape)
        elif kind == "concat":
            fits = [t for t in self.activations() if t.shape[:3] == x.shape[:3]]
            other = fits[int(self.rng.integers(len(fits)))]
            shape = (*x.shape[:3], x.shape[3] + other.shape[3])
            if np.prod(shape) <= MOST_ELEMENTS:
                self.add("concat", Concat(3), [x, other], shape)
        elif kind == "resize":
            shape = (1, 2 * x.shape[1], 2 * x.shape[2], x.shape[3])
            if np.prod(shape) <= MOST_ELEMENTS:
                name = str(self.rng.choice(["resize_nearest", "resize_bilinear"]))
                self.add(name, Resize(shape[1], shape[2]), [x], shape)
        elif kind == "pad":
            ends = ((0, 0), *((int(a), int(b)) for a, b in self.rng.integers(0, 3, (2, 2))), (0, 0))
            shape = tuple(d + a + b for d, (a, b) in zip(x.shape, ends, strict=True))
            if np.prod(shape) <= MOST_ELEMENTS:
                self.add("pad", Pad(ends), [x], shape)

    def convolution(self, kind: str, x: Tensor) -> None:
        rng, size, depth = self.rng, (x.shape[1], x.shape[2]), x.shape[3]
        window = Window((1, 1)) if kind == "pointwise" else self.window(size)
        if window is None:
            return
        channels = int(rng.choice([1, 3, 4, 8, 12, 20]))
        if kind == "depthwise":
            channels = depth * int(rng.choice([1, 1, 1, 2]))
        shape = (1, *window.output_size(*size), channels)
        if np.prod(shape) > MOST_ELEMENTS:
            return
        attributes = (window.stride, window.dilation, window.padding)
        taps = window.kernel[0] * window.kernel[1]
        if kind == "depthwise":
            weights = self.weights((1, *window.kernel, channels), taps)
            self.add("depthwise_conv2d", DepthwiseConv2D(*attributes), [x, weights], shape)
        else:
            weights = self.weights((channels, *window.kernel, depth), taps * depth)
            self.add("conv2d", Conv2D(*attributes), [x, weights], shape)

    def pool(self, x: Tensor) -> None:
        size = (x.shape[1], x.shape[2])
        if min(size) < 2:
            return
        kernel = (int(self.rng.integers(1, 3)), 2)
        window = Window(kernel, (int(self.rng.integers(1, 3)), 2))
        shape = (1, *window.output_size(*size), x.shape[3])
        kind = str(self.rng.choice(["max_pool2d", "average_pool2d"]))
        self.add(kind, Pool2D(*kernel, *window.stride), [x], shape)

    def classifier(self) -> None:
        x = self.pick()
        units = int(self.rng.integers(1, 12))
        weights = self.weights((units, x.elements), x.elements)
        self.add("fully_connected", FullyConnected(), [x, weights], (1, units))


def random_network(rng: np.random.Generator) -> Graph:
    """One input, a dozen operators; outputs are all that nothing reads."""
    builder = _Builder(rng)
    size = (int(rng.integers(3, 15)), int(rng.integers(3, 15)))
    image = builder.tensor((1, *size, int(rng.choice([1, 3, 4, 8]))))
    for _ in range(int(rng.integers(4, 14))):
        builder.step()
    builder.classifier()
    outputs = [t.name for t in builder.activations() if t.name not in builder.read]
    return Graph.build("random", builder.tensors.values(), builder.ops, [image.name], outputs)
