"""What small networks rarely have, in Keras and TensorFlow: detectors' heads, recurrent layers,
spectra, integers, control flow, attention without BATCH_MATMUL, dynamic range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from benchmarks.ecosystem.tensorflow_common import net, randomised
from benchmarks.ecosystem.tensorflow_models import (
    TOOL,
    convert,
    dynamic_range,
    float_ends,
    int8,
    int16,
    mixed,
    uint8_ends,
    unquantised,
)

__all__ = ["TOOL", "models"]


def _values(*shape: int, seed: int = 3, scale: float = 1.0) -> Any:
    drawn = np.random.default_rng(seed).standard_normal(shape) * scale
    return tf.constant(drawn, tf.float32)


def _function(*shapes: tuple[int, ...], kind: Any = tf.float32) -> Callable[[Any], Any]:
    return tf.function(input_signature=[tf.TensorSpec(shape, kind) for shape in shapes])


def ssd_head() -> Any:
    """Features at two sizes, boxes and class scores concatenated, one sigmoid."""

    def body(x: Any) -> Any:
        first = layers.Conv2D(16, 3, strides=4, padding="same", activation="relu6")(x)
        second = layers.Conv2D(24, 3, strides=2, padding="same", activation="relu6")(first)
        boxes, scores = [], []
        for features in (first, second):
            deep = layers.DepthwiseConv2D(3, padding="same", activation="relu6")(features)
            boxes.append(layers.Reshape((-1, 4))(layers.Conv2D(12, 1)(deep)))
            scores.append(layers.Reshape((-1, 5))(layers.Conv2D(15, 1)(deep)))
        return [
            layers.Concatenate(axis=1)(boxes),
            ops.sigmoid(layers.Concatenate(axis=1)(scores)),
        ]

    return net(body, (48, 48, 3))


def yolo_v8_head() -> Any:
    """Distribution focal loss: softmax over 8 bins, its expectation, boxes from distances."""

    def body(x: Any) -> Any:
        x = layers.Conv2D(16, 3, strides=4, padding="same", activation="silu")(x)
        raw = layers.Reshape((64, 4 * 8 + 3))(layers.Conv2D(35, 1)(x))
        bins = ops.softmax(layers.Reshape((64, 4, 8))(raw[:, :, :32]))
        distance = ops.sum(bins * np.arange(8, dtype=np.float32), axis=-1)
        places = np.arange(8) + 0.5
        grid = np.stack(np.meshgrid(places, places), -1).reshape(1, 64, 2).astype(np.float32)
        low = ops.subtract(grid, distance[:, :, :2])
        high = ops.add(grid, distance[:, :, 2:])
        boxes = ops.concatenate([(low + high) * 0.5, high - low], axis=-1) * 4.0
        return ops.concatenate([boxes, ops.sigmoid(raw[:, :, 32:])], axis=-1)

    return net(body, (32, 32, 3))


def yolo_v5_head() -> Any:
    """Anchors: centres by sigmoid, sizes by its square."""

    def body(x: Any) -> Any:
        x = layers.Conv2D(16, 3, strides=8, padding="same", activation="silu")(x)
        raw = ops.sigmoid(layers.Reshape((6 * 6, 3, 7))(layers.Conv2D(21, 1)(x)))
        anchors = np.array([[10, 13], [16, 30], [33, 23]], np.float32).reshape(1, 1, 3, 2)
        steps = np.arange(6)
        grid = np.stack(np.meshgrid(steps, steps), -1).reshape(1, 36, 1, 2).astype(np.float32)
        centre = (raw[..., :2] * 2.0 - 0.5 + grid) * 8.0
        extent = ops.square(raw[..., 2:4] * 2.0) * anchors
        return layers.Reshape((108, 7))(ops.concatenate([centre, extent, raw[..., 4:]], axis=-1))

    return net(body, (48, 48, 3))


def computed_weights() -> Any:
    """Attention of one head as older converters write it: FULLY_CONNECTED of two activations."""

    @_function((1, 6, 8))
    def function(x: Any) -> Any:
        query = tf.reshape(x, (6, 8)) @ _values(8, 8)
        key = tf.reshape(x, (6, 8)) @ _values(8, 8, seed=4)
        scores = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) * 0.35)
        return tf.matmul(scores, tf.reshape(x, (6, 8)))

    return function


def einsums() -> Any:
    @_function((1, 5, 8), (1, 7, 8))
    def function(x: Any, y: Any) -> Any:
        a = tf.einsum("bic,bjc->bij", x, y)
        b = tf.einsum("bij,bjc->bic", a, y)
        return b, tf.einsum("bic,cd->bid", x, _values(8, 6)), tf.einsum("bic->bci", y)

    return function


def multi_head() -> Any:
    def body(x: Any) -> Any:
        seen = layers.MultiHeadAttention(2, 8)(x, x)
        x = layers.LayerNormalization()(x + seen)
        deep = layers.Dense(32, activation="gelu")(x)
        return layers.LayerNormalization()(x + layers.Dense(16)(deep))

    return net(body, (10, 16))


def lstm() -> Any:
    return net(lambda x: layers.Dense(4)(layers.LSTM(12)(x)), (9, 6))


def lstm_sequence() -> Any:
    return net(lambda x: layers.LSTM(10, return_sequences=True)(x), (7, 5))


def gru() -> Any:
    return net(lambda x: layers.Dense(3)(layers.GRU(8)(x)), (6, 5))


def simple_rnn() -> Any:
    return net(lambda x: layers.SimpleRNN(8)(x), (6, 5))


def time_distributed() -> Any:
    def body(x: Any) -> Any:
        x = layers.TimeDistributed(layers.Conv2D(4, 3, activation="relu"))(x)
        return layers.Dense(5)(layers.Flatten()(x))

    return net(body, (3, 8, 8, 2))


def conv_1d_causal() -> Any:
    def body(x: Any) -> Any:
        for rate in (1, 2, 4):
            y = layers.Conv1D(8, 3, padding="causal", dilation_rate=rate, activation="relu")(x)
            x = layers.Conv1D(8, 1)(x) + y
        return layers.GlobalAveragePooling1D()(x)

    return net(body, (40, 5))


def conv_3d() -> Any:
    def body(x: Any) -> Any:
        x = layers.Conv3D(6, 3, padding="same", activation="relu")(x)
        return layers.Conv3D(4, (2, 3, 1), strides=(1, 2, 1))(x)

    return net(body, (5, 8, 7, 3))


def spectrogram() -> Any:
    """A short-time Fourier transform, its magnitude, a mel filter bank."""

    @_function((1, 512))
    def function(x: Any) -> Any:
        seen = tf.abs(tf.signal.stft(x, 128, 64, 128))
        mel = tf.signal.linear_to_mel_weight_matrix(12, 65, 8000, 80, 3600)
        return tf.math.log(tf.matmul(seen, mel) + 1e-3)

    return function


def cumulative() -> Any:
    @_function((1, 6, 5))
    def function(x: Any) -> Any:
        return (
            tf.cumsum(x, 1),
            tf.cumsum(x, 2, exclusive=True),
            tf.cumsum(x, 1, reverse=True),
            tf.reduce_prod(x, 2),
        )

    return function


def integers() -> Any:
    @_function((1, 12), kind=tf.int32)
    def function(x: Any) -> Any:
        a = tf.math.floordiv(x, 5)
        b = tf.math.floormod(x * 3 - 7, 4)
        c = tf.where(x > 6, a + b, tf.maximum(a, b))
        return c, tf.cast(x < 9, tf.int32) * a, tf.cast(b, tf.float32) * 0.5, tf.abs(b - a)

    return function


def embeddings() -> Any:
    @_function((1, 8), kind=tf.int32)
    def function(x: Any) -> Any:
        seen = tf.nn.embedding_lookup(_values(24, 6), x)
        place = tf.range(8)
        seen = seen + tf.gather(_values(8, 6, seed=5), place)
        return tf.reduce_mean(seen, 1) @ _values(6, 4)

    return function


def one_hots() -> Any:
    @_function((1, 6), kind=tf.int32)
    def function(x: Any) -> Any:
        seen = tf.one_hot(x, 24)
        return tf.reshape(seen, (6, 24)) @ _values(24, 5)

    return function


def gathers() -> Any:
    @_function((1, 6, 5, 4))
    def function(x: Any) -> Any:
        a = tf.gather_nd(x, [[0, 1, 2], [0, 5, 0], [0, 3, 3]])
        b = tf.scatter_nd([[1], [4], [2]], a, (6, 4))
        c = tf.gather(x, [2, 0, 2], axis=3)
        return a, b, c, tf.reverse(x, [2]), tf.roll(x, 2, 1)

    return function


def top_k() -> Any:
    @_function((1, 17))
    def function(x: Any) -> Any:
        values, places = tf.math.top_k(tf.nn.softmax(x), 4)
        return values, places

    return function


def conditional() -> Any:
    """An IF whose condition depends on the input."""

    @_function((1, 8))
    def function(x: Any) -> Any:
        return tf.cond(
            tf.reduce_sum(x) > 0.0,
            lambda: tf.nn.relu(x @ _values(8, 8)),
            lambda: tf.tanh(x) * 0.5,
        )

    return function


def loop() -> Any:
    """A WHILE whose count depends on the input."""

    @_function((1, 6))
    def function(x: Any) -> Any:
        def going(i: Any, y: Any) -> Any:
            return tf.logical_and(i < 9, tf.reduce_max(tf.abs(y)) > 0.25)

        def again(i: Any, y: Any) -> Any:
            return i + 1, y * 0.75

        return tf.while_loop(going, again, (tf.constant(0), x))[1]

    return function


def counted_loop() -> Any:
    @_function((1, 6))
    def function(x: Any) -> Any:
        weight = _values(6, 6, scale=0.4)
        return tf.while_loop(
            lambda i, y: i < 4, lambda i, y: (i + 1, tf.tanh(y @ weight)), (tf.constant(0), x)
        )[1]

    return function


def pieces() -> Any:
    """int8 squares, powers, reciprocal roots, differences."""

    @_function((1, 5, 6))
    def function(x: Any) -> Any:
        positive = tf.nn.softplus(x) + 0.5
        return (
            tf.math.squared_difference(x, tf.reduce_mean(x, 2, keepdims=True)),
            tf.math.rsqrt(positive),
            tf.pow(positive, 1.7),
            tf.sqrt(positive),
            tf.math.divide(x, positive),
            tf.nn.l2_normalize(x, -1),
        )

    return function


def trigonometry() -> Any:
    @_function((1, 4, 7))
    def function(x: Any) -> Any:
        return (
            tf.sin(x),
            tf.cos(x * 2.0),
            tf.math.ceil(x),
            tf.floor(x),
            tf.round(x),
            tf.sign(x),
            tf.exp(-tf.abs(x)),
            tf.math.log1p(tf.abs(x)),
            tf.math.atan2(x, tf.abs(x) + 1.0),
        )

    return function


def selections() -> Any:
    @_function((1, 6, 4), (1, 6, 4))
    def function(x: Any, y: Any) -> Any:
        return (
            tf.where(x > y, x, y * 0.5),
            tf.cast(tf.logical_and(x > 0.0, y <= 0.5), tf.float32),
            tf.cast(tf.not_equal(tf.argmax(x, 2), tf.argmin(y, 2)), tf.float32),
            tf.clip_by_value(x, -0.4, 0.9),
        )

    return function


def constant_output() -> Any:
    """Anchors beside the predictions, as detectors export them."""

    @_function((1, 8))
    def function(x: Any) -> Any:
        return x @ _values(8, 12), tf.reshape(tf.range(12, dtype=tf.float32), (3, 4)) * 0.25

    return function


def transposed() -> Any:
    def body(x: Any) -> Any:
        x = layers.Conv2D(12, 3, strides=2, padding="same", activation="relu")(x)
        x = layers.Conv2DTranspose(8, 3, strides=2, padding="same", activation="relu")(x)
        return layers.Conv2DTranspose(3, 2, strides=2)(x)

    return net(body, (12, 12, 3))


def squeeze_excite() -> Any:
    def body(x: Any) -> Any:
        x = layers.Conv2D(16, 3, padding="same", activation="hard_swish")(x)
        y = layers.GlobalAveragePooling2D(keepdims=True)(x)
        y = layers.Conv2D(4, 1, activation="relu")(y)
        y = layers.Conv2D(16, 1, activation="hard_sigmoid")(y)
        return layers.Dense(5, activation="softmax")(layers.Flatten()(x * y))

    return net(body, (10, 10, 3))


def mixer() -> Any:
    """Dense layers over tokens, then over channels, with a transpose between."""

    def body(x: Any) -> Any:
        y = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        y = layers.Dense(9)(layers.Dense(18, activation="gelu")(y))
        x = x + layers.Permute((2, 1))(y)
        z = layers.Dense(24, activation="gelu")(layers.LayerNormalization()(x))
        return layers.GlobalAveragePooling1D()(x + layers.Dense(12)(z))

    return net(body, (9, 12))


def resnet_v2() -> Any:
    def body(x: Any) -> Any:
        x = layers.Conv2D(8, 3, padding="same")(x)
        for width, stride in ((8, 1), (16, 2), (24, 2)):
            y = layers.ReLU()(layers.BatchNormalization()(x))
            short = layers.Conv2D(width, 1, strides=stride)(y)
            y = layers.Conv2D(width, 3, strides=stride, padding="same", use_bias=False)(y)
            y = layers.ReLU()(layers.BatchNormalization()(y))
            x = short + layers.Conv2D(width, 3, padding="same")(y)
        return layers.Dense(10)(layers.GlobalMaxPooling2D()(x))

    return net(body, (24, 24, 3))


def fire() -> Any:
    """SqueezeNet's modules."""

    def body(x: Any) -> Any:
        x = layers.Conv2D(16, 3, strides=2, activation="relu")(x)
        for width in (8, 12):
            s = layers.Conv2D(width, 1, activation="relu")(x)
            a = layers.Conv2D(2 * width, 1, activation="relu")(s)
            b = layers.Conv2D(2 * width, 3, padding="same", activation="relu")(s)
            x = layers.MaxPooling2D(3, 2)(layers.Concatenate()([a, b]))
        return layers.GlobalAveragePooling2D()(layers.Conv2D(7, 1)(x))

    return net(body, (40, 40, 3))


