"""PyTorch's two exporters to ONNX, and onnxruntime's static quantiser in each of its modes."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process
from torch import nn

from benchmarks.ecosystem import pytorch_networks as n
from benchmarks.ecosystem import pytorch_operators as o
from benchmarks.ecosystem import pytorch_transformers as t
from benchmarks.ecosystem.pytorch_common import random_inputs, seeded

TOOL = f"PyTorch {torch.__version__}, onnxruntime {onnxruntime.__version__}"
SAMPLES = 8
Shapes = Sequence[tuple[int, ...] | str]
Options = dict[str, Any]

TENSOR: Options = {"activation_type": QuantType.QInt8, "per_channel": False}
CHANNEL: Options = {"activation_type": QuantType.QInt8, "per_channel": True}
UINT8: Options = {"activation_type": QuantType.QUInt8, "per_channel": True}
UINT8_WEIGHTS: Options = {
    "activation_type": QuantType.QUInt8,
    "weight_type": QuantType.QUInt8,
    "per_channel": False,
}
UINT8_TENSOR: Options = UINT8 | {"per_channel": False}
SYMMETRIC: Options = CHANNEL | {"extra_options": {"ActivationSymmetric": True}}
INT4: Options = CHANNEL | {"weight_type": QuantType.QInt4}
UINT4: Options = UINT8 | {"weight_type": QuantType.QUInt4, "per_channel": False}
OPERATORS: Options = UINT8 | {"quant_format": QuantFormat.QOperator}


def export(network: nn.Module, inputs: tuple[Any, ...], opset: int, dynamo: bool, to: Path) -> None:
    """Write `network` by the dynamo exporter, or by the older one through TorchScript."""
    logging.disable(logging.WARNING)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            inputs,
            str(to),
            opset_version=opset,
            dynamo=dynamo,
            external_data=False,
            verbose=False,
        )
    logging.disable(logging.NOTSET)


def float_model(
    make: Callable[[], nn.Module], shapes: Shapes, opset: int, dynamo: bool, seed: int = 0
) -> bytes:
    """The exported file, as the exporter leaves it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "float.onnx"
        export(seeded(make, seed), random_inputs(shapes, seed), opset, dynamo, file)
        return file.read_bytes()


