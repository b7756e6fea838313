"""Small networks in Keras and TensorFlow, each unlike the others."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from benchmarks.ecosystem.tensorflow_common import INDICES, net, randomised


def _hard_block(x: Any, expanded: int, out: int, kernel: int, stride: int, act: Any) -> Any:
    y = act(layers.BatchNormalization()(layers.Conv2D(expanded, 1, use_bias=False)(x)))
    y = layers.DepthwiseConv2D(kernel, strides=stride, padding="same", use_bias=False)(y)
    y = act(layers.BatchNormalization()(y))
    s = layers.GlobalAveragePooling2D(keepdims=True)(y)
    s = layers.Conv2D(max(expanded // 4, 1), 1, activation="relu")(s)
    s = ops.hard_sigmoid(layers.Conv2D(expanded, 1)(s))
    y = layers.BatchNormalization()(layers.Conv2D(out, 1, use_bias=False)(y * s))
    return x + y if stride == 1 and x.shape[-1] == out else y


def mobilenet_v3() -> Any:
    def body(x: Any) -> Any:
        y = ops.hard_swish(layers.Conv2D(8, 3, strides=2, padding="same")(x))
        y = _hard_block(y, 16, 8, 3, 1, ops.relu)
        y = _hard_block(y, 24, 12, 5, 2, ops.hard_swish)
        y = _hard_block(y, 40, 12, 5, 1, ops.hard_swish)
        y = ops.hard_swish(layers.Dense(33)(layers.GlobalAveragePooling2D()(y)))
        return layers.Dense(10, activation="softmax")(y)

    return net(body, (48, 48, 3))


def keras_mobilenet_v3() -> Any:
    keras.utils.set_random_seed(3)
    made = keras.applications.MobileNetV3Small(
        (64, 64, 3), 0.35, weights=None, classes=17, minimalistic=False
    )
    image = keras.Input((64, 64, 3), batch_size=1)
    return randomised(keras.Model(image, made(image)), 3)


def efficientnet() -> Any:
    """Swish, squeeze and excitation, a rescaling and a normalisation inside the network."""
    keras.utils.set_random_seed(4)
    made = keras.applications.EfficientNetB0(weights=None, input_shape=(32, 32, 3), classes=5)
    image = keras.Input((32, 32, 3), batch_size=1)
    return randomised(keras.Model(image, made(image)), 4)


def densenet() -> Any:
    """Concatenations of ever more maps, each a batch normalisation of its own."""

    def body(x: Any) -> Any:
        x = layers.Conv2D(8, 3, strides=2, padding="same")(x)
        for _ in range(4):
            y = layers.Activation("relu")(layers.BatchNormalization()(x))
            y = layers.Conv2D(5, 3, padding="same", use_bias=False)(y)
            x = layers.Concatenate()([x, y])
        return layers.Dense(3)(layers.GlobalAveragePooling2D()(x))

    return net(body, (24, 24, 3))


def shufflenet() -> Any:
    def shuffle(x: Any) -> Any:
        _, h, w, c = x.shape
        x = layers.Permute((1, 2, 4, 3))(layers.Reshape((h, w, 2, c // 2))(x))
        return layers.Reshape((h, w, c))(x)

    def body(x: Any) -> Any:
        x = layers.Conv2D(24, 3, strides=2, padding="same", activation="relu")(x)
        for _ in range(3):
            left, right = ops.split(x, 2, axis=-1)
            right = layers.Conv2D(12, 1, activation="relu")(right)
            right = layers.BatchNormalization()(
                layers.DepthwiseConv2D(3, padding="same", use_bias=False)(right)
            )
            right = layers.Conv2D(12, 1, activation="relu")(right)
            x = shuffle(layers.Concatenate()([left, right]))
        return layers.Dense(7)(layers.GlobalAveragePooling2D()(x))

    return net(body, (32, 32, 3))


def unet() -> Any:
    def body(x: Any) -> Any:
        def twice(y: Any, n: int) -> Any:
            for _ in range(2):
                y = layers.Conv2D(n, 3, padding="same", use_bias=False)(y)
                y = layers.Activation("relu")(layers.BatchNormalization()(y))
            return y

        one = twice(x, 6)
        two = twice(layers.MaxPooling2D()(one), 12)
        three = twice(layers.MaxPooling2D()(two), 20)
        up = layers.Conv2DTranspose(12, 2, strides=2)(three)
        up = twice(layers.Concatenate()([up, two]), 12)
        up = layers.UpSampling2D(2, interpolation="bilinear")(up)
        up = twice(layers.Concatenate()([up, one]), 6)
        up = layers.Conv2DTranspose(3, 3, strides=2, padding="same")(up)
        return layers.Softmax()(up)

    return net(body, (32, 24, 1))


def audio_tcn() -> Any:
    """Causal, dilated 1-D convolutions with residuals: the converter writes them as 2-D ones."""

    def body(x: Any) -> Any:
        x = layers.Conv1D(16, 1)(x)
        for rate in (1, 2, 4):
            y = layers.Conv1D(16, 3, padding="causal", dilation_rate=rate, activation="relu")(x)
            y = layers.BatchNormalization()(y)
            x = layers.Add()([x, layers.Conv1D(16, 1)(y)])
        x = layers.SeparableConv1D(24, 5, strides=2, padding="same", activation="relu")(x)
        x = layers.MaxPooling1D(3)(x)
        return layers.Dense(11, activation="softmax")(layers.GlobalAveragePooling1D()(x))

    return net(body, (64, 10))


def autoencoder() -> Any:
    def body(x: Any) -> Any:
        for width in (129, 17, 3, 17, 129):
            x = layers.Activation("relu")(layers.BatchNormalization()(layers.Dense(width)(x)))
        return layers.Dense(65)(x)

    return net(body, (65,))


def detector() -> Any:
    """An anchor-free head on two scales: boxes, scores and features, each an output."""

    def body(x: Any) -> Any:
        def block(y: Any, n: int, stride: int = 1) -> Any:
            y = layers.Conv2D(n, 3, strides=stride, padding="same", use_bias=False)(y)
            return layers.LeakyReLU(0.1)(layers.BatchNormalization()(y))

        y = block(block(x, 8, 2), 16, 2)
        small = block(layers.MaxPooling2D(2, strides=1, padding="same")(y), 24, 2)
        large = layers.Concatenate()([layers.UpSampling2D()(block(small, 8)), y])
        boxes, scores = [], []
        for level, size in ((small, 24), (large, 16)):
            out = layers.Conv2D(3 * 7, 1)(block(level, size))
            out = layers.Reshape((-1, 7))(out)
            boxes.append(layers.Activation("sigmoid")(out[..., :2]) * 2.0 - 0.5)
            boxes.append(ops.exp(ops.clip(out[..., 2:4], -2.0, 2.0)))
            scores.append(layers.Activation("sigmoid")(out[..., 4:]))
        centres = layers.Concatenate(axis=1)(boxes[::2])
        sizes = layers.Concatenate(axis=1)(boxes[1::2])
        best = ops.max(layers.Concatenate(axis=1)(scores), axis=-1)
        return [layers.Concatenate()([centres, sizes]), best, small]

    return net(body, (48, 40, 3))


def vision_transformer() -> Any:
    def body(x: Any) -> Any:
        y = layers.Reshape((16, 24))(layers.Conv2D(24, 8, strides=8)(x))
        y = layers.Dense(24)(y) + ops.convert_to_tensor(_positions(16, 24))
        for _ in range(2):
            z = layers.LayerNormalization()(y)
            y = y + layers.MultiHeadAttention(3, 8)(z, z)
            z = layers.Dense(48, activation="gelu")(layers.LayerNormalization()(y))
            y = y + layers.Dense(24)(z)
        return layers.Dense(5)(ops.mean(layers.LayerNormalization()(y), axis=1))

    return net(body, (32, 32, 3))


def _positions(tokens: int, width: int) -> Any:
    return np.random.default_rng(5).standard_normal((1, tokens, width)).astype(np.float32)


def bert() -> Any:
    """An encoder of words: embeddings, masked nowhere, gelu by tanh, the first token's class."""
    rng = np.random.default_rng(6)

    def value(*shape: int) -> Any:
        scale = shape[0] ** -0.5 if len(shape) > 1 else 0.3
        return tf.constant(scale * rng.standard_normal(shape), tf.float32)

    words, places = value(INDICES, 32) * 4.0, value(10, 32)
    layer = [[value(32, 32) for _ in range(4)] + [value(32, 64), value(64, 32)] for _ in range(2)]
    norms = [(1.0 + value(32), value(32)) for _ in range(5)]
    out = value(32, 2)

    def norm(x: Any, which: int) -> Any:
        mean = tf.reduce_mean(x, -1, keepdims=True)
        spread = tf.reduce_mean(tf.math.squared_difference(x, mean), -1, keepdims=True)
        return (x - mean) * tf.math.rsqrt(spread + 1e-6) * norms[which][0] + norms[which][1]

    def heads(x: Any) -> Any:
        return tf.transpose(tf.reshape(x, (1, 10, 4, 8)), (0, 2, 1, 3))

    @tf.function(input_signature=[tf.TensorSpec((1, 10), tf.int32)])
    def function(tokens: Any) -> Any:
        x = norm(tf.gather(words, tokens) + places, 0)
        for number, (q, k, v, o, up, down) in enumerate(layer):
            query, key, mixed = (heads(tf.matmul(x, w)) for w in (q, k, v))
            scores = tf.matmul(query, key, transpose_b=True) * (8**-0.5)
            seen = tf.transpose(tf.matmul(tf.nn.softmax(scores), mixed), (0, 2, 1, 3))
            x = norm(x + tf.matmul(tf.reshape(seen, (1, 10, 32)), o), 1 + 2 * number)
            y = tf.matmul(tf.nn.gelu(tf.matmul(x, up), approximate=True), down)
            x = norm(x + y, 2 + 2 * number)
        return tf.matmul(x[:, 0], out)

    return function


