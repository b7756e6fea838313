"""What the PyTorch networks of this folder share: seeded weights and inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

INDICES = 24
"""Words of the vocabularies here."""


class Function(nn.Module):
    """A function of the inputs and of `parts`, which it finds as attributes of its first
    argument."""

    def __init__(self, body: Callable[..., object], **parts: nn.Module | Tensor) -> None:
        super().__init__()
        self._body = body
        for name, part in parts.items():
            if isinstance(part, Tensor):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)

    def forward(self, *inputs: Tensor) -> object:
        return self._body(self, *inputs)


def conv_norm_act(
    inside: int, out: int, kernel: int = 3, act: type[nn.Module] = nn.ReLU, **more: int
):
    more.setdefault("padding", kernel // 2)
    return nn.Sequential(
        nn.Conv2d(inside, out, kernel, bias=False, **more), nn.BatchNorm2d(out), act()
    )


def seeded(make: Callable[[], nn.Module], seed: int) -> nn.Module:
    """The network with weights from `seed` and batch normalisations that do something."""
    torch.manual_seed(seed)
    torch.backends.mha.set_fastpath_enabled(False)  # its one fused operator has no ONNX form
    network = make().eval()
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.uniform_(layer.running_var, 0.4, 1.6)
            for values in (layer.running_mean, layer.weight, layer.bias):
                nn.init.normal_(values, 0.1, 0.3)
            layer.weight.data += 1.0
    return network


def random_inputs(shapes: Sequence[tuple[int, ...] | str], seed: int) -> tuple[Tensor, ...]:
    """Normal reals of these shapes; for a text like '1x10' as many indices."""
    torch.manual_seed(seed)
    return tuple(
        torch.randint(0, INDICES, tuple(map(int, shape.split("x"))))
        if isinstance(shape, str)
        else torch.randn(shape)
        for shape in shapes
    )
