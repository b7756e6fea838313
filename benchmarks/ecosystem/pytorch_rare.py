"""What small PyTorch networks rarely have, exported to ONNX; and onnxruntime's dynamic
quantisation."""

from __future__ import annotations

import itertools
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor, nn
from torch.nn import functional as f

from benchmarks.ecosystem import pytorch_networks as n
from benchmarks.ecosystem.pytorch_common import INDICES, Function, conv_norm_act
from benchmarks.ecosystem.pytorch_models import (
    CHANNEL,
    OPERATORS,
    TENSOR,
    TOOL,
    UINT8,
    Recipe,
    Shapes,
    float_model,
)

__all__ = ["TOOL", "models"]


def gru() -> nn.Module:
    return Function(
        lambda s, x: s.head(s.cell(x)[0][:, -1]),
        cell=nn.GRU(5, 8, batch_first=True),
        head=nn.Linear(8, 3),
    )


def bidirectional_lstm() -> nn.Module:
    cell = nn.LSTM(5, 6, batch_first=True, bidirectional=True)
    return Function(lambda s, x: s.head(s.cell(x)[0]), cell=cell, head=nn.Linear(12, 3))


def rnn() -> nn.Module:
    return Function(lambda s, x: s.cell(x)[0], cell=nn.RNN(5, 6, batch_first=True))


def yolo_v8_head() -> nn.Module:
    """Boxes from softmax over 8 bins, class scores by sigmoid, in one output."""

    def body(s: Function, x: Tensor) -> Tensor:
        features = s.stem(x)
        boxes = s.boxes(features).flatten(2)
        scores = s.scores(features).flatten(2)
        bins = boxes.view(1, 4, 8, 64).transpose(1, 2).softmax(1)
        distance = (bins * s.steps.view(1, 8, 1, 1)).sum(1)
        low, high = s.grid - distance[:, :2], s.grid + distance[:, 2:]
        return torch.cat([((low + high) / 2) * 4, (high - low) * 4, scores.sigmoid()], 1)

    places = torch.arange(8) + 0.5
    grid = torch.stack(torch.meshgrid(places, places, indexing="xy")).view(1, 2, 64)
    return Function(
        body,
        stem=conv_norm_act(3, 16, act=nn.SiLU, stride=4),
        boxes=nn.Conv2d(16, 32, 1),
        scores=nn.Conv2d(16, 5, 1),
        steps=torch.arange(8.0),
        grid=grid,
    )


def yolo_v5_head() -> nn.Module:
    def body(s: Function, x: Tensor) -> Tensor:
        raw = s.head(s.stem(x)).view(1, 3, 7, 6, 6).permute(0, 1, 3, 4, 2).sigmoid()
        centre, extent, rest = raw.split((2, 2, 3), 4)
        centre = (centre * 2 - 0.5 + s.grid) * 8
        extent = (extent * 2) ** 2 * s.anchors
        return torch.cat((centre, extent, rest), 4).view(1, 108, 7)

    places = torch.arange(6.0)
    grid = torch.stack(torch.meshgrid(places, places, indexing="xy"), -1).view(1, 1, 6, 6, 2)
    anchors = torch.tensor([[10.0, 13], [16, 30], [33, 23]]).view(1, 3, 1, 1, 2)
    return Function(
        body,
        stem=conv_norm_act(3, 16, act=nn.SiLU, stride=8),
        head=nn.Conv2d(16, 21, 1),
        grid=grid,
        anchors=anchors,
    )


def ssd_anchors() -> nn.Module:
    """An output that folds to a constant beside the predictions."""

    def body(s: Function, x: Tensor) -> tuple[Tensor, Tensor]:
        return s.head(s.stem(x)).flatten(2).transpose(1, 2), s.anchors * 0.5

    return Function(
        body,
        stem=conv_norm_act(3, 8, stride=4),
        head=nn.Conv2d(8, 4, 1),
        anchors=torch.rand(36, 4),
    )


def gathers() -> nn.Module:
    def body(s: Function, x: Tensor) -> tuple[Tensor, ...]:
        places = torch.tensor([[0, 2, 1], [3, 3, 0]])
        return (
            x.gather(2, places.expand(1, 4, 2, 3)[:, :, :1].expand(1, 4, 1, 3)),
            x.index_select(1, torch.tensor([3, 1])),
            x[:, :, torch.tensor([4, 0, 2])],
            x.roll(2, 3),
            x.flip(2),
        )

    return Function(body)