def keypoints() -> Any:
    """Heat maps and each one's highest value."""

    def body(x: Any) -> Any:
        x = layers.Conv2D(12, 3, strides=2, padding="same", activation="relu")(x)
        x = layers.UpSampling2D(2, interpolation="bilinear")(x)
        heat = layers.Conv2D(5, 1)(x)
        return [heat, ops.max(layers.Reshape((-1, 5))(heat), axis=1)]

    return net(body, (16, 20, 3))


def doubled() -> Any:
    """A plain, a depthwise and a transposed convolution, each large enough for dynamic range."""

    def body(x: Any) -> Any:
        x = layers.Conv2D(48, 3, strides=2, padding="same", activation="relu")(x)
        x = layers.DepthwiseConv2D(5, padding="same", activation="relu6")(x)
        return layers.Conv2DTranspose(5, 3, strides=2, padding="same")(x)

    return net(body, (8, 10, 3))


def open_batch() -> Any:
    """Transposed convolutions whose output shapes are computed, since the batch is open."""

    def body(x: Any) -> Any:
        x = layers.Conv2D(6, 3, strides=2, padding="same", activation="relu")(x)
        x = layers.Conv2DTranspose(5, 3, strides=2, padding="same")(x)
        return layers.Conv2DTranspose(3, 2)(x)

    return net(body, (6, 8, 3), batch=None)


