"""Train a network of digits in PyTorch, and export two networks: `digits.onnx`, `camera.onnx`.

    pip install torch onnx onnxscript scikit-learn
    python docs/sessions/export.py

docs/sessions.md begins with both files, which are in the repository, so PyTorch is needed here
only. `camera.onnx` has seeded weights: it serves for its sizes, and sees nothing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from torch import Tensor, nn

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def digits() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 4 * 4, 10),
    )


def trained(model: nn.Module) -> nn.Module:
    """On the images of scikit-learn's digits that examples/digits/samples.npz does not hold."""
    from sklearn.datasets import load_digits

    data = load_digits()
    kept = {
        image.tobytes() for image in np.load(ROOT / "examples" / "digits" / "samples.npz")["images"]
    }
    own = [image.astype(np.uint8).tobytes() not in kept for image in data.images]
    images = torch.tensor(data.images[own][:, None] / 16, dtype=torch.float32)
    labels = torch.tensor(data.target[own])
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(150):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    return model


def camera() -> nn.Module:
    """96x96 pixels in grey, two classes: depthwise-separable blocks after a wide first layer."""

    def block(inside: int, out: int, stride: int) -> list[nn.Module]:
        depthwise = nn.Conv2d(inside, inside, 3, stride, padding=1, groups=inside)
        return [depthwise, nn.ReLU6(), nn.Conv2d(inside, out, 1), nn.ReLU6()]

    return nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=2, padding=1),
        nn.ReLU6(),
        *block(16, 24, 1),
        *block(24, 32, 2),
        *block(32, 48, 2),
        *block(48, 64, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 2),
    )


def write(model: nn.Module, image: Tensor, name: str) -> None:
    torch.onnx.export(
        model.eval(),
        (image,),
        HERE / name,
        input_names=["image"],
        output_names=["scores"],
        dynamo=True,
        external_data=False,
        opset_version=18,
        verbose=False,
    )
    lean(HERE / name)


def lean(path: Path) -> None:
    """Drop what the exporter notes of each operator: lines of the source, and their folders."""
    exported = onnx.load(path)
    graph = exported.graph
    for part in (*graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    graph.ClearField("metadata_props")
    exported.ClearField("metadata_props")
    onnx.save(exported, path)


if __name__ == "__main__":
    torch.manual_seed(0)
    write(trained(digits()), torch.rand(1, 1, 8, 8), "digits.onnx")
    write(camera(), torch.rand(1, 1, 96, 96), "camera.onnx")
