"""Chains of inverted bottlenecks: MobileNetV2 and FPNAS."""

from __future__ import annotations

from toolchain.contact.network import Network
from toolchain.ir import Graph
from toolchain.ops.arithmetic.activation import Activation

MOBILENET_V2 = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Sandler et al. (CVPR 2018), table 2: expansion, channels, repeats, stride of the first."""

FPNAS = (
    (24, 4, 2, True, True),
    (24, 6, 1, True, False),
    (40, 8, 2, False, False),
    (40, 6, 1, True, True),
    (40, 8, 1, True, False),
    (80, 6, 2, True, False),
    (80, 8, 1, False, True),
    (80, 8, 1, True, False),
    (80, 8, 1, True, True),
    (112, 6, 1, False, True),
    (112, 6, 1, True, False),
    (112, 6, 1, False, False),
    (192, 4, 2, True, True),
    (192, 8, 1, False, True),
    (192, 4, 1, False, False),
    (320, 6, 1, False, False),
)
"""Cui et al. (ICCV 2019), as its authors' code has it: channels, expansion, stride, whether there
is a shortcut, whether only half the channels pass through the bottleneck."""


def _rounded(channels: float) -> int:
    """To a multiple of 8, never below 90% (the reference implementation's `make_divisible`)."""
    near = max(8, int(channels + 4) // 8 * 8)
    return near + 8 if near < 0.9 * channels else near


def _bottleneck(net: Network, x: str, hidden: int, channels: int, stride: int) -> str:
    """Expand, depthwise, project; `hidden` equal to the input's channels leaves out the first."""
    inner = x if hidden == net.channels(x) else net.conv(x, hidden, relu=Activation.RELU6)
    return net.conv(net.depthwise(inner, 3, stride, Activation.RELU6), channels)


def mobilenet_v2(name: str, width: float = 1.0, size: int = 224, classes: int = 1000) -> Graph:
    net = Network(name, (1, size, size, 3))
    x = net.conv(net.input, _rounded(32 * width), 3, 2, Activation.RELU6)
    for expansion, channels, repeats, first in MOBILENET_V2:
        for stride in [first] + [1] * (repeats - 1):
            hidden, wanted = net.channels(x) * expansion, _rounded(channels * width)
            y = _bottleneck(net, x, hidden, wanted, stride)
            x = net.add(x, y) if stride == 1 and net.channels(x) == wanted else y
    x = net.conv(x, max(1280, _rounded(1280 * width)), relu=Activation.RELU6)
    return net.classifier(x, classes)


def fpnas(name: str, size: int = 224) -> Graph:
    net = Network(name, (1, size, size, 3))
    x = net.conv(net.input, 34, 3, 2, Activation.RELU)
    x = net.conv(net.depthwise(x, 3, 1, Activation.RELU), 24)
    for channels, expansion, stride, shortcut, split in FPNAS:
        depth = net.channels(x)
        half = depth // 2 if split else 0
        taken = net.take(x, half, depth) if split else x
        wanted = channels - half
        inner = net.conv(taken, net.channels(taken) * expansion, relu=Activation.RELU)
        y = net.conv(net.depthwise(inner, 3, stride, Activation.RELU), wanted)
        if shortcut:
            same = stride == 1 and net.channels(taken) == wanted
            y = net.add(y, taken if same else net.conv(taken, wanted, stride=stride))
        if split:
            aside = net.take(x, 0, half)
            if stride != 1:
                aside = net.conv(net.depthwise(aside, 3, stride, Activation.RELU), half)
            y = _shuffled(net, aside, y)
        x = y
    x = net.conv(x, 1280, relu=Activation.RELU)
    return net.classifier(x, 1000)


def _shuffled(net: Network, one: str, other: str) -> str:
    """Each half of the result holds half the channels of each operand."""
    a, b = net.channels(one), net.channels(other)
    parts = [net.take(x, 0, n // 2) for x, n in ((one, a), (other, b))]
    parts += [net.take(x, n // 2, n) for x, n in ((one, a), (other, b))]
    return net.concat(parts)
