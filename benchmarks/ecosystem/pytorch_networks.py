"""Small networks in PyTorch, each unlike the others."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as f

from benchmarks.ecosystem.pytorch_common import INDICES, Function, conv_norm_act


class _Hard(nn.Module):
    """MobileNetV3's block."""

    def __init__(self, inside: int, middle: int, out: int, kernel: int, stride: int, act: type):
        super().__init__()
        self.expand = conv_norm_act(inside, middle, 1, act)
        self.depthwise = conv_norm_act(middle, middle, kernel, act, stride=stride, groups=middle)
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(middle, max(middle // 4, 1), 1),
            nn.ReLU(),
            nn.Conv2d(max(middle // 4, 1), middle, 1),
            nn.Hardsigmoid(),
        )
        self.project = conv_norm_act(middle, out, 1, nn.Identity)
        self.same = stride == 1 and inside == out

    def forward(self, x: Tensor) -> Tensor:
        y = self.depthwise(self.expand(x))
        y = self.project(y * self.squeeze(y))
        return x + y if self.same else y


def mobilenet_v3() -> nn.Module:
    return nn.Sequential(
        conv_norm_act(3, 8, 3, nn.Hardswish, stride=2),
        _Hard(8, 16, 8, 3, 1, nn.ReLU),
        _Hard(8, 24, 12, 5, 2, nn.Hardswish),
        _Hard(12, 40, 12, 5, 1, nn.Hardswish),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 33),
        nn.Hardswish(),
        nn.Linear(33, 10),
    )


class _Shuffle(nn.Module):
    def __init__(self, half: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            conv_norm_act(half, half, 1),
            conv_norm_act(half, half, 3, nn.Identity, groups=half),
            conv_norm_act(half, half, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        left, right = x.chunk(2, dim=1)
        x = torch.cat((left, self.branch(right)), dim=1)
        batch, channels, height, width = x.size()
        x = x.view(batch, 2, channels // 2, height, width).transpose(1, 2).contiguous()
        return x.view(batch, -1, height, width)


def shufflenet() -> nn.Module:
    return nn.Sequential(
        conv_norm_act(3, 24, 3, stride=2),
        nn.MaxPool2d(3, 2, 1),
        *(_Shuffle(12) for _ in range(3)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(24, 7),
    )


def unet() -> nn.Module:
    def body(m: Function, x: Tensor) -> object:
        one = m.one(x)
        two = m.two(f.max_pool2d(one, 2))
        three = m.three(f.max_pool2d(two, 2))
        y = m.four(torch.cat([m.up(three), two], 1))
        y = f.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)
        return m.last(m.five(torch.cat([y, one], 1)))

    return Function(
        body,
        one=conv_norm_act(1, 6),
        two=nn.Sequential(conv_norm_act(6, 12), conv_norm_act(12, 12)),
        three=conv_norm_act(12, 20),
        up=nn.ConvTranspose2d(20, 12, 2, stride=2),
        four=conv_norm_act(24, 12),
        five=conv_norm_act(18, 6),
        last=nn.Conv2d(6, 3, 1),
    )


def audio() -> nn.Module:
    """1-D: a long first stride, depthwise dilated convolutions, a gate of two halves."""

    def body(m: Function, x: Tensor) -> object:
        y = m.front(x)
        for block in m.blocks:
            y = y + block(y)
        return m.last(f.glu(y, 1).mean(-1))

    def block(rate: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv1d(16, 16, 5, dilation=rate, padding=2 * rate, groups=16, bias=False),
            nn.BatchNorm1d(16),
            nn.LeakyReLU(0.1),
            nn.Conv1d(16, 16, 1),
        )

    front = nn.Sequential(nn.Conv1d(1, 16, 33, stride=16, padding=16), nn.PReLU(16))
    blocks = nn.ModuleList(block(rate) for rate in (1, 3, 9))
    return Function(body, front=front, blocks=blocks, last=nn.Linear(8, 11))


def preactivated() -> nn.Module:
    """A residual network whose batch normalisations come before its convolutions."""

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(
                *(nn.BatchNorm2d(9), nn.ReLU(), nn.Conv2d(9, 9, 3, padding=1)),
                *(nn.BatchNorm2d(9), nn.ReLU(), nn.Conv2d(9, 9, 3, padding=1)),
            )

        def forward(self, x: Tensor) -> Tensor:
            return x + self.body(x)

    return nn.Sequential(
        nn.BatchNorm2d(3),
        nn.Conv2d(3, 9, 5, stride=2),
        Block(),
        Block(),
        nn.BatchNorm2d(9),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(9, 4),
    )


def detector() -> nn.Module:
    """A head as YOLOv8's: SiLU, pooling pyramid, two scales, distributions of distances."""

    def body(m: Function, x: Tensor) -> object:
        large = m.stem(x)
        small = m.down(large)
        pooled = [small]
        for _ in range(2):
            pooled.append(f.max_pool2d(pooled[-1], 5, 1, 2))
        small = m.join(torch.cat(pooled, 1))
        up = f.interpolate(small, scale_factor=2, mode="nearest")
        large = m.merge(torch.cat([up, large], 1))
        found = [head(y).flatten(2) for head, y in ((m.head0, large), (m.head1, small))]
        sides, scores = torch.cat(found, 2).split((16, 3), 1)
        batch, _, anchors = sides.shape
        shares = sides.view(batch, 4, 4, anchors).transpose(2, 1).softmax(1)
        distances = m.mean(shares).view(batch, 4, anchors)
        first, second = distances.chunk(2, 1)
        return torch.cat([second - first, second + first], 1), scores.sigmoid(), small

    mean = nn.Conv2d(4, 1, 1, bias=False)
    mean.weight.data = torch.arange(4.0).view(1, 4, 1, 1)
    mean.requires_grad_(False)
    return Function(
        body,
        stem=nn.Sequential(
            conv_norm_act(3, 8, 3, nn.SiLU, stride=2), conv_norm_act(8, 16, 3, nn.SiLU, stride=2)
        ),
        down=conv_norm_act(16, 16, 3, nn.SiLU, stride=2),
        join=conv_norm_act(48, 16, 1, nn.SiLU),
        merge=conv_norm_act(32, 16, 3, nn.SiLU),
        head0=nn.Conv2d(16, 19, 1),
        head1=nn.Conv2d(16, 19, 1),
        mean=mean,
    )


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        qkv = self.qkv(x).reshape(batch, tokens, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        shares = (q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5).softmax(-1)
        return self.out((shares @ v).transpose(1, 2).reshape(batch, tokens, width))


class _Layer(nn.Module):
    """A transformer's layer with its norms first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = _Attention(width, heads)
        self.dense = nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.dense(self.norm2(x))


def vision_transformer() -> nn.Module:
    def body(m: Function, x: Tensor) -> object:
        tokens = m.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([m.first.expand(x.shape[0], -1, -1), tokens], 1) + m.places
        return m.head(m.norm(m.layers(tokens))[:, 0])

    return Function(
        body,
        patches=nn.Conv2d(3, 24, 8, stride=8),
        first=torch.randn(1, 1, 24),
        places=torch.randn(1, 17, 24) * 0.5,
        layers=nn.Sequential(_Layer(24, 3), _Layer(24, 3)),
        norm=nn.LayerNorm(24),
        head=nn.Linear(24, 5),
    )


def windowed() -> nn.Module:
    """Swin's layer: shifted windows, a bias per pair of places, patches merged."""

    def body(m: Function, x: Tensor) -> object:
        y = m.patches(x).permute(0, 2, 3, 1)
        z = torch.roll(m.norm(y), (-2, -2), (1, 2)).view(1, 2, 4, 2, 4, 16)
        z = m.attention(z.permute(0, 1, 3, 2, 4, 5).reshape(4, 16, 16))
        z = z.view(1, 2, 2, 4, 4, 16).permute(0, 1, 3, 2, 4, 5).reshape(1, 8, 8, 16)
        y = y + torch.roll(z, (2, 2), (1, 2))
        corners = [y[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return m.reduce(torch.cat(corners, -1)).mean((1, 2))

    return Function(
        body,
        patches=nn.Conv2d(3, 16, 4, stride=4),
        norm=nn.LayerNorm(16),
        attention=_Attention(16, 2),
        reduce=nn.Linear(64, 7, bias=False),
    )


def convnext() -> nn.Module:
    """7x7 depthwise, layer norm over channels last, gelu, a factor for each channel."""

    def body(m: Function, x: Tensor) -> object:
        y = m.stem(x)
        z = m.depthwise(y).permute(0, 2, 3, 1)
        z = m.dense(m.norm(z)) * m.factor
        return m.head((y + z.permute(0, 3, 1, 2)).mean((2, 3)))

    return Function(
        body,
        stem=nn.Conv2d(3, 12, 4, stride=4),
        depthwise=nn.Conv2d(12, 12, 7, padding=3, groups=12),
        norm=nn.LayerNorm(12, eps=1e-6),
        dense=nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.Linear(48, 12)),
        factor=torch.rand(12),
        head=nn.Linear(12, 5),
    )


def bert() -> nn.Module:
    """An encoder of words; the layers are PyTorch's own, norms last."""

    def body(m: Function, words: Tensor) -> object:
        x = m.norm(m.words(words) + m.places)
        return m.head(torch.tanh(m.pool(m.layers(x)[:, 0])))

    layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, "gelu", batch_first=True)
    return Function(
        body,
        words=nn.Embedding(INDICES, 32),
        places=torch.randn(1, 10, 32),
        norm=nn.LayerNorm(32),
        layers=nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
        pool=nn.Linear(32, 32),
        head=nn.Linear(32, 2),
    )


def text_cnn() -> nn.Module:
    def body(m: Function, words: Tensor) -> object:
        x = m.words(words).transpose(1, 2)
        return m.head(torch.cat([f.relu(conv(x)).amax(2) for conv in m.convs], 1))

    convs = nn.ModuleList(nn.Conv1d(16, 5, size) for size in (2, 3, 4))
    return Function(body, words=nn.Embedding(INDICES, 16), convs=convs, head=nn.Linear(15, 3))


def unrolled_gru() -> nn.Module:
    def body(m: Function, x: Tensor) -> object:
        state = torch.zeros(1, 12)
        for step in range(5):
            state = m.cell(x[:, step], state)
        return m.head(state)

    return Function(body, cell=nn.GRUCell(6, 12), head=nn.Linear(12, 3))


def lstm() -> nn.Module:
    """ONNX's LSTM, which onnxruntime's quantiser leaves in float: refused."""

    def body(m: Function, x: Tensor) -> object:
        return m.head(m.lstm(x)[0][:, -1])

    return Function(body, lstm=nn.LSTM(5, 8, batch_first=True), head=nn.Linear(8, 3))


def siamese() -> nn.Module:
    def body(m: Function, x: Tensor, y: Tensor) -> object:
        one, two = m.trunk(x), m.trunk(y)
        return (one - two).abs(), (one * two).sum(-1), torch.cosine_similarity(one, two)

    trunk = nn.Sequential(conv_norm_act(1, 6, 3), nn.Flatten(), nn.Linear(384, 9))
    return Function(body, trunk=trunk)


def autoencoder() -> nn.Module:
    widths = (65, 129, 17, 3, 17, 129)
    steps = [
        layer
        for inside, out in pairwise(widths)
        for layer in (nn.Linear(inside, out), nn.BatchNorm1d(out), nn.ReLU())
    ]
    return nn.Sequential(*steps, nn.Linear(129, 65))
