"""Single operators at their corners, in PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as f

from benchmarks.ecosystem.pytorch_common import Function


def conv_corners() -> nn.Module:
    def body(m: Function, x: Tensor) -> object:
        a = m.leaping(x)
        b = m.tall(m.wide(m.dilated(x)))
        c = m.grouped(f.pad(x, (1, 0, 2, 3)))
        return a, b, c

    return Function(
        body,
        leaping=nn.Conv2d(3, 17, 2, stride=3),
        dilated=nn.Conv2d(3, 129, 3, dilation=2, padding=2),
        wide=nn.Sequential(nn.Conv2d(129, 5, (1, 7), stride=(1, 2), padding=(0, 3)), nn.ReLU6()),
        tall=nn.Conv2d(5, 1, (7, 1), bias=False),
        grouped=nn.Conv2d(3, 6, 4, stride=2, groups=3),
    )


def conv_transposed() -> nn.Module:
    return nn.Sequential(
        nn.ConvTranspose2d(3, 5, 3, stride=2, padding=1, output_padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(5, 17, (2, 4), stride=(2, 3), bias=False),
        nn.Conv2d(17, 1, 1),
    )


def pools() -> nn.Module:
    def body(m: Function, x: Tensor) -> object:
        x = m.conv(x)
        a = f.max_pool2d(x, 2, stride=3)
        b = f.avg_pool2d(x, 3, stride=2, padding=1)
        c = f.avg_pool2d(x, (1, 5), stride=(2, 3), padding=(0, 2), count_include_pad=False)
        return a, b, c, f.adaptive_avg_pool2d(x, (2, 3)), f.adaptive_max_pool2d(x, 1)

    return Function(body, conv=nn.Conv2d(7, 17, 1))


def broadcasts() -> nn.Module:
    torch.manual_seed(2)

    def body(m: Function, x: Tensor, y: Tensor) -> object:
        row = x.mean(2, keepdim=True)
        a = x + y
        b = (row - x) * m.column
        c = 1.7 - a
        d = torch.maximum(b, y) + torch.minimum(x, m.plane)
        return c / 3.0, d, (y - row) * 0.3, m.weight + y, -a, 2.0 / (x.abs() + 1.0)

    return Function(
        body,
        column=torch.randn(6, 1),
        plane=torch.randn(1, 5, 6, 1),
        weight=torch.randn(3, 1, 1, 1),
    )


def activations() -> nn.Module:
    kinds = (
        *(nn.ReLU, nn.ReLU6, nn.Hardsigmoid, nn.Hardswish, nn.ELU, nn.GELU, nn.SiLU, nn.Mish),
        *(nn.LeakyReLU, nn.PReLU, nn.Tanh, nn.Sigmoid, nn.Softplus, nn.SELU, nn.Hardtanh),
    )
    parts = {f"act{number}": kind() for number, kind in enumerate(kinds)}
    parts["tanh_gelu"] = nn.GELU(approximate="tanh")
    parts["soft"] = nn.Softmax(-1)

    def body(m: Function, x: Tensor) -> object:
        return tuple(getattr(m, name)(m.dense(x)) for name in parts)

    return Function(body, dense=nn.Linear(9, 17), **parts)


def reductions() -> nn.Module:
    def body(m: Function, x: Tensor) -> object:
        y = m.conv(x)
        return (
            y.mean((2, 3)),
            y.mean(1, keepdim=True),
            y.amax((2,)),
            y.amin((1, 3)),
            y.sum((1, 2, 3)),
            y.argmax(1),
            y.mean(),
        )

    return Function(body, conv=nn.Conv2d(5, 3, 1))


def movements() -> nn.Module:
    def body(m: Function, x: Tensor) -> object:
        x = m.conv(x)
        one, two = x.chunk(2, 1)
        a = x.permute(0, 2, 3, 1).reshape(1, -1, 2, 4).transpose(1, 2)
        b = x[:, :, 1:-1:2].flip(3)
        c = torch.cat([two, one, two], 1).repeat(1, 1, 1, 2)
        d = torch.stack(x.unbind(1)[::-1], -1)
        e = f.pad(x, (2, 1, 0, 3), mode="reflect")
        g = f.pixel_shuffle(x, 2) - 1.0
        h = f.pixel_unshuffle(x, 2)
        i = x[:, [3, 0, 3, 1]] + torch.roll(x, (1, -2), (2, 3))[:, :4]
        j = x.squeeze(0).flatten(1).unsqueeze(-1).expand(8, -1, 3)
        return a, b, c, d, e, g, h, i, j

    return Function(body, conv=nn.Conv2d(3, 8, 1))


def resizes() -> nn.Module:
    def body(m: Function, x: Tensor) -> object:
        x = m.conv(x)
        return (
            f.interpolate(x, (11, 13), mode="bilinear"),
            f.interpolate(x, scale_factor=2, mode="nearest"),
            f.interpolate(x, (9, 13), mode="bilinear", align_corners=True),
            f.interpolate(x, (10, 7), mode="nearest"),
        )

    return Function(body, conv=nn.Conv2d(3, 5, 1))


def unit_length() -> nn.Module:
    def body(m: Function, x: Tensor) -> object:
        return f.normalize(m.dense(x), dim=-1)

    return Function(body, dense=nn.Linear(9, 5))


def log_softmax() -> nn.Module:
    return nn.Sequential(nn.Linear(9, 5), nn.LogSoftmax(-1))


def normalisations() -> nn.Module:
    def body(m: Function, x: Tensor) -> object:
        y = m.conv(x)
        rows = y.flatten(2).transpose(1, 2)
        return m.batch(torch.relu(y)), m.layer(rows), m.rms(rows)

    return Function(
        body,
        conv=nn.Conv2d(3, 16, 3, padding=1),
        batch=nn.BatchNorm2d(16),
        layer=nn.LayerNorm(16),
        rms=nn.RMSNorm(16),
    )


def group_norms() -> nn.Module:
    def body(m: Function, x: Tensor) -> object:
        y = m.conv(x)
        return m.group(y), m.instance(y)

    return Function(
        body,
        conv=nn.Conv2d(3, 16, 3, padding=1),
        group=nn.GroupNorm(4, 16),
        instance=nn.InstanceNorm2d(16, affine=True),
    )
