"""Clips of stored integers: quantisation to fewer than 8 bits, as QCDQ files of Brevitas have it.

QuantizeLinear, Clip and DequantizeLinear become a Clip of real values, stored before and behind it
with one scale: what it leaves out has no step between.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolchain.frontends.onnx.model import Node, names_of
from toolchain.frontends.onnx.operators.functions import CLIP
from toolchain.frontends.onnx.quantisation import DEQUANTIZE, QUANTIZE
from toolchain.frontends.onnx.shapes import ShapedModel


def clips_of_reals(shaped: ShapedModel) -> ShapedModel:
    """The model with clips of what QuantizeLinear gave as clips of real values."""
    model = shaped.model
    makers = {name: node for node in model.nodes for name in node.outputs if name}
    names, shapes, constants = names_of(model), dict(shaped.shapes), dict(model.constants)
    nodes: list[Node] = []
    for node in model.nodes:
        source = makers.get(node.inputs[0]) if node.operator == CLIP else None
        if source is None or source.operator != QUANTIZE or len(source.inputs) < 3:
            nodes.append(node)
            continue
        scale, zero_point = (constants.get(name) for name in source.inputs[1:3])
        ends = [constants.get(name) if name else None for name in (*node.inputs[1:], "", "")[:2]]
        if (
            scale is None
            or zero_point is None
            or scale.size != 1
            or zero_point.dtype.kind not in "iu"
        ):
            nodes.append(node)
            continue
        info = np.iinfo(str(zero_point.dtype))
        bounds = []
        for end, default in zip(ends, (info.min, info.max), strict=True):
            whole = default if end is None else int(end.reshape(())[()])
            bounds.append(names.fresh(f"{node.outputs[0]}/bound"))
            steps = np.float32(whole - int(zero_point.reshape(())[()]))
            constants[bounds[-1]] = np.asarray(steps * np.float32(scale.reshape(())[()]))
        real, clipped = (names.fresh(f"{node.outputs[0]}/{stem}") for stem in ("real", "clipped"))
        shapes |= dict.fromkeys((real, clipped), shapes[node.outputs[0]])
        parameters = source.inputs[1:3]
        nodes += [
            Node(
                node.index, DEQUANTIZE, f"{node.name}/real", (node.inputs[0], *parameters), (real,)
            ),
            replace(node, inputs=(real, *bounds), outputs=(clipped,)),
            Node(node.index, QUANTIZE, f"{node.name}/stored", (clipped, *parameters), node.outputs),
        ]
    if len(nodes) == len(model.nodes):
        return shaped
    return ShapedModel(replace(model, nodes=tuple(nodes), constants=constants), shapes)
