"""Accuracy of the two quantised digits models on the held-out images in `samples.npz`.

    python examples/digits/evaluate.py

LiteRT runs its reference kernels, ONNX Runtime its default ones.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
GREY_LEVELS = 16  # pixels are 0..16


def held_out() -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Images [n, 8, 8, 1] with grey in 0..1, and their labels [n]."""
    with np.load(HERE / "samples.npz") as samples:
        grey = (samples["images"] / GREY_LEVELS).astype(np.float32)[..., None]
        return grey, samples["labels"]


def litert_classes(images: NDArray[np.float32]) -> NDArray[np.int64]:
    """The class that `digits_int8.tflite` gives each image."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        str(HERE / "digits_int8.tflite"),
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
    )
    interpreter.allocate_tensors()
    (source,), (target,) = interpreter.get_input_details(), interpreter.get_output_details()
    scale, zero_point = source["quantization"]
    quantised = np.clip(np.round(images / scale) + zero_point, -128, 127).astype(np.int8)
    classes = []
    for image in quantised:
        interpreter.set_tensor(source["index"], image[None])
        interpreter.invoke()
        classes.append(int(interpreter.get_tensor(target["index"])[0].argmax()))
    return np.array(classes)


def onnxruntime_classes(images: NDArray[np.float32]) -> NDArray[np.int64]:
    """The class that `digits_qdq.onnx` gives each image."""
    import onnxruntime

    session = onnxruntime.InferenceSession(
        str(HERE / "digits_qdq.onnx"), providers=["CPUExecutionProvider"]
    )
    (scores,) = session.run(None, {"image": images.transpose(0, 3, 1, 2)})
    classes: NDArray[np.int64] = scores.argmax(axis=1)
    return classes


def main() -> None:
    images, labels = held_out()
    for name, classify in (("LiteRT", litert_classes), ("ONNX Runtime", onnxruntime_classes)):
        correct = int((classify(images) == labels).sum())
        print(f"{name}: {correct} of {len(labels)} correct, {correct / len(labels):.4f}")


if __name__ == "__main__":
    main()