def open_sizes() -> Any:
    """An image of any size, down and up again: every size in the file follows from it."""
    keras.utils.set_random_seed(0)
    image = keras.Input((None, None, 3), name="image")
    y = layers.Conv2D(6, 3, strides=2, padding="same", activation="relu")(image)
    y = layers.Add()([y, layers.Conv2D(6, 3, padding="same")(y)])
    y = layers.Conv2DTranspose(3, 3, strides=2, padding="same")(layers.UpSampling2D(2)(y))
    return randomised(keras.Model(image, y))


def dynamic_lone_scales(converter: Any) -> None:
    """Dynamic range as older converters have it: one scale of all filters."""
    dynamic_range(converter)
    converter._experimental_disable_per_channel = True


_OPERATORS = (
    *("computed_weights", "einsums", "cumulative", "gathers", "top_k", "pieces", "trigonometry"),
    *("selections", "constant_output", "transposed", "conv_3d", "spectrogram", "conditional"),
    *("loop", "counted_loop", "embeddings", "one_hots", "open_batch", "open_sizes"),
)
_NETWORKS = (
    *("ssd_head", "yolo_v8_head", "yolo_v5_head", "multi_head", "mixer", "resnet_v2"),
    *("time_distributed", "conv_1d_causal", "squeeze_excite", "fire", "keypoints"),
)
_DYNAMIC = (
    *("ssd_head", "multi_head", "lstm", "lstm_sequence", "conv_1d_causal", "mixer", "resnet_v2"),
    *("fire", "computed_weights", "one_hots", "transposed"),
)
_FLOAT = (
    *("integers", "conv_3d", "spectrogram", "lstm", "gru", "simple_rnn", "conditional", "loop"),
    *("counted_loop", "pieces", "trigonometry", "top_k", "gathers", "cumulative", "selections"),
    *("yolo_v8_head", "einsums"),
)
_OTHERS = (
    *((name, int16) for name in ("ssd_head", "transposed")),
    *((name, uint8_ends) for name in ("ssd_head", "keypoints")),
    *((name, float_ends) for name in ("yolo_v5_head", "top_k", "spectrogram")),
    *((name, mixed) for name in ("multi_head", "conv_3d", "trigonometry")),
    *(("doubled", mode) for mode in (dynamic_range, dynamic_lone_scales)),
    *(("open_batch", mode) for mode in (dynamic_range, int16, unquantised)),
)


def models() -> dict[str, Callable[[], bytes]]:
    """File names, and what makes each file's bytes."""

    def made(name: str, mode: Callable[[Any], None]) -> Callable[[], bytes]:
        return lambda: convert(globals()[name](), mode)

    table = [
        *((name, int8) for name in (*_OPERATORS, *_NETWORKS)),
        *((name, dynamic_range) for name in _DYNAMIC),
        *((name, unquantised) for name in _FLOAT),
        *_OTHERS,
    ]
    return {f"tf_rare_{name}_{mode.__name__}.tflite": made(name, mode) for name, mode in table}
