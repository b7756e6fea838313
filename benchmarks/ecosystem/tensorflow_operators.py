"""Single operators at their corners, in Keras and TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from keras import layers, ops

from benchmarks.ecosystem.tensorflow_common import net


def conv_corners() -> Any:
    def body(x: Any) -> Any:
        a = layers.Conv2D(5, 2, strides=3, padding="valid")(x)
        b = layers.Conv2D(17, 3, dilation_rate=2, padding="same", activation="relu6")(x)
        b = layers.Conv2D(129, (1, 7), strides=(1, 2), padding="same")(b)
        b = layers.Conv2D(3, (7, 1), strides=(2, 1), padding="same", activation="relu")(b)
        c = layers.Conv2D(17, 1, strides=2)(x)
        c = layers.Conv2D(1, 4, strides=2, padding="same", use_bias=False)(c)
        return [a, b, c]

    return net(body, (23, 19, 3))


def depthwise_corners() -> Any:
    def body(x: Any) -> Any:
        a = layers.DepthwiseConv2D(3, depth_multiplier=3, padding="same")(x)
        a = layers.DepthwiseConv2D((5, 2), strides=(3, 3), activation="relu")(a)
        b = layers.DepthwiseConv2D(3, dilation_rate=3, padding="same")(x)
        b = layers.DepthwiseConv2D((1, 9), padding="same", activation="relu6")(b)
        c = layers.Conv2D(1, 1)(x)
        c = layers.DepthwiseConv2D(5, depth_multiplier=17, strides=2, padding="same")(c)
        return [a, b, c]

    return net(body, (21, 18, 5))


def grouped_conv() -> Any:
    def body(x: Any) -> Any:
        x = layers.Conv2D(12, 3, groups=3, padding="same", activation="relu")(x)
        return layers.Conv2D(8, 1, groups=4)(x)

    return net(body, (11, 10, 6))


def pools() -> Any:
    def body(x: Any) -> Any:
        a = layers.MaxPooling2D(2, strides=3)(x)
        b = layers.AveragePooling2D(3, strides=2, padding="same")(x)
        c = layers.AveragePooling2D((1, 5), strides=(2, 3))(x)
        d = layers.MaxPooling2D((4, 2), strides=1, padding="same")(x)
        return [a, b, c, d, layers.GlobalMaxPooling2D()(x), layers.GlobalAveragePooling2D()(x)]

    return net(body, (13, 14, 17))


def broadcasts() -> Any:
    rng = np.random.default_rng(2)

    def value(*shape: int) -> Any:
        return tf.constant(rng.standard_normal(shape), tf.float32)

    signature = [tf.TensorSpec((1, 6, 7, 5)), tf.TensorSpec((1, 1, 7, 1))]

    @tf.function(input_signature=signature)
    def function(x: Any, y: Any) -> Any:
        row = tf.reduce_mean(x, axis=1, keepdims=True)
        a = (x + y) * value(5)
        b = row - x
        c = 1.7 - a
        d = value(6, 1, 1) * b
        e = tf.maximum(d, y) + tf.minimum(x, value(1, 6, 1, 5))
        f = y - row
        return c, e, f * 0.3, tf.squeeze(y) + value(3, 1)

    return function


def zero_points() -> Any:
    """Ranges on one side of zero, tiny and huge ones, and a constant zero."""

    @tf.function(input_signature=[tf.TensorSpec((1, 8, 8, 3))])
    def function(x: Any) -> Any:
        positive = tf.nn.relu(x) + 5.0
        negative = -positive
        tiny = negative * 1e-4
        huge = positive * 3e4
        zero = x * 0.0
        mixed = tf.concat([positive, negative, tiny, zero], axis=-1)
        return mixed, huge, tf.nn.max_pool2d(negative, 2, 2, "SAME"), tf.reduce_sum(tiny, (1, 2))

    return function


def activations() -> Any:
    def body(x: Any) -> Any:
        x = layers.Dense(17)(x)
        kinds = ("relu", "relu6", "tanh", "sigmoid", "elu", "gelu", "swish", "leaky_relu")
        one = [layers.Activation(kind)(x) for kind in kinds]
        other = [layers.PReLU()(x), ops.hard_swish(x), ops.hard_sigmoid(x), ops.softmax(x)]
        return [*one, *other]

    return net(body, (9,))


def rare_activations() -> Any:
    def body(x: Any) -> Any:
        kinds = ("selu", "softplus", "softsign", "mish", "exponential", "silu", "log_softmax")
        return [layers.Activation(kind)(layers.Dense(7)(x)) for kind in kinds]

    return net(body, (9,))


def reductions() -> Any:
    weight = np.random.default_rng(3).standard_normal((1, 1, 5, 3)).astype(np.float32)

    @tf.function(input_signature=[tf.TensorSpec((1, 7, 6, 5))])
    def function(x: Any) -> Any:
        y = tf.nn.conv2d(x, weight, 1, "SAME")
        return (
            tf.reduce_mean(y, (1, 2)),
            tf.reduce_mean(y, 3, keepdims=True),
            tf.reduce_max(y, (2,)),
            tf.reduce_min(y, (1, 3)),
            tf.reduce_sum(y, (1, 2, 3)),
            tf.argmax(y, 3, output_type=tf.int32),
            tf.reduce_mean(y, (0, 1, 2, 3)),
        )

    return function


def movements() -> Any:
    @tf.function(input_signature=[tf.TensorSpec((1, 6, 8, 4))])
    def function(x: Any) -> Any:
        a = tf.transpose(x, (0, 3, 1, 2))
        b = tf.reshape(tf.transpose(tf.reshape(x, (6, 2, 4, 4)), (2, 0, 3, 1)), (1, 4, 48))
        c = x[:, 1:-1:2, ::-1, ..., 1]
        d = tf.stack(tf.unstack(x, axis=3)[::-1], axis=1)
        e = tf.concat([x[..., 2:], tf.tile(x[:, :, :, :1], (1, 1, 1, 3))], axis=3)
        f = tf.pad(x, [[0, 0], [2, 1], [0, 3], [1, 0]], constant_values=0.0)
        g = tf.pad(x, [[0, 0], [2, 1], [1, 3], [0, 0]], "REFLECT")
        h = tf.pad(x, [[0, 0], [2, 1], [1, 3], [0, 0]], "SYMMETRIC")
        i = tf.nn.depth_to_space(x, 2)
        j = tf.nn.space_to_depth(x, 2)
        k = tf.gather(x, [3, 0, 3, 1, 1], axis=2)
        one, two, three = tf.split(x, [1, 2, 1], axis=3)
        return a, b, c, d, e, f, g, h, i, j, k, two, one - three

    return function


def resizes() -> Any:
    @tf.function(input_signature=[tf.TensorSpec((1, 5, 7, 3))])
    def function(x: Any) -> Any:
        raw = tf.compat.v1.image
        return (
            tf.image.resize(x, (11, 13)),
            tf.image.resize(x, (10, 14), "nearest"),
            tf.image.resize(x, (3, 4)),
            raw.resize_bilinear(x, (9, 13), align_corners=True),
            raw.resize_nearest_neighbor(x, (9, 12), align_corners=True),
            raw.resize_bilinear(x, (10, 14)),
            raw.resize_nearest_neighbor(x, (7, 9)),
        )

    return function


def dense_corners() -> Any:
    def body(x: Any) -> Any:
        y = layers.Dense(129, use_bias=False, activation="relu")(x)
        y = layers.Dense(1)(y)
        z = layers.Dense(3, activation="softmax")(x)
        return [y, z]

    return net(body, (5, 17), batch=3)


def batch_norms() -> Any:
    """Batch normalisations that no convolution can take in."""

    def body(x: Any) -> Any:
        x = layers.BatchNormalization()(x)
        y = layers.Conv2D(8, 3, padding="same", activation="relu")(x)
        y = layers.BatchNormalization()(y)
        y = layers.MaxPooling2D()(y)
        y = layers.BatchNormalization(scale=False)(y)
        z = layers.BatchNormalization()(layers.GlobalAveragePooling2D()(y))
        return layers.Dense(4)(z)

    return net(body, (12, 12, 3))


def normalisations() -> Any:
    def body(x: Any) -> Any:
        a = layers.LayerNormalization()(x)
        b = layers.GroupNormalization(groups=4)(x)
        c = layers.UnitNormalization(axis=-1)(x)
        d = layers.LayerNormalization(axis=(1, 2), rms_scaling=False)(a)
        return [b, c, d]

    return net(body, (6, 6, 16))


def fake_quantised_int4() -> Any:
    """As below with weights of four bits."""
    rng = np.random.default_rng(10)
    first, last = (rng.standard_normal(shape) for shape in ((3, 3, 3, 8), (1, 1, 8, 5)))

    def narrow(values: Any) -> Any:
        peak = np.abs(values).max(axis=(0, 1, 2)).astype(np.float32)
        return tf.quantization.fake_quant_with_min_max_vars_per_channel(
            values.astype(np.float32), -peak, peak, num_bits=4, narrow_range=True
        )

    @tf.function(input_signature=[tf.TensorSpec((1, 12, 12, 3))])
    def function(x: Any) -> Any:
        x = tf.quantization.fake_quant_with_min_max_args(x, -2.0, 2.0)
        x = tf.nn.relu(tf.nn.conv2d(x, narrow(first), 2, "SAME"))
        x = tf.quantization.fake_quant_with_min_max_args(x, 0.0, 8.0)
        x = tf.nn.conv2d(x, narrow(last), 1, "SAME")
        return tf.quantization.fake_quant_with_min_max_args(x, -9.0, 9.0)

    return function


def fake_quantised() -> Any:
    """A network trained quantised: the ranges are in the graph, weights narrow."""
    rng = np.random.default_rng(9)
    shapes = ((3, 3, 3, 8), (3, 3, 8, 1), (1, 1, 8, 5))
    values = [0.4 * rng.standard_normal(shape).astype(np.float32) for shape in shapes]

    def act(x: Any, low: float, high: float) -> Any:
        return tf.quantization.fake_quant_with_min_max_args(x, low, high)

    def weight(index: int) -> Any:
        v = values[index]
        peak = np.abs(v).max(axis=tuple(range(v.ndim - 1))) if index != 1 else None
        if peak is None:
            low, high = -float(np.abs(v).max()), float(np.abs(v).max())
            return tf.quantization.fake_quant_with_min_max_vars(v, low, high, narrow_range=True)
        return tf.quantization.fake_quant_with_min_max_vars_per_channel(
            v, -peak, peak, narrow_range=True
        )

    @tf.function(input_signature=[tf.TensorSpec((1, 16, 16, 3))])
    def function(x: Any) -> Any:
        x = act(x, -2.0, 1.5)
        x = act(tf.nn.relu(tf.nn.conv2d(x, weight(0), 2, "SAME")), 0.0, 3.1)
        x = act(tf.nn.relu6(tf.nn.depthwise_conv2d(x, weight(1), [1, 1, 1, 1], "SAME")), 0.0, 6.0)
        x = act(tf.nn.conv2d(x, weight(2), 1, "VALID"), -4.0, 4.0)
        return act(tf.reduce_mean(x, (1, 2)), -1.0, 1.0)

    return function


def sqrt_and_division() -> Any:
    """A standard score with a square root and a division of two tensors."""

    @tf.function(input_signature=[tf.TensorSpec((1, 12, 5))])
    def function(x: Any) -> Any:
        mean, variance = tf.nn.moments(x, 1, keepdims=True)
        return (
            (x - mean) / tf.sqrt(variance + 0.01),
            tf.square(x),
            tf.abs(x),
            tf.math.log(x * x + 1.0),
        )

    return function


def volume() -> Any:
    """A 3-D convolution."""

    def body(x: Any) -> Any:
        return layers.Conv3D(3, 3)(x)

    return net(body, (6, 6, 6, 2))


def spectrum() -> Any:
    """A Fourier transform before the network."""

    @tf.function(input_signature=[tf.TensorSpec((1, 64))])
    def function(x: Any) -> Any:
        return tf.abs(tf.signal.rfft(x))

    return function


def linear_attention() -> Any:
    """Softmax over another axis than the last, einsums, a batch of matrices times one matrix."""
    rng = np.random.default_rng(8)
    weight = tf.constant(rng.standard_normal((6, 6)), tf.float32)

    @tf.function(input_signature=[tf.TensorSpec((1, 9, 3, 6)), tf.TensorSpec((1, 9, 6))])
    def function(x: Any, y: Any) -> Any:
        key = tf.nn.softmax(x, axis=1)
        context = tf.einsum("bnhd,bne->bhde", key, y)
        mixed = tf.einsum("bnhd,bhde->bnhe", tf.nn.softmax(x), context)
        return tf.matmul(mixed, weight), tf.matmul(y, y, transpose_a=True)

    return function


def super_resolution() -> Any:
    def body(x: Any) -> Any:
        y = layers.Conv2D(16, 5, padding="same", activation="tanh")(x)
        y = layers.Conv2D(12, 3, padding="same")(y)
        return ops.clip(layers.Lambda(lambda v: tf.nn.depth_to_space(v, 2))(y), 0.0, 1.0)

    return net(body, (20, 20, 3))
