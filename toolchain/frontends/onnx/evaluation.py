"""Single operators computed on constants, by onnx's reference evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from toolchain.errors import InputError
from toolchain.frontends.onnx.model import Array, Node, forms_opset
from toolchain.frontends.onnx.protos import model_proto, node_proto, type_code
from toolchain.packages import ONNX, lazy

if TYPE_CHECKING:
    import onnx
    from onnx import reference
else:
    onnx = lazy("onnx", ONNX)
    reference = lazy("onnx.reference", ONNX)


def evaluate(node: Node, constants: Mapping[str, Array], opset: int) -> dict[str, Array]:
    """The outputs of a node for constant inputs, by name. Raises InputError if it cannot be
    computed.
    """
    feeds = {name: constants[name] for name in node.inputs if name}
    inputs = [
        onnx.helper.make_tensor_value_info(name, type_code(data), data.shape)
        for name, data in feeds.items()
    ]
    model = model_proto([node_proto(node)], inputs, node.outputs, forms_opset(opset))
    try:
        results = reference.ReferenceEvaluator(model).run(None, feeds)
    except Exception as error:  # whatever the operator's own implementation raises
        raise InputError(f"{node} cannot be computed from its constants") from error
    return {
        name: np.asarray(value) for name, value in zip(node.outputs, results, strict=True) if name
    }