def bidirectional_lstm() -> Any:
    """Both directions, unrolled; the backward one reverses its steps."""

    def body(x: Any) -> Any:
        both = layers.Bidirectional(layers.LSTM(6, return_sequences=True, unroll=True))(x)
        return layers.Dense(3)(both)

    return net(body, (5, 4))


def unrolled_lstm() -> Any:
    def body(x: Any) -> Any:
        return layers.Dense(3)(layers.LSTM(8, unroll=True)(x))

    return net(body, (4, 5))


def unrolled_gru() -> Any:
    def body(x: Any) -> Any:
        return layers.Dense(3)(layers.GRU(8, unroll=True)(x))

    return net(body, (4, 5))


def rolled_gru() -> Any:
    """A loop in the file."""

    def body(x: Any) -> Any:
        return layers.GRU(6)(x)

    return net(body, (4, 5))


def siamese() -> Any:
    """Two inputs through one shared trunk, their difference and their likeness."""

    def body(x: Any, y: Any) -> Any:
        trunk = keras.Sequential(
            [layers.Conv2D(6, 3, activation="relu"), layers.Flatten(), layers.Dense(9)]
        )
        one, two = trunk(x), trunk(y)
        return [ops.abs(one - two), ops.sum(one * two, axis=-1), one]

    return net(body, (8, 8, 1), (8, 8, 1))


def batch_of_four() -> Any:
    def body(x: Any) -> Any:
        y = layers.Conv2D(5, 3, strides=2, activation="relu")(x)
        y = layers.DepthwiseConv2D(3, padding="same")(y)
        return layers.Dense(3)(layers.Flatten()(layers.AveragePooling2D(2)(y)))

    return net(body, (11, 11, 2), batch=4)