def top_k() -> nn.Module:
    def body(s: Function, x: Tensor) -> tuple[Tensor, ...]:
        values, places = s.dense(x).softmax(-1).topk(4)
        return values, places

    return Function(body, dense=nn.Linear(9, 17))


def masks() -> nn.Module:
    def body(s: Function, x: Tensor) -> tuple[Tensor, ...]:
        kept = x > 0.1
        low = (x < -0.5) | ~kept
        return torch.where(kept, x, x * 0.25), (low & (x > -2)).float(), x.masked_fill(low, 0.0)

    return Function(body)


def attention_mask() -> nn.Module:
    """Causal attention: scores masked by a constant triangle."""

    def body(s: Function, x: Tensor) -> Tensor:
        q, k, v = s.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(1, 2) / 4 + s.mask
        return s.out(scores.softmax(-1) @ v)

    mask = torch.full((8, 8), -20.0).triu(1)
    return Function(body, qkv=nn.Linear(16, 48), out=nn.Linear(16, 16), mask=mask)


def einsums() -> nn.Module:
    def body(s: Function, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        scores = torch.einsum("bic,bjc->bij", x, y)
        return scores, torch.einsum("bij,bjc->bic", scores, y)

    return Function(body)


def norms() -> nn.Module:
    def body(s: Function, x: Tensor) -> tuple[Tensor, ...]:
        flat = x.flatten(2)
        return (
            flat.norm(dim=1),
            f.normalize(x, dim=1),
            flat.abs().sum(2),
            flat.var(2, unbiased=False),
            flat.logsumexp(2),
            flat.prod(1),
            flat.cumsum(2),
        )

    return Function(body)


def rare_activations() -> nn.Module:
    kinds = (
        *(nn.Mish(), nn.Softplus(), nn.Softsign(), nn.CELU(), nn.SELU(), nn.Hardtanh(-0.7, 0.9)),
        *(nn.ReLU6(), nn.LogSigmoid(), nn.Softmin(-1), nn.Threshold(0.1, -0.2), nn.Tanhshrink()),
    )
    return Function(lambda s, x: tuple(kind(s.dense(x)) for kind in kinds), dense=nn.Linear(9, 7))


def pixel_shuffle() -> nn.Module:
    """Super resolution, a nearest neighbour beside it."""

    def body(s: Function, x: Tensor) -> Tensor:
        deep = s.second(f.relu(s.first(x)))
        return f.pixel_shuffle(deep, 2) + f.interpolate(x, scale_factor=2, mode="nearest")

    return Function(body, first=nn.Conv2d(1, 8, 3, padding=1), second=nn.Conv2d(8, 4, 3, padding=1))


def squeezenet() -> nn.Module:
    def body(s: Function, x: Tensor) -> Tensor:
        x = f.max_pool2d(f.relu(s.stem(x)), 3, 2, ceil_mode=True)
        x = f.relu(s.squeeze(x))
        x = torch.cat([f.relu(s.one(x)), f.relu(s.three(x))], 1)
        return f.adaptive_avg_pool2d(s.head(x), 1).flatten(1)

    return Function(
        body,
        stem=nn.Conv2d(3, 16, 3, stride=2),
        squeeze=nn.Conv2d(16, 8, 1),
        one=nn.Conv2d(8, 16, 1),
        three=nn.Conv2d(8, 16, 3, padding=1),
        head=nn.Conv2d(32, 7, 1),
    )


def repvgg() -> nn.Module:
    def body(s: Function, x: Tensor) -> Tensor:
        x = f.relu(s.first(x))
        for three, one, norm in zip(s.threes, s.ones, s.norms, strict=True):
            x = f.relu(three(x) + one(x) + norm(x))
        return s.head(x.mean((2, 3)))

    return Function(
        body,
        first=conv_norm_act(3, 12, stride=2),
        threes=nn.ModuleList(nn.Conv2d(12, 12, 3, padding=1) for _ in range(2)),
        ones=nn.ModuleList(nn.Conv2d(12, 12, 1) for _ in range(2)),
        norms=nn.ModuleList(nn.BatchNorm2d(12) for _ in range(2)),
        head=nn.Linear(12, 5),
    )


def ghost() -> nn.Module:
    """GhostNet: half of the channels by cheap depthwise convolutions."""

    def body(s: Function, x: Tensor) -> Tensor:
        a = s.first(x)
        x = torch.cat([a, s.cheap(a)], 1)
        a = s.second(x)
        return s.head(torch.cat([a, s.deep(a)], 1).mean((2, 3)))

    return Function(
        body,
        first=conv_norm_act(3, 8, stride=2),
        cheap=conv_norm_act(8, 8, groups=8),
        second=conv_norm_act(16, 12, 1),
        deep=conv_norm_act(12, 12, groups=12),
        head=nn.Linear(24, 6),
    )


def conv_1d_separable() -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(2, 8, 9, stride=4),
        nn.BatchNorm1d(8),
        nn.ReLU(),
        nn.Conv1d(8, 8, 5, groups=8, padding=2),
        nn.Conv1d(8, 16, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(16, 4),
    )


def word_bag() -> nn.Module:
    return Function(
        lambda s, x: s.head(s.words(x).mean(1)),
        words=nn.Embedding(INDICES, 8),
        head=nn.Linear(8, 4),
    )


def mixer() -> nn.Module:
    def body(s: Function, x: Tensor) -> Tensor:
        x = s.patch(x).flatten(2).transpose(1, 2)
        x = x + s.tokens(s.before(x).transpose(1, 2)).transpose(1, 2)
        x = x + s.channels(s.after(x))
        return s.head(x.mean(1))

    return Function(
        body,
        patch=nn.Conv2d(3, 12, 8, stride=8),
        before=nn.LayerNorm(12),
        after=nn.LayerNorm(12),
        tokens=nn.Sequential(nn.Linear(16, 24), nn.GELU(), nn.Linear(24, 16)),
        channels=nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 12)),
        head=nn.Linear(12, 5),
    )


