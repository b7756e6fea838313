"""The digits network, once in Keras and once in ONNX, from the same float weights.

Imported by `train.py` only; needs TensorFlow and ONNX (see README.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Weights = Mapping[str, tuple[NDArray[np.float32], NDArray[np.float32]]]
STEM_CHANNELS, BODY_CHANNELS, CLASSES, SIDE = 16, 32, 10, 8


def keras_model(batch_size: int | None = None) -> Any:
    """Input [1, 8, 8, 1], grey in 0..1; output [1, 10], class probabilities.

    A convolution, a residual depthwise-separable block, a strided convolution, a second residual
    block, global average, dense, softmax.
    """
    from keras import Input, Model, layers

    def block(x: Any, channels: int, name: str) -> Any:
        y = layers.DepthwiseConv2D(3, padding="same", activation="relu", name=f"{name}_depth")(x)
        y = layers.Conv2D(channels, 1, name=f"{name}_point")(y)
        return layers.ReLU(name=f"{name}_relu")(layers.Add(name=f"{name}_add")([x, y]))

    image = Input((SIDE, SIDE, 1), batch_size=batch_size, name="image")
    x = layers.Conv2D(STEM_CHANNELS, 3, padding="same", activation="relu", name="stem")(image)
    x = block(x, STEM_CHANNELS, "block1")
    x = layers.Conv2D(
        BODY_CHANNELS, 3, strides=2, padding="same", activation="relu", name="reduce"
    )(x)
    x = block(x, BODY_CHANNELS, "block2")
    x = layers.GlobalAveragePooling2D(name="average")(x)
    x = layers.Dense(CLASSES, name="dense")(x)
    return Model(image, layers.Softmax(name="probabilities")(x), name="digits")


def weights_of(model: Any) -> Weights:
    """Layer name to kernel (Keras layout) and bias."""
    return {
        layer.name: (layer.get_weights()[0], layer.get_weights()[1])
        for layer in model.layers
        if layer.get_weights()
    }


def onnx_model(weights: Weights) -> onnx.ModelProto:
    """The same network as a float ONNX model, NCHW: input [N, 1, 8, 8], output [N, 10]."""
    nodes, initialisers = [], []

    def constant(name: str, data: NDArray[np.float32]) -> str:
        initialisers.append(numpy_helper.from_array(np.ascontiguousarray(data), name))
        return name

    def conv(x: str, name: str, *, stride: int = 1, depthwise: bool = False) -> str:
        kernel, bias = weights[name]  # HWIO, or HWC1 where depthwise
        order = (2, 3, 0, 1) if depthwise else (3, 2, 0, 1)
        oihw = kernel.transpose(order)
        size = oihw.shape[2]
        # Keras' "same" pads the odd pixel at the bottom right: 0, 1 for stride 2 on an even side.
        before, after = ((0, 1) if stride == 2 else (1, 1)) if size == 3 else (0, 0)
        inputs = [x, constant(f"{name}_weights", oihw), constant(f"{name}_bias", bias)]
        nodes.append(
            helper.make_node(
                "Conv",
                inputs,
                [name],
                name,
                kernel_shape=[size, size],
                strides=[stride, stride],
                pads=[before, before, after, after],
                group=oihw.shape[0] if depthwise else 1,
            )
        )
        return name

    def node(kind: str, name: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def block(x: str, name: str) -> str:
        y = node("Relu", f"{name}_depth_relu", conv(x, f"{name}_depth", depthwise=True))
        y = conv(y, f"{name}_point")
        return node("Relu", f"{name}_relu", node("Add", f"{name}_add", x, y))

    x = node("Relu", "stem_relu", conv("image", "stem"))
    x = block(x, "block1")
    x = node("Relu", "reduce_relu", conv(x, "reduce", stride=2))
    x = block(x, "block2")
    x = node("Flatten", "flatten", node("GlobalAveragePool", "average", x))
    kernel, bias = weights["dense"]
    x = node("Gemm", "dense", x, constant("dense_weights", kernel), constant("dense_bias", bias))
    node("Softmax", "probabilities", x, axis=1)
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, ["N", 1, SIDE, SIDE])],
        [helper.make_tensor_value_info("probabilities", onnx.TensorProto.FLOAT, ["N", CLASSES])],
        initialisers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model
