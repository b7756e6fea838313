"""One small PyTorch network for each row of `benchmarks/layer_matrix.py`: the layer between others
that have int8 kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional as f

from benchmarks.ecosystem.pytorch_common import INDICES, Function

Shape = tuple[int, ...] | str
Network = tuple[Callable[[], nn.Module], tuple[Shape, ...]]
IMAGE: tuple[Shape, ...] = ((1, 3, 16, 12),)
SOUND: tuple[Shape, ...] = ((1, 5, 24),)
STEPS: tuple[Shape, ...] = ((1, 7, 6),)
ROW: tuple[Shape, ...] = ((1, 20),)
WORDS: tuple[Shape, ...] = ("1x9",)


def _on_image(make: Callable[[], nn.Module], channels: int = 8) -> Network:
    """The layer behind a convolution to 8 channels, before a convolution from `channels`."""

    def network() -> nn.Module:
        return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), make(), nn.Conv2d(channels, 4, 1))

    return network, IMAGE


def _on_row(make: Callable[[], nn.Module]) -> Network:
    return lambda: nn.Sequential(nn.Linear(20, 16), make(), nn.Linear(16, 5)), ROW


def _on_steps(body: Callable[..., object], **parts: Callable[[], nn.Module]) -> Network:
    """A body with the layer `head` from 8 features and the `parts`, over steps of 6 features."""

    def network() -> nn.Module:
        return Function(body, head=nn.Linear(8, 3), **{n: make() for n, make in parts.items()})

    return network, STEPS


def _recurrent(make: Callable[[], nn.Module]) -> Network:
    return _on_steps(lambda m, x: m.head(m.layer(x)[0][:, -1]), layer=make)


def _function(body: Callable[[Tensor], Tensor], channels: int = 8) -> Network:
    return _on_image(lambda: Function(lambda _, x: body(x)), channels)


def _attention(make: Callable[[], nn.Module]) -> Network:
    def body(m: Function, x: Tensor) -> object:
        y = m.front(x)
        return m.head(m.layer(y, y, y, need_weights=False)[0])

    return _on_steps(body, front=lambda: nn.Linear(6, 8), layer=make)


def _dot_products() -> Network:
    def body(m: Function, x: Tensor) -> object:
        q, k, v = (part(x)[:, None] for part in (m.q, m.k, m.v))
        return m.head(f.scaled_dot_product_attention(q, k, v)[:, 0])

    return _on_steps(body, **{name: lambda: nn.Linear(6, 8) for name in "qkv"})


def _squeeze(m: Function, x: Tensor) -> object:
    y = m.front(x)
    return m.last(y * m.gate(y))


def _unrolled(m: Function, x: Tensor) -> object:
    state = (torch.zeros(1, 8), torch.zeros(1, 8))
    for step in range(7):
        state = m.cell(x[:, step], state)
    return m.head(state[0])


NETWORKS: Mapping[str, Network] = MappingProxyType(
    {
        "dense": _on_row(lambda: nn.Linear(16, 16)),
        "bilinear": (
            lambda: Function(
                lambda m, x: m.last(m.layer(m.one(x), m.two(x))),
                one=nn.Linear(20, 6),
                two=nn.Linear(20, 7),
                layer=nn.Bilinear(6, 7, 8),
                last=nn.Linear(8, 3),
            ),
            ROW,
        ),
        "convolution, 1-D": (
            lambda: nn.Sequential(nn.Conv1d(5, 8, 3), nn.ReLU(), nn.Conv1d(8, 4, 5, stride=2)),
            SOUND,
        ),
        "convolution, 2-D": _on_image(lambda: nn.Conv2d(8, 8, 3, stride=2)),
        "convolution, 3-D": (
            lambda: nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.ReLU(), nn.Conv3d(4, 3, 2)),
            ((1, 2, 5, 6, 7),),
        ),
        "convolution, dilated": _on_image(lambda: nn.Conv2d(8, 8, 3, dilation=2)),
        "convolution, depthwise": _on_image(lambda: nn.Conv2d(8, 8, 3, groups=8)),
        "convolution, separable": _on_image(
            lambda: nn.Sequential(nn.Conv2d(8, 8, 3, groups=8, padding=1), nn.Conv2d(8, 8, 1))
        ),
        "convolution, in groups": _on_image(lambda: nn.Conv2d(8, 8, 3, groups=2)),
        "transposed convolution, 1-D": (
            lambda: nn.Sequential(nn.Conv1d(5, 8, 3), nn.ConvTranspose1d(8, 4, 4, stride=2)),
            SOUND,
        ),
        "transposed convolution, 2-D": _on_image(
            lambda: nn.ConvTranspose2d(8, 8, 3, stride=2, padding=1, output_padding=1)
        ),
        "batch normalisation": _on_image(lambda: nn.Sequential(nn.ReLU(), nn.BatchNorm2d(8))),
        "layer normalisation": _on_row(lambda: nn.LayerNorm(16)),
        "group normalisation": _on_image(lambda: nn.GroupNorm(2, 8)),
        "instance normalisation": _on_image(lambda: nn.InstanceNorm2d(8, affine=True)),
        "RMS normalisation": _on_row(lambda: nn.RMSNorm(16)),
        "unit length": _function(lambda x: f.normalize(x, dim=1)),
        "maximum pooling, 1-D": (
            lambda: nn.Sequential(nn.Conv1d(5, 8, 3), nn.MaxPool1d(3, 2), nn.Conv1d(8, 4, 1)),
            SOUND,
        ),
        "maximum pooling, 2-D": _on_image(lambda: nn.MaxPool2d(3, 2, 1)),
        "average pooling, 2-D": _on_image(lambda: nn.AvgPool2d(2)),
        "average pooling, global": _on_image(lambda: nn.AdaptiveAvgPool2d(1)),
        "maximum pooling, global": _on_image(lambda: nn.AdaptiveMaxPool2d(1)),
        "average pooling, adaptive": _on_image(lambda: nn.AdaptiveAvgPool2d((4, 3))),
        "embedding": (
            lambda: nn.Sequential(nn.Embedding(INDICES, 8), nn.Flatten(), nn.Linear(72, 4)),
            WORDS,
        ),
        "recurrent, simple": _recurrent(lambda: nn.RNN(6, 8, batch_first=True)),
        "GRU": _recurrent(lambda: nn.GRU(6, 8, batch_first=True)),
        "GRU, two layers": _recurrent(lambda: nn.GRU(6, 8, 2, batch_first=True)),
        "LSTM": _recurrent(lambda: nn.LSTM(6, 8, batch_first=True)),
        "LSTM, bidirectional": _recurrent(
            lambda: nn.LSTM(6, 4, batch_first=True, bidirectional=True)
        ),
        "LSTM cell, unrolled": _on_steps(_unrolled, cell=lambda: nn.LSTMCell(6, 8)),
        "attention, multi-head": _attention(lambda: nn.MultiheadAttention(8, 2, batch_first=True)),
        "attention, dot products": _dot_products(),
        "transformer's layer": _on_steps(
            lambda m, x: m.head(m.layer(m.front(x))),
            front=lambda: nn.Linear(6, 8),
            layer=lambda: nn.TransformerEncoderLayer(
                8, 2, 16, activation="gelu", batch_first=True, norm_first=True
            ),
        ),
        "squeeze and excitation": (
            lambda: Function(
                _squeeze,
                front=nn.Conv2d(3, 8, 3),
                gate=nn.Sequential(
                    *(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 4, 1), nn.ReLU()),
                    *(nn.Conv2d(4, 8, 1), nn.Sigmoid()),
                ),
                last=nn.Conv2d(8, 4, 1),
            ),
            IMAGE,
        ),
        "ReLU": _on_image(nn.ReLU),
        "ReLU6": _on_image(nn.ReLU6),
        "leaky ReLU": _on_image(lambda: nn.LeakyReLU(0.1)),
        "PReLU": _on_image(lambda: nn.PReLU(8)),
        "ELU": _on_image(nn.ELU),
        "SELU": _on_image(nn.SELU),
        "GELU": _on_image(nn.GELU),
        "GELU by tanh": _on_image(lambda: nn.GELU(approximate="tanh")),
        "SiLU": _on_image(nn.SiLU),
        "hard swish": _on_image(nn.Hardswish),
        "sigmoid": _on_image(nn.Sigmoid),
        "tanh": _on_image(nn.Tanh),
        "softplus": _on_image(nn.Softplus),
        "mish": _on_image(nn.Mish),
        "GLU": _on_image(lambda: nn.GLU(1), 4),
        "softmax": _on_row(lambda: nn.Softmax(-1)),
        "log softmax": _on_row(lambda: nn.LogSoftmax(-1)),
        "up-sampling, nearest": _on_image(lambda: nn.Upsample(scale_factor=2)),
        "up-sampling, bilinear": _on_image(lambda: nn.Upsample(scale_factor=2, mode="bilinear")),
        "depth to space": _on_image(lambda: nn.PixelShuffle(2), 2),
        "padding by zeros": _on_image(lambda: nn.ZeroPad2d((1, 2, 0, 3))),
        "padding by reflection": _on_image(lambda: nn.ReflectionPad2d(2)),
        "cropping": _function(lambda x: x[:, :, 2:-3, 1:-1]),
        "sum and product of branches": _function(lambda x: x * x.sigmoid() + x),
        "concatenation": _function(lambda x: torch.cat([x, x.relu()], 1), 16),
        "permutation and reshaping": _function(
            lambda x: x.permute(0, 2, 3, 1).reshape(1, 12, 16, 8).permute(0, 3, 2, 1)
        ),
        "mean and variance": _function(
            lambda x: x - x.mean((2, 3), keepdim=True) + x.var((2, 3), keepdim=True)
        ),
        "cumulative sum": _function(lambda x: x.cumsum(2)),
        "arg max": (
            lambda: Function(lambda m, x: m.one(x).argmax(-1), one=nn.Linear(20, 7)),
            ROW,
        ),
    }
)
"""By row, what makes a network, and the shapes of its inputs ('1x9': indices)."""
