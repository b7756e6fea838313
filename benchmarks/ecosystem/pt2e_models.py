"""PyTorch's PT2E (torchao) and the exporter of torch.export: its `quantized_decomposed` operators
become QuantizeLinear and DequantizeLinear of ONNX."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
import torchao
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.testing.pt2e._xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)

TOOL = f"torchao {torchao.__version__}, PyTorch {torch.__version__}"
_SHAPE = (1, 1, 8, 8)


def _network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(4, 4, 3, groups=4), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(144, 5)),
    ).eval()


def _exported(*, per_channel: bool) -> bytes:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        example = (torch.randn(_SHAPE),)
        config = get_symmetric_quantization_config(is_per_channel=per_channel)
        prepared = prepare_pt2e(
            torch.export.export(_network(), example).module(),
            XNNPACKQuantizer().set_global(config),
        )
        for _ in range(8):
            prepared(torch.randn(_SHAPE))
        program = torch.export.export(convert_pt2e(prepared), example)
        file = Path(folder) / "model.onnx"
        torch.onnx.export(program, example, str(file), external_data=False)
        return file.read_bytes()


def models() -> dict[str, Callable[[], bytes]]:
    """File names, and what makes each file's bytes."""
    return {
        "pt2e_per_channel.onnx": lambda: _exported(per_channel=True),
        "pt2e_per_tensor.onnx": lambda: _exported(per_channel=False),
    }