def face() -> nn.Module:
    """As MobileFaceNet: a slope for each channel, of very different sizes."""

    def sloped(channels: int) -> nn.PReLU:
        made = nn.PReLU(channels)
        nn.init.normal_(made.weight, 0.0, 1.0)
        made.weight.data = made.weight.data**3
        return made

    def step(inside: int, out: int, kernel: int, **more: int) -> nn.Module:
        more.setdefault("padding", kernel // 2)
        conv = nn.Conv2d(inside, out, kernel, bias=False, **more)
        return nn.Sequential(conv, nn.BatchNorm2d(out), sloped(out))

    return nn.Sequential(
        step(3, 16, 3, stride=2),
        step(16, 16, 3, groups=16),
        step(16, 24, 1),
        step(24, 24, 3, stride=2, groups=24),
        nn.Conv2d(24, 12, 1),
        nn.Flatten(),
        nn.Linear(12 * 36, 10),
    )


def detector_of_the_moment() -> nn.Module:
    """A detector's body. Quantised when it runs, each SiLU's last bits move some activation by a
    step, so that ONNX Runtime's own outputs move by far more than one last bit of the image.
    """
    widths = (3, *(12,) * 10)
    steps = [conv_norm_act(a, b, 3, nn.SiLU) for a, b in itertools.pairwise(widths)]
    return nn.Sequential(*steps, nn.Conv2d(12, 4, 1), nn.AvgPool2d(16))


IMAGE: Shapes = [(1, 3, 32, 32)]
SERIES: Shapes = [(1, 7, 5)]
RECIPES = MappingProxyType(
    {
        "gru": Recipe(gru, SERIES),
        "bidirectional_lstm": Recipe(bidirectional_lstm, SERIES),
        "rnn": Recipe(rnn, SERIES),
        "yolo_v8_head": Recipe(yolo_v8_head, IMAGE),
        "yolo_v8_head_default": Recipe(yolo_v8_head, IMAGE, options=UINT8, everything=False),
        "yolo_v5_head": Recipe(yolo_v5_head, [(1, 3, 48, 48)], 12, options=TENSOR),
        "yolo_v5_head_dynamo": Recipe(yolo_v5_head, [(1, 3, 48, 48)], 18, True),
        "ssd_anchors": Recipe(ssd_anchors, [(1, 3, 24, 24)]),
        "gathers": Recipe(gathers, [(1, 4, 6, 5)]),
        "top_k": Recipe(top_k, [(1, 9)]),
        "masks": Recipe(masks, [(1, 4, 6)]),
        "attention_mask": Recipe(attention_mask, [(1, 8, 16)]),
        "attention_mask_uint8": Recipe(attention_mask, [(1, 8, 16)], 18, True, UINT8),
        "einsums": Recipe(einsums, [(1, 5, 8), (1, 7, 8)]),
        "norms": Recipe(norms, [(1, 3, 4, 5)]),
        "rare_activations": Recipe(rare_activations, [(1, 9)], 18, True),
        "pixel_shuffle": Recipe(pixel_shuffle, [(1, 1, 10, 12)]),
        "squeezenet": Recipe(squeezenet, IMAGE, 13, options=UINT8),
        "squeezenet_operators": Recipe(squeezenet, IMAGE, 13, options=OPERATORS, everything=False),
        "repvgg": Recipe(repvgg, IMAGE, 13, options=CHANNEL),
        "ghost": Recipe(ghost, IMAGE, 18, True),
        "conv_1d_separable": Recipe(conv_1d_separable, [(1, 2, 128)]),
        "word_bag": Recipe(word_bag, ["1x9"]),
        "mixer": Recipe(mixer, IMAGE, 18, True),
        "face": Recipe(face, [(1, 3, 24, 24)]),
        "face_default": Recipe(face, [(1, 3, 24, 24)], options=UINT8, everything=False),
        "face_operators": Recipe(face, [(1, 3, 24, 24)], options=OPERATORS, everything=False),
        "gru_float": Recipe(gru, SERIES, options=None),
        "bidirectional_lstm_float": Recipe(bidirectional_lstm, SERIES, options=None),
        "rnn_float": Recipe(rnn, SERIES, options=None),
        "top_k_float": Recipe(top_k, [(1, 9)], options=None),
        "masks_float": Recipe(masks, [(1, 4, 6)], options=None),
        "gathers_float": Recipe(gathers, [(1, 4, 6, 5)], options=None),
        "norms_float": Recipe(norms, [(1, 3, 4, 5)], options=None),
        "yolo_v8_head_float": Recipe(yolo_v8_head, IMAGE, 19, True, None),
    }
)
DYNAMIC = MappingProxyType(
    {
        "bert": (Recipe(n.bert, ["1x10"]), QuantType.QInt8),
        "bert_uint8": (Recipe(n.bert, ["1x10"]), QuantType.QUInt8),
        "mobilenet_v3": (Recipe(n.mobilenet_v3, [(1, 3, 48, 48)]), QuantType.QInt8),
        "detector": (Recipe(detector_of_the_moment, [(1, 3, 64, 64)]), QuantType.QUInt8),
        "autoencoder": (Recipe(n.autoencoder, [(1, 65)]), QuantType.QInt8),
        "vision_transformer": (Recipe(n.vision_transformer, IMAGE), QuantType.QInt8),
        "mixer": (Recipe(mixer, IMAGE), QuantType.QInt8),
        "word_bag": (Recipe(word_bag, ["1x9"]), QuantType.QInt8),
        "squeezenet": (Recipe(squeezenet, IMAGE), QuantType.QUInt8),
        "lstm": (Recipe(n.lstm, SERIES), QuantType.QInt8),
    }
)


def dynamically_quantised(recipe: Recipe, weights: QuantType) -> bytes:
    """`recipe`'s network with weights of this type, and activations quantised when it runs."""
    data = float_model(recipe.make, recipe.shapes, recipe.opset, recipe.dynamo)
    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(scratch) / "float.onnx", Path(scratch) / "dynamic.onnx"
        source.write_bytes(data)
        logging.disable(logging.WARNING)
        try:
            quantize_dynamic(source, target, weight_type=weights)
        finally:
            logging.disable(logging.NOTSET)
        return target.read_bytes()


def models() -> dict[str, Callable[[], bytes]]:
    """File names, and what makes each file's bytes."""

    def made(recipe: Recipe, weights: QuantType) -> Callable[[], bytes]:
        return lambda: dynamically_quantised(recipe, weights)

    found = {f"torch_rare_{name}.onnx": recipe.file for name, recipe in RECIPES.items()}
    for name, (recipe, weights) in DYNAMIC.items():
        found[f"torch_dynamic_{name}.onnx"] = made(recipe, weights)
    return found