def quantised(data: bytes, options: Options, everything: bool = True, seed: int = 1) -> bytes:
    """`data` as onnxruntime's quantiser writes it; `everything`: every operator type."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        source, ready, target = (folder / f"{n}.onnx" for n in ("float", "ready", "int8"))
        source.write_bytes(data)
        quant_pre_process(source, ready, skip_symbolic_shape=True)
        graph = onnx.load(ready).graph
        kinds = sorted({node.op_type for node in graph.node}) if everything else None
        logging.disable(logging.WARNING)
        try:
            quantize_static(
                ready, target, Reader(graph, seed), op_types_to_quantize=kinds, **options
            )
        finally:
            logging.disable(logging.NOTSET)
        return target.read_bytes()


class Reader(CalibrationDataReader):
    def __init__(self, graph: onnx.GraphProto, seed: int) -> None:
        self._feeds = _feeds(graph, seed)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._feeds, None)


def _feeds(graph: onnx.GraphProto, seed: int) -> Iterator[dict[str, np.ndarray]]:
    constants = {tensor.name for tensor in graph.initializer}
    shapes: dict[str, tuple[int, ...] | str] = {}
    for value in graph.input:
        if value.name in constants:
            continue
        kind = value.type.tensor_type
        shape = tuple(dim.dim_value for dim in kind.shape.dim)
        whole = kind.elem_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32)
        shapes[value.name] = "x".join(map(str, shape)) if whole else shape
    for number in range(SAMPLES):
        made = random_inputs(list(shapes.values()), seed + number)
        yield {name: value.numpy() for name, value in zip(shapes, made, strict=True)}


@dataclass(frozen=True)
class Recipe:
    """`options` None: left in float. `everything`: quantise all operators, not the usual ones."""

    make: Callable[[], nn.Module]
    shapes: Shapes
    opset: int = 17
    dynamo: bool = False
    options: Options | None = field(default_factory=lambda: CHANNEL)
    everything: bool = True

    def file(self) -> bytes:
        data = float_model(self.make, self.shapes, self.opset, self.dynamo)
        return data if self.options is None else quantised(data, self.options, self.everything)


IMAGE = ((1, 3, 32, 32),)
RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        "conv_corners": Recipe(o.conv_corners, [(1, 3, 23, 19)], 13, options=TENSOR),
        "conv_transposed": Recipe(o.conv_transposed, [(1, 3, 7, 6)]),
        "pools": Recipe(o.pools, [(1, 7, 12, 15)], options=TENSOR),
        "broadcasts": Recipe(o.broadcasts, [(1, 5, 6, 7), (1, 1, 1, 7)], 20, True),
        "activations": Recipe(o.activations, [(1, 9)], 20, True),
        "log_softmax": Recipe(o.log_softmax, [(1, 9)]),
        "unit_length": Recipe(o.unit_length, [(4, 9)]),
        "reductions": Recipe(o.reductions, [(1, 5, 7, 6)], 18, True),
        "movements": Recipe(o.movements, [(1, 3, 6, 8)]),
        "resizes": Recipe(o.resizes, [(1, 3, 5, 7)], 18, True),
        "normalisations": Recipe(o.normalisations, [(1, 3, 6, 6)], 18, True),
        "group_norms": Recipe(o.group_norms, [(1, 3, 6, 6)], 18, True),
        "mobilenet_v3": Recipe(n.mobilenet_v3, [(1, 3, 48, 48)], 14, options=UINT8),
        "mobilenet_v3_default": Recipe(
            n.mobilenet_v3, [(1, 3, 48, 48)], 18, True, TENSOR, everything=False
        ),
        "mobilenet_v3_operators": Recipe(
            n.mobilenet_v3, [(1, 3, 48, 48)], 13, options=OPERATORS, everything=False
        ),
        "shufflenet": Recipe(n.shufflenet, IMAGE, 11, options=UINT8_TENSOR),
        "shufflenet_default": Recipe(n.shufflenet, IMAGE, 18, True, everything=False),
        "unet": Recipe(n.unet, [(1, 1, 32, 24)], 18, True, SYMMETRIC),
        "audio": Recipe(n.audio, [(1, 1, 1024)]),
        "preactivated": Recipe(n.preactivated, [(1, 3, 24, 24)], options=UINT8_TENSOR),
        "preactivated_uint8": Recipe(n.preactivated, [(1, 3, 24, 24)], options=UINT8_WEIGHTS),
        "detector": Recipe(n.detector, [(1, 3, 48, 40)], 19, True),
        "detector_default": Recipe(n.detector, [(1, 3, 48, 40)], options=TENSOR, everything=False),
        "vision_transformer": Recipe(n.vision_transformer, IMAGE),
        "vision_transformer_dynamo": Recipe(n.vision_transformer, IMAGE, 23, True),
        "windowed": Recipe(n.windowed, IMAGE, 18, True),
        "convnext": Recipe(n.convnext, IMAGE, 20, True, UINT8),
        "bert": Recipe(n.bert, ["1x10"]),
        "bert_dynamo": Recipe(n.bert, ["1x10"], 18, True),
        "bert_default": Recipe(n.bert, ["1x10"], options=TENSOR, everything=False),
        "text_cnn": Recipe(n.text_cnn, ["1x12"], 12, options=TENSOR),
        "unrolled_gru": Recipe(n.unrolled_gru, [(1, 5, 6)]),
        "lstm": Recipe(n.lstm, [(1, 7, 5)]),
        "siamese": Recipe(n.siamese, [(1, 1, 8, 8), (1, 1, 8, 8)]),
        "autoencoder": Recipe(n.autoencoder, [(1, 65)], options=TENSOR),
        "autoencoder_int4": Recipe(n.autoencoder, [(1, 65)], 21, options=INT4, everything=False),
        "shufflenet_uint4": Recipe(n.shufflenet, IMAGE, 21, options=UINT4, everything=False),
        "autoencoder_batch": Recipe(n.autoencoder, [(4, 65)], 11, options=OPERATORS),
        "vit_tiny": Recipe(t.vit_tiny, [(1, 3, 64, 64)], 18, True),
        "keyword_transformer": Recipe(t.keyword_transformer, [(1, 98, 40)], 18, True),
        "tiny_bert": Recipe(t.tiny_bert, ["1x32"], 18, True),
        "tiny_llama": Recipe(t.tiny_llama, ["1x24"], 23, True),
        "mamba": Recipe(t.mamba, [(1, 16, 10)], 18, True),
        "conformer": Recipe(t.conformer, [(1, 160, 40)], 18, True),
        "unet_float": Recipe(n.unet, [(1, 1, 32, 24)], 18, True, None),
    }
)


def models() -> dict[str, Callable[[], bytes]]:
    """File names, and what makes each file's bytes."""
    return {f"torch_{name}.onnx": recipe.file for name, recipe in RECIPES.items()}
