"""Brevitas's exports of a network trained for quantisation: QONNX, and ONNX's own operators."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import brevitas
import torch
from brevitas import nn as q
from brevitas.export import export_onnx_qcdq, export_qonnx
from brevitas.quant import Int8ActPerTensorFloat, Int8WeightPerChannelFloat
from torch import nn

TOOL = f"Brevitas {brevitas.__version__}, PyTorch {torch.__version__}"
_SHAPE = (1, 3, 8, 8)


def _network(bits: int) -> nn.Module:
    """Two convolutions, of which one has scales of channels, and a dense layer."""
    torch.manual_seed(0)
    channels = {"weight_quant": Int8WeightPerChannelFloat}
    network = nn.Sequential(
        q.QuantIdentity(act_quant=Int8ActPerTensorFloat),
        q.QuantConv2d(3, 8, 3, padding=1, weight_bit_width=bits, **channels),
        q.QuantReLU(bit_width=bits),
        q.QuantConv2d(8, 8, 3, stride=2, weight_bit_width=bits),
        q.QuantReLU(bit_width=bits),
        nn.Flatten(),
        q.QuantLinear(72, 5, bias=True, weight_bit_width=bits),
        q.QuantIdentity(),
    ).train()
    for _ in range(30):  # by which the scales of activations are found
        network(torch.randn(4, *_SHAPE[1:]))
    return network.eval()


def _exported(export: Callable[..., object], bits: int) -> bytes:
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = Path(folder) / "model.onnx"
        export(_network(bits), args=torch.randn(_SHAPE), export_path=str(file), dynamo=False)
        logging.disable(logging.NOTSET)
        return file.read_bytes()


def models() -> dict[str, Callable[[], bytes]]:
    """File names, and what makes each file's bytes."""

    def made(export: Callable[..., object], bits: int) -> Callable[[], bytes]:
        return lambda: _exported(export, bits)

    forms = {"qonnx": export_qonnx, "qcdq": export_onnx_qcdq}
    return {
        f"brevitas_{name}_{bits}.onnx": made(export, bits)
        for name, export in forms.items()
        for bits in (8, 6, 4)
    }
