"""Keras 2's networks: its recurrent layers become fused operators of TFLite, and its own
applications are what most models in the field were made from."""

from __future__ import annotations

import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import contextlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras as keras
from tf_keras import layers

TOOL = f"TensorFlow {tf.__version__}, tf_keras {keras.__version__}"
_SAMPLES = 6


def _net(body: Callable[[Any], Any], *shape: int) -> Any:
    keras.utils.set_random_seed(0)
    source = keras.Input(shape, batch_size=1)
    return keras.Model(source, body(source))


def lstm() -> Any:
    return _net(lambda x: layers.Dense(4, activation="softmax")(layers.LSTM(12)(x)), 9, 6)


def lstm_sequence() -> Any:
    return _net(lambda x: layers.LSTM(10, return_sequences=True)(x), 7, 5)


def stacked_lstm() -> Any:
    def body(x: Any) -> Any:
        return layers.Dense(3)(layers.LSTM(6)(layers.LSTM(8, return_sequences=True)(x)))

    return _net(body, 6, 5)


def bidirectional_lstm() -> Any:
    return _net(lambda x: layers.Dense(3)(layers.Bidirectional(layers.LSTM(6))(x)), 6, 5)


def gru() -> Any:
    return _net(lambda x: layers.Dense(3)(layers.GRU(8)(x)), 6, 5)


def conv_lstm() -> Any:
    def body(x: Any) -> Any:
        x = layers.Conv1D(8, 5, strides=2, activation="relu")(x)
        return layers.Dense(5)(layers.LSTM(8)(x))

    return _net(body, 24, 3)


def _application(make: Callable[..., Any], size: int, **more: Any) -> Any:
    keras.utils.set_random_seed(0)
    shape = (size, size, 3)
    network = make(input_shape=shape, weights=None, classes=10, **more)
    _normalise(network, shape)
    return _net(network, *shape)


def _normalise(network: Any, shape: tuple[int, ...]) -> None:
    """Means and variances of random images, as training leaves them; else activations vanish."""
    for layer in network.layers:
        if isinstance(layer, layers.BatchNormalization):
            layer.momentum = 0.0
    network(np.random.default_rng(2).standard_normal((8, *shape)), training=True)


def mobilenet_v1() -> Any:
    return _application(keras.applications.MobileNet, 64, alpha=0.25)


def mobilenet_v2() -> Any:
    return _application(keras.applications.MobileNetV2, 64, alpha=0.35)


def mobilenet_v3() -> Any:
    small = keras.applications.MobileNetV3Small
    return _application(small, 64, alpha=0.75, include_preprocessing=False)


def convert(network: Any, mode: str) -> bytes:
    """`mode`: int8, float_ends, dynamic_range, unquantised or int16."""
    shape = network.inputs[0].shape
    rng = np.random.default_rng(1)
    drawn = [rng.standard_normal(shape).astype(np.float32) for _ in range(_SAMPLES)]
    converter = tf.lite.TFLiteConverter.from_keras_model(network)
    ops = tf.lite.OpsSet
    if mode != "unquantised":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if mode in ("int8", "float_ends", "int16"):
        converter.representative_dataset = lambda: ([value] for value in drawn)
        sixteen = ops.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        wanted = sixteen if mode == "int16" else ops.TFLITE_BUILTINS_INT8
        converter.target_spec.supported_ops = [wanted]
    if mode == "int8":
        converter.inference_input_type = converter.inference_output_type = tf.int8
    with contextlib.redirect_stdout(io.StringIO()):
        return bytes(converter.convert())


_TABLE = (
    *(
        (name, "int8")
        for name in (
            *("lstm", "lstm_sequence", "stacked_lstm", "conv_lstm", "bidirectional_lstm"),
            *("mobilenet_v1", "mobilenet_v2", "mobilenet_v3"),
        )
    ),
    *((name, "int16") for name in ("mobilenet_v1", "mobilenet_v2")),
    *((name, "float_ends") for name in ("conv_lstm", "mobilenet_v1")),
    *((name, "dynamic_range") for name in ("lstm", "gru", "bidirectional_lstm", "mobilenet_v2")),
    *((name, "unquantised") for name in ("lstm", "bidirectional_lstm", "gru", "conv_lstm")),
)


def models() -> dict[str, Callable[[], bytes]]:
    """File names, and what makes each file's bytes."""

    def made(name: str, mode: str) -> Callable[[], bytes]:
        return lambda: convert(globals()[name](), mode)

    return {f"keras2_{name}_{mode}.tflite": made(name, mode) for name, mode in _TABLE}
