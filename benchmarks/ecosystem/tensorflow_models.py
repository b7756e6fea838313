"""TensorFlow's converter in each of its modes, and the table of models that it makes here."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from benchmarks.ecosystem import tensorflow_networks as networks
from benchmarks.ecosystem import tensorflow_operators as operators
from benchmarks.ecosystem.tensorflow_common import samples

TOOL = f"TensorFlow {tf.__version__}"


def int8(converter: Any) -> None:
    """Whole integer quantisation with int8 ends, as most people ask for it."""
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8


def float_ends(converter: Any) -> None:
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]


def uint8_ends(converter: Any) -> None:
    int8(converter)
    converter.inference_input_type = converter.inference_output_type = tf.uint8


def per_tensor(converter: Any) -> None:
    int8(converter)
    converter._experimental_disable_per_channel = True


def int16(converter: Any) -> None:
    """16x8: int16 activations, int8 weights."""
    mode = tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
    converter.target_spec.supported_ops = [mode]
    converter.inference_input_type = converter.inference_output_type = tf.int16


def mixed(converter: Any) -> None:
    """int8 where there is a kernel, float elsewhere: the converter's default."""


def dynamic_range(converter: Any) -> None:
    converter.representative_dataset = None


def unquantised(converter: Any) -> None:
    converter.representative_dataset = None
    converter.optimizations = []


def convert(network: Any, mode: Callable[[Any], None] = int8) -> bytes:
    """The TFLite file of a Keras model or a tf.function with an input signature."""
    if isinstance(network, keras.Model):
        ends = [tf.TensorSpec(x.shape, x.dtype) for x in network.inputs]
        converter = tf.lite.TFLiteConverter.from_keras_model(network)
    else:
        concrete = network.get_concrete_function()
        ends = list(network.input_signature)
        converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete])
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: samples(ends)
    mode(converter)
    with contextlib.redirect_stdout(io.StringIO()):
        return bytes(converter.convert())


def low_bits(converter: Any) -> None:
    int8(converter)
    converter._experimental_low_bit_qat = True


OPERATORS = (
    *("conv_corners", "depthwise_corners", "grouped_conv", "pools", "broadcasts", "zero_points"),
    *("activations", "rare_activations", "reductions", "movements", "resizes", "dense_corners"),
    *("batch_norms", "normalisations", "linear_attention", "sqrt_and_division", "volume"),
    *("super_resolution", "spectrum", "fake_quantised"),
)
NETWORKS = (
    *("mobilenet_v3", "keras_mobilenet_v3", "efficientnet", "densenet", "shufflenet", "unet"),
    *("audio_tcn", "autoencoder", "detector", "vision_transformer", "bert", "siamese"),
    *("unrolled_lstm", "unrolled_gru", "bidirectional_lstm", "batch_of_four"),
)
OTHER_MODES = (
    ("fake_quantised_int4", low_bits),
    *((name, int16) for name in ("unet", "densenet", "conv_corners", "autoencoder")),
    *((name, int16) for name in ("unrolled_lstm", "bert", "broadcasts")),
    ("densenet", uint8_ends),
    ("detector", float_ends),
    ("shufflenet", per_tensor),
    *((name, mixed) for name in ("vision_transformer", "rare_activations")),
    *((name, dynamic_range) for name in ("mobilenet_v3", "bert")),
    *((name, unquantised) for name in ("autoencoder", "rolled_gru")),
)


def models() -> dict[str, Callable[[], bytes]]:
    """File names, and what makes each file's bytes."""

    def made(name: str, mode: Callable[[Any], None]) -> Callable[[], bytes]:
        home = networks if hasattr(networks, name) else operators
        return lambda: convert(getattr(home, name)(), mode)

    found = {f"tf_{name}.tflite": made(name, int8) for name in (*OPERATORS, *NETWORKS)}
    for name, mode in OTHER_MODES:
        found[f"tf_{name}_{mode.__name__}.tflite"] = made(name, mode)
    return found
