"""Transformers small enough for microcontrollers, and what follows them, in PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as f

from benchmarks.ecosystem.pytorch_common import INDICES, Function


def _encoder(width: int, heads: int, wide: int, layers: int, norm_first: bool) -> nn.Module:
    """PyTorch's own layers, with its MultiheadAttention."""
    layer = nn.TransformerEncoderLayer(
        width, heads, wide, activation="gelu", batch_first=True, norm_first=norm_first
    )
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def _with_first(m: Function, tokens: Tensor) -> Tensor:
    """The class token before the others, and places."""
    return torch.cat([m.first.expand(tokens.shape[0], -1, -1), tokens], 1) + m.places


def vit_tiny() -> nn.Module:
    """64 patches of an image of 64x64, four layers of width 48."""

    def body(m: Function, x: Tensor) -> object:
        tokens = m.patches(x).flatten(2).transpose(1, 2)
        return m.head(m.norm(m.layers(_with_first(m, tokens))[:, 0]))

    return Function(
        body,
        patches=nn.Conv2d(3, 48, 8, stride=8),
        first=torch.randn(1, 1, 48),
        places=torch.randn(1, 65, 48) * 0.5,
        layers=_encoder(48, 3, 96, 4, norm_first=True),
        norm=nn.LayerNorm(48),
        head=nn.Linear(48, 10),
    )


def keyword_transformer() -> nn.Module:
    """KWT (arXiv:2104.00769): a token for each frame of 40 coefficients, norms last."""

    def body(m: Function, x: Tensor) -> object:
        return m.head(m.layers(_with_first(m, m.project(x)))[:, 0])

    return Function(
        body,
        project=nn.Linear(40, 32),
        first=torch.randn(1, 1, 32),
        places=torch.randn(1, 99, 32) * 0.5,
        layers=_encoder(32, 1, 64, 3, norm_first=False),
        head=nn.Linear(32, 12),
    )


def tiny_bert() -> nn.Module:
    """Words, places and segments; four layers of width 64; a pooler of tanh."""

    def body(m: Function, words: Tensor) -> object:
        x = m.words(words) + m.places + m.segments[:1]
        return m.head(torch.tanh(m.pooler(m.layers(m.norm(x))[:, 0])))

    return Function(
        body,
        words=nn.Embedding(INDICES, 64),
        places=torch.randn(1, 32, 64) * 0.3,
        segments=torch.randn(2, 64) * 0.3,
        norm=nn.LayerNorm(64),
        layers=_encoder(64, 4, 128, 4, norm_first=False),
        pooler=nn.Linear(64, 64),
        head=nn.Linear(64, 3),
    )


def _turned(x: Tensor, sine: Tensor, cosine: Tensor) -> Tensor:
    """Rotary places (arXiv:2104.09864)."""
    one, two = x.chunk(2, -1)
    return torch.cat([one * cosine - two * sine, two * cosine + one * sine], -1)


class _Decoder(nn.Module):
    """A decoder's layer: RMS norms, rotary places, a causal mask, SwiGLU."""

    def __init__(self, width: int, heads: int, tokens: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * width, width, bias=False)
        half = width // heads // 2
        angles = torch.arange(tokens)[:, None] * 1e4 ** -(torch.arange(half) / half)
        self.register_buffer("sine", angles.sin())
        self.register_buffer("cosine", angles.cos())

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        y = self.norm1(x)
        q, k, v = (
            part(y).view(batch, tokens, self.heads, -1).transpose(1, 2)
            for part in (self.q, self.k, self.v)
        )
        q, k = (_turned(part, self.sine, self.cosine) for part in (q, k))
        seen = f.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(seen.transpose(1, 2).reshape(batch, tokens, width))
        y = self.norm2(x)
        return x + self.down(f.silu(self.gate(y)) * self.up(y))


def tiny_llama() -> nn.Module:
    return nn.Sequential(
        nn.Embedding(INDICES, 32),
        *(_Decoder(32, 2, 24) for _ in range(2)),
        nn.RMSNorm(32),
        nn.Linear(32, INDICES, bias=False),
    )


class _Selective(nn.Module):
    """Mamba's block (arXiv:2312.00752): a causal convolution, a scan whose steps depend on the
    input, a gate. The exporter writes the scan's steps one after another."""

    def __init__(self, width: int, states: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.inner = nn.Linear(width, 2 * width, bias=False)
        self.convolution = nn.Conv1d(width, width, 4, padding=3, groups=width)
        self.choose = nn.Linear(width, 1 + 2 * states, bias=False)
        self.step = nn.Linear(1, width)
        self.decay = nn.Parameter(-torch.arange(1.0, states + 1).repeat(width, 1))
        self.skip = nn.Parameter(torch.ones(width))
        self.outer = nn.Linear(width, width, bias=False)
        self.states = states

    def forward(self, x: Tensor) -> Tensor:
        steps = x.shape[1]
        y, gate = self.inner(self.norm(x)).chunk(2, -1)
        y = f.silu(self.convolution(y.transpose(1, 2))[..., :steps].transpose(1, 2))
        rate, into, out = self.choose(y).split((1, self.states, self.states), -1)
        rate = f.softplus(self.step(rate))
        keep = torch.exp(rate[..., None] * self.decay)
        new = (rate * y)[..., None] * into[:, :, None]
        state, seen = torch.zeros_like(new[:, 0]), []
        for number in range(steps):
            state = keep[:, number] * state + new[:, number]
            seen.append((state * out[:, number, None]).sum(-1))
        return x + self.outer((torch.stack(seen, 1) + self.skip * y) * f.silu(gate))


def mamba() -> nn.Module:
    return Function(
        lambda m, x: m.head(m.layers(m.front(x)).mean(1)),
        front=nn.Linear(10, 24),
        layers=nn.Sequential(_Selective(24, 4), _Selective(24, 4)),
        head=nn.Linear(24, 6),
    )


class _Conformer(nn.Module):
    """A conformer's block (arXiv:2005.08100): attention and convolution between two halves."""

    def __init__(self, width: int, heads: int, kernel: int) -> None:
        super().__init__()

        def feed() -> nn.Module:
            return nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(),
                nn.Linear(2 * width, width),
            )  # fmt: skip

        self.before, self.behind = feed(), feed()
        self.norm, self.norm2, self.last = (nn.LayerNorm(width) for _ in range(3))
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.convolution = nn.Sequential(
            *(nn.Conv1d(width, 2 * width, 1), nn.GLU(1)),
            nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width, bias=False),
            *(nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 1)),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.before(x) / 2
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.convolution(self.norm2(x).transpose(1, 2)).transpose(1, 2)
        return self.last(x + self.behind(x) / 2)


def conformer() -> nn.Module:
    """Frames of 40 coefficients, every fourth kept, two blocks, symbols for each."""

    def body(m: Function, x: Tensor) -> object:
        y = m.front(x[:, None])
        batch, channels, steps, width = y.shape
        y = m.project(y.transpose(1, 2).reshape(batch, steps, channels * width))
        return m.head(m.blocks(y)).log_softmax(-1)

    front = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1), nn.ReLU())
    return Function(
        body,
        front=front,
        project=nn.Linear(80, 32),
        blocks=nn.Sequential(_Conformer(32, 2, 7), _Conformer(32, 2, 7)),
        head=nn.Linear(32, 20),
    )
