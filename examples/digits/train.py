"""Train the digits network and write `digits_int8.tflite`, `digits_qdq.onnx`, `samples.npz`.

    python3.11 -m venv /path/to/venv
    /path/to/venv/bin/pip install tensorflow-cpu==2.21.0 onnx onnxruntime scikit-learn
    /path/to/venv/bin/python examples/digits/train.py

Seeded and run with TensorFlow's deterministic kernels. TensorFlow is needed here only: the project
itself does not depend on it, and the resulting files are in the repository.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import onnx
import onnxruntime
import tensorflow as tf
from network import keras_model, onnx_model, weights_of
from numpy.typing import NDArray
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = Path(__file__).resolve().parent
SEED, EPOCHS, BATCH = 2, 60, 32
GREY_LEVELS = 16  # the data set's pixels are 0..16
CALIBRATION_IMAGES = 300

Images = NDArray[np.float32]


def augment(image: Any, label: Any) -> tuple[Any, Any]:
    """One in four images moves by up to a pixel; all vary in contrast."""
    padded = tf.pad(image, [[1, 1], [1, 1], [0, 0]])
    shifted = tf.image.random_crop(padded, (8, 8, 1), seed=SEED)
    moved = tf.random.uniform((), seed=SEED) < 0.25
    gain = tf.random.uniform((), 0.8, 1.0, seed=SEED)
    return tf.where(moved, shifted, image) * gain, label


def train(images: Images, labels: NDArray[np.int64]) -> Any:
    model = keras_model()
    data = tf.data.Dataset.from_tensor_slices((images, labels))
    data = data.shuffle(len(images), seed=SEED).map(augment).batch(BATCH)
    steps = EPOCHS * -(-len(images) // BATCH)
    rate = tf.keras.optimizers.schedules.CosineDecay(4e-3, steps)
    model.compile(
        tf.keras.optimizers.Adam(rate), "sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    model.fit(data, epochs=EPOCHS, verbose=2)
    return model


def to_tflite(model: Any, calibration: Images) -> bytes:
    """Full int8, per-channel weights, int8 input and output, fixed batch of one."""

    def representative() -> Iterator[list[Images]]:
        for image in calibration:
            yield [image[None]]

    fixed = keras_model(batch_size=1)
    fixed.set_weights(model.get_weights())
    converter = tf.lite.TFLiteConverter.from_keras_model(fixed)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = representative
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = tf.int8
    converter.inference_output_type = tf.int8
    return bytes(converter.convert())


class Calibration(CalibrationDataReader):
    def __init__(self, images: Images) -> None:
        self._images = iter(images)

    def get_next(self) -> dict[str, Images] | None:
        image = next(self._images, None)
        return None if image is None else {"image": image[None]}


def to_qdq(model: onnx.ModelProto, calibration: Images, path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        raw, prepared = Path(folder) / "float.onnx", Path(folder) / "prepared.onnx"
        onnx.save(model, raw)
        quant_pre_process(raw, prepared)
        quantize_static(
            prepared,
            path,
            Calibration(calibration),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            activation_type=QuantType.QInt8,
            weight_type=QuantType.QInt8,
        )


def main() -> None:
    tf.keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    digits = load_digits()
    pixels = digits.images.astype(np.uint8)
    grey = (pixels / GREY_LEVELS).astype(np.float32)[..., None]
    training, test = train_test_split(
        np.arange(len(grey)), test_size=0.25, random_state=SEED, stratify=digits.target
    )
    model = train(grey[training], digits.target[training])
    calibration = grey[training[:CALIBRATION_IMAGES]]

    (HERE / "digits_int8.tflite").write_bytes(to_tflite(model, calibration))
    float_onnx = onnx_model(weights_of(model))
    to_qdq(float_onnx, calibration.transpose(0, 3, 1, 2), HERE / "digits_qdq.onnx")
    np.savez_compressed(
        HERE / "samples.npz", images=pixels[test], labels=digits.target[test].astype(np.uint8)
    )

    expected = np.asarray(model(grey[test], training=False))
    session = onnxruntime.InferenceSession(float_onnx.SerializeToString())
    (same,) = session.run(None, {"image": grey[test].transpose(0, 3, 1, 2)})
    if not np.allclose(expected, same, atol=1e-4):
        raise SystemExit("the ONNX network differs from the Keras network")
    correct = int((expected.argmax(1) == digits.target[test]).sum())
    print(f"parameters {model.count_params()}")
    print(f"float: {correct} of {len(test)} correct, {correct / len(test):.4f}")


if __name__ == "__main__":
    main()
