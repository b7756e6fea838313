"""One small Keras network for each row of `benchmarks/layer_matrix.py`: the layer between others
that have int8 kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import keras
import tensorflow as tf
from keras import layers, ops

from benchmarks.ecosystem.tensorflow_common import INDICES, net

Layer = Callable[[Any], Any]
Network = Callable[[], Any]
IMAGE = (16, 12, 3)
SOUND = (24, 5)
STEPS = (7, 6)
ROW = (20,)


def _on_image(make: Callable[[], Layer]) -> Network:
    """The layer behind a convolution to 8 channels, before another."""

    def body(x: Any) -> Any:
        y = make()(layers.Conv2D(8, 3, padding="same")(x))
        return layers.Conv2D(4, 1)(y)

    return lambda: net(body, IMAGE)


def _on_sound(make: Callable[[], Layer]) -> Network:
    return lambda: net(lambda x: layers.Conv1D(4, 1)(make()(layers.Conv1D(8, 3)(x))), SOUND)


def _on_row(make: Callable[[], Layer]) -> Network:
    return lambda: net(lambda x: layers.Dense(5)(make()(layers.Dense(16)(x))), ROW)


def _on_steps(make: Callable[[], Layer]) -> Network:
    """The layer over steps of 6 features, before a dense one."""
    return lambda: net(lambda x: layers.Dense(3)(make()(x)), STEPS)


def _function(body: Layer) -> Network:
    return _on_image(lambda: body)


def _three_dimensions() -> Any:
    def body(x: Any) -> Any:
        y = layers.Conv3D(4, 3, padding="same", activation="relu")(x)
        return layers.Conv3D(3, 2)(y)

    return net(body, (5, 6, 7, 2))


def _words() -> Any:
    keras.utils.set_random_seed(0)
    words = keras.Input((9,), batch_size=1, dtype="int32")
    y = layers.Flatten()(layers.Embedding(INDICES, 8)(words))
    return keras.Model(words, layers.Dense(4)(y))


def _attention(make: Callable[[], Any]) -> Network:
    def body(x: Any) -> Any:
        y = layers.Dense(8)(x)
        return layers.Dense(3)(make()(y, y))

    return lambda: net(body, STEPS)


def _dot_products(x: Any) -> Any:
    q, k, v = (layers.Dense(8)(x) for _ in range(3))
    return layers.Attention(use_scale=True)([q, v, k])


def _transformer(x: Any) -> Any:
    y = layers.Dense(8)(x)
    z = layers.LayerNormalization()(y)
    y = y + layers.MultiHeadAttention(2, 4)(z, z)
    z = layers.Dense(16, activation="gelu")(layers.LayerNormalization()(y))
    return y + layers.Dense(8)(z)


def _squeeze(x: Any) -> Any:
    y = layers.GlobalAveragePooling2D(keepdims=True)(x)
    y = layers.Dense(8, activation="sigmoid")(layers.Dense(4, activation="relu")(y))
    return x * y


def _gated(x: Any) -> Any:
    one, two = ops.split(x, 2, axis=-1)
    return one * ops.sigmoid(two)


def _moments(x: Any) -> Any:
    return x - ops.mean(x, (1, 2), keepdims=True) + ops.var(x, (1, 2), keepdims=True)


def _arg_max() -> Any:
    row = layers.Lambda(lambda x: tf.argmax(x, -1))  # keras.ops.argmax has BitwiseAnd, TFLite not
    return net(lambda x: row(layers.Dense(7)(x)), ROW)


def _rearranged(x: Any) -> Any:
    return layers.Permute((2, 1, 3))(layers.Reshape((12, 16, 8))(x))


def _activation(function: Layer | str) -> Network:
    return _on_image(lambda: layers.Activation(function))


NETWORKS: Mapping[str, Network] = MappingProxyType(
    {
        "dense": _on_row(lambda: layers.Dense(16)),
        "convolution, 1-D": _on_sound(lambda: layers.Conv1D(8, 5, strides=2)),
        "convolution, 2-D": _on_image(lambda: layers.Conv2D(8, 3, strides=2)),
        "convolution, 3-D": _three_dimensions,
        "convolution, dilated": _on_image(lambda: layers.Conv2D(8, 3, dilation_rate=2)),
        "convolution, depthwise": _on_image(lambda: layers.DepthwiseConv2D(3)),
        "convolution, separable": _on_image(lambda: layers.SeparableConv2D(8, 3)),
        "convolution, in groups": _on_image(lambda: layers.Conv2D(8, 3, groups=2)),
        "transposed convolution, 1-D": _on_sound(lambda: layers.Conv1DTranspose(4, 4, strides=2)),
        "transposed convolution, 2-D": _on_image(
            lambda: layers.Conv2DTranspose(8, 3, strides=2, padding="same")
        ),
        "batch normalisation": _on_image(
            lambda: lambda x: layers.BatchNormalization()(layers.ReLU()(x))
        ),
        "layer normalisation": _on_row(layers.LayerNormalization),
        "group normalisation": _on_image(lambda: layers.GroupNormalization(2)),
        "instance normalisation": _on_image(lambda: layers.GroupNormalization(-1)),
        "RMS normalisation": _on_row(layers.RMSNormalization),
        "unit length": _on_image(layers.UnitNormalization),
        "maximum pooling, 1-D": _on_sound(lambda: layers.MaxPooling1D(3, 2)),
        "maximum pooling, 2-D": _on_image(lambda: layers.MaxPooling2D(3, 2, padding="same")),
        "average pooling, 2-D": _on_image(lambda: layers.AveragePooling2D(2)),
        "average pooling, global": _on_image(lambda: layers.GlobalAveragePooling2D(keepdims=True)),
        "maximum pooling, global": _on_image(lambda: layers.GlobalMaxPooling2D(keepdims=True)),
        "average pooling, adaptive": _on_image(lambda: layers.AdaptiveAveragePooling2D((4, 3))),
        "embedding": _words,
        "recurrent, simple": _on_steps(lambda: layers.SimpleRNN(8)),
        "GRU": _on_steps(lambda: layers.GRU(8)),
        "GRU, two layers": _on_steps(
            lambda: lambda x: layers.GRU(8)(layers.GRU(8, return_sequences=True)(x))
        ),
        "LSTM": _on_steps(lambda: layers.LSTM(8)),
        "LSTM, bidirectional": _on_steps(
            lambda: layers.Bidirectional(layers.LSTM(4, return_sequences=True))
        ),
        "LSTM cell, unrolled": _on_steps(lambda: layers.LSTM(8, unroll=True)),
        "attention, multi-head": _attention(lambda: layers.MultiHeadAttention(2, 4)),
        "attention, dot products": _on_steps(lambda: _dot_products),
        "transformer's layer": _on_steps(lambda: _transformer),
        "squeeze and excitation": _function(_squeeze),
        "ReLU": _activation("relu"),
        "ReLU6": _activation("relu6"),
        "leaky ReLU": _on_image(lambda: layers.LeakyReLU(0.1)),
        "PReLU": _on_image(lambda: layers.PReLU(shared_axes=[1, 2])),
        "ELU": _activation("elu"),
        "SELU": _activation("selu"),
        "GELU": _activation("gelu"),
        "GELU by tanh": _activation(lambda x: ops.gelu(x, approximate=True)),
        "SiLU": _activation("silu"),
        "hard swish": _activation("hard_swish"),
        "sigmoid": _activation("sigmoid"),
        "tanh": _activation("tanh"),
        "softplus": _activation("softplus"),
        "mish": _activation("mish"),
        "GLU": _function(_gated),
        "softmax": _on_row(layers.Softmax),
        "log softmax": _on_row(lambda: layers.Activation("log_softmax")),
        "up-sampling, nearest": _on_image(layers.UpSampling2D),
        "up-sampling, bilinear": _on_image(lambda: layers.UpSampling2D(interpolation="bilinear")),
        "depth to space": _on_image(lambda: layers.Lambda(lambda x: tf.nn.depth_to_space(x, 2))),
        "padding by zeros": _on_image(lambda: layers.ZeroPadding2D(((0, 3), (1, 2)))),
        "padding by reflection": _function(
            lambda x: ops.pad(x, [[0, 0], [2, 2], [2, 2], [0, 0]], mode="reflect")
        ),
        "cropping": _on_image(lambda: layers.Cropping2D(((2, 3), (1, 1)))),
        "sum and product of branches": _function(lambda x: x * ops.sigmoid(x) + x),
        "concatenation": _function(lambda x: layers.Concatenate()([x, ops.relu(x)])),
        "permutation and reshaping": _function(_rearranged),
        "mean and variance": _function(_moments),
        "cumulative sum": _function(lambda x: ops.cumsum(x, 1)),
        "arg max": _arg_max,
    }
)
"""By row, what makes a network."""
