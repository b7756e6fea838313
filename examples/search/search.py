"""Find a network for the digits that fits 64 KB of RAM and 20 ms on a board, with Optuna.

    pip install 'thimble-nn[onnx]' optuna
    python examples/search/search.py --board nucleo-f446re --trials 40 -o digits.onnx

Optuna proposes architectures. `thimble.evaluate` says what each would need on the board before
anything is trained, in a few milliseconds; only what fits is trained, here by NumPy, on the images
in `examples/digits/samples.npz` (three in four; the others judge). The best network is written as a
float ONNX model: `thimble quantize` and `thimble compile` make firmware of it. `--random` proposes
without Optuna.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import thimble

DIGITS = Path(__file__).resolve().parents[1] / "digits" / "samples.npz"
GREY_LEVELS, SIDE, CLASSES = 16, 8, 10
MOST_LAYERS, CHANNELS = 4, (8, 16, 24, 32, 48, 64, 96, 128)
EPOCHS, BATCH, RATE = 30, 32, 3e-3

Floats = NDArray[np.float32]
Suggest = Callable[[str, Sequence[int]], int]


@dataclass(frozen=True)
class Architecture:
    """Convolutions of 3x3 with ReLU, each (channels, stride); their mean over the image; a dense
    layer.
    """

    layers: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        return " ".join(f"{channels}/{stride}" for channels, stride in self.layers)


def proposed(suggest: Suggest) -> Architecture:
    count = suggest("layers", range(1, MOST_LAYERS + 1))
    return Architecture(
        tuple(
            (suggest(f"channels {n}", CHANNELS), suggest(f"stride {n}", (1, 2)))
            for n in range(count)
        )
    )


def weights_of(architecture: Architecture, rng: np.random.Generator) -> list[tuple[Floats, Floats]]:
    """Kernel [9 * inputs, outputs] and bias of each convolution, then those of the dense layer."""
    found, depth = [], 1
    for channels, _ in architecture.layers:
        spread = np.sqrt(2 / (9 * depth))
        kernel = rng.normal(0, spread, (9 * depth, channels)).astype(np.float32)
        found.append((kernel, np.zeros(channels, np.float32)))
        depth = channels
    kernel = rng.normal(0, np.sqrt(1 / depth), (depth, CLASSES)).astype(np.float32)
    return [*found, (kernel, np.zeros(CLASSES, np.float32))]


def windows(x: Floats, stride: int) -> Floats:
    """[n, height, width, depth] to [n, rows, columns, 9 * depth], with one pixel of padding."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    seen = sliding_window_view(padded, (3, 3), (1, 2))[:, ::stride, ::stride]
    return np.ascontiguousarray(seen.transpose(0, 1, 2, 4, 5, 3)).reshape(*seen.shape[:3], -1)


def logits(
    architecture: Architecture, weights: Sequence[tuple[Floats, Floats]], x: Floats
) -> tuple[Floats, list[tuple[Floats, Floats, Floats]], Floats]:
    """The classes' logits, and what the backward pass needs: input, windows and output of each
    convolution, and the mean.
    """
    kept = []
    for (_, stride), (kernel, bias) in zip(architecture.layers, weights, strict=False):
        seen = windows(x, stride)
        y = np.maximum(seen @ kernel + bias, 0)
        kept.append((x, seen, y))
        x = y
    mean = x.mean(axis=(1, 2))
    kernel, bias = weights[-1]
    return mean @ kernel + bias, kept, mean


def gradients(
    architecture: Architecture,
    weights: Sequence[tuple[Floats, Floats]],
    x: Floats,
    labels: NDArray[np.int64],
) -> list[tuple[Floats, Floats]]:
    """Of the cross entropy, by kernels and biases."""
    found, kept, mean = logits(architecture, weights, x)
    odds = np.exp(found - found.max(axis=1, keepdims=True))
    slope = odds / odds.sum(axis=1, keepdims=True)
    slope[np.arange(len(labels)), labels] -= 1
    slope /= len(labels)
    out = [(mean.T @ slope, slope.sum(axis=0))]
    _, rows, columns, _ = kept[-1][2].shape
    back = np.broadcast_to(
        (slope @ weights[-1][0].T)[:, None, None] / (rows * columns), kept[-1][2].shape
    )
    for (_, stride), (kernel, _), (given, seen, y) in reversed(
        list(zip(architecture.layers, weights, kept, strict=False))
    ):
        back = back * (y > 0)
        flat = back.reshape(-1, back.shape[-1])
        out.append((seen.reshape(len(flat), -1).T @ flat, flat.sum(axis=0)))
        back = spread_back(back @ kernel.T, given.shape, stride)
    return out[::-1]


def spread_back(slopes: Floats, shape: tuple[int, ...], stride: int) -> Floats:
    """The transpose of `windows`."""
    n, height, width, depth = shape
    padded = np.zeros((n, height + 2, width + 2, depth), np.float32)
    _, rows, columns, _ = slopes.shape
    taps = slopes.reshape(n, rows, columns, 3, 3, depth)
    for i in range(3):
        for j in range(3):
            padded[:, i : i + stride * rows : stride, j : j + stride * columns : stride] += taps[
                :, :, :, i, j
            ]
    return padded[:, 1:-1, 1:-1]


def trained(
    architecture: Architecture,
    images: Floats,
    labels: NDArray[np.int64],
    epochs: int,
    seed: int = 0,
) -> list[tuple[Floats, Floats]]:
    """By Adam, with a rate that falls to nothing."""
    rng = np.random.default_rng(seed)
    weights = [part for pair in weights_of(architecture, rng) for part in pair]
    first, second = ([np.zeros_like(w) for w in weights] for _ in range(2))
    steps = epochs * -(-len(images) // BATCH)
    step = 0
    for _ in range(epochs):
        order = rng.permutation(len(images))
        for begin in range(0, len(images), BATCH):
            step += 1
            chosen = order[begin : begin + BATCH]
            pairs = list(zip(weights[::2], weights[1::2], strict=True))
            slopes = gradients(architecture, pairs, images[chosen], labels[chosen])
            for n, slope in enumerate(part for pair in slopes for part in pair):
                first[n] += 0.1 * (slope - first[n])
                second[n] += 0.001 * (slope**2 - second[n])
                rate = RATE * (1 - step / steps) * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
                weights[n] = (weights[n] - rate * first[n] / (np.sqrt(second[n]) + 1e-8)).astype(
                    np.float32
                )
    return list(zip(weights[::2], weights[1::2], strict=True))


def onnx_model(
    architecture: Architecture, weights: Sequence[tuple[Floats, Floats]]
) -> onnx.ModelProto:
    """Float, NCHW: input [1, 1, 8, 8], output [1, 10], class probabilities."""
    nodes, held, x, depth = [], [], "image", 1
    for n, ((channels, stride), (kernel, bias)) in enumerate(
        zip(architecture.layers, weights, strict=False)
    ):
        oihw = kernel.reshape(3, 3, depth, channels).transpose(3, 2, 0, 1)
        for name, data in ((f"w{n}", oihw), (f"b{n}", bias)):
            held.append(numpy_helper.from_array(np.ascontiguousarray(data), name))
        inputs, shape = [x, f"w{n}", f"b{n}"], {"kernel_shape": [3, 3], "pads": [1] * 4}
        nodes.append(
            helper.make_node("Conv", inputs, [f"c{n}"], f"conv{n}", strides=[stride] * 2, **shape)
        )
        nodes.append(helper.make_node("Relu", [f"c{n}"], [f"r{n}"], f"relu{n}"))
        x, depth = f"r{n}", channels
    kernel, bias = weights[-1]
    held += [
        numpy_helper.from_array(np.ascontiguousarray(kernel.T), "w"),
        numpy_helper.from_array(bias, "b"),
    ]
    nodes += [
        helper.make_node("GlobalAveragePool", [x], ["mean"], "mean"),
        helper.make_node("Flatten", ["mean"], ["flat"], "flat", axis=1),
        helper.make_node("Gemm", ["flat", "w", "b"], ["logits"], "dense", transB=1),
        helper.make_node("Softmax", ["logits"], ["probabilities"], "softmax", axis=1),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("image", [1, 1, SIDE, SIDE]), ("probabilities", [1, CLASSES]))
    ]
    graph = helper.make_graph(nodes, "digits", ends[:1], ends[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def accuracy(
    architecture: Architecture,
    weights: Sequence[tuple[Floats, Floats]],
    images: Floats,
    labels: NDArray[np.int64],
) -> float:
    return float((logits(architecture, weights, images)[0].argmax(axis=1) == labels).mean())


@dataclass(frozen=True)
class Found:
    """A network that fits."""

    architecture: Architecture
    accuracy: float
    estimate: thimble.Estimate
    model: onnx.ModelProto


@dataclass(frozen=True)
class Task:
    """What is searched for, and the data, in two parts."""

    board: str
    ram_bytes: int
    milliseconds: float
    epochs: int
    images: Floats
    labels: NDArray[np.int64]

    @classmethod
    def of_digits(cls, board: str, ram_bytes: int, milliseconds: float, epochs: int) -> Task:
        with np.load(DIGITS) as samples:
            grey = (samples["images"] / GREY_LEVELS).astype(np.float32)[..., None]
            return cls(
                board, ram_bytes, milliseconds, epochs, grey, samples["labels"].astype(np.int64)
            )

    def tried(self, architecture: Architecture) -> Found | None:
        """None for what does not fit: it is not trained."""
        hollow = weights_of(architecture, np.random.default_rng(0))
        estimate = thimble.evaluate(onnx_model(architecture, hollow), self.board)
        assert estimate.milliseconds is not None, f"{self.board} has no model of its time"
        if estimate.ram_bytes > self.ram_bytes or estimate.milliseconds > self.milliseconds:
            return None
        judged = np.arange(len(self.images)) % 4 == 0
        weights = trained(architecture, self.images[~judged], self.labels[~judged], self.epochs)
        right = accuracy(architecture, weights, self.images[judged], self.labels[judged])
        return Found(architecture, right, estimate, onnx_model(architecture, weights))


def by_optuna(task: Task, trials: int) -> Iterator[Found | None]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study: Any = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=0, n_startup_trials=8)
    )
    for _ in range(trials):
        trial = study.ask()
        found = task.tried(
            proposed(lambda name, of, own=trial: own.suggest_categorical(name, list(of)))
        )
        if found is None:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, found.accuracy)
        yield found


def at_random(task: Task, trials: int) -> Iterator[Found | None]:
    rng = random.Random(0)
    for _ in range(trials):
        yield task.tried(proposed(lambda _, of: rng.choice(list(of))))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--board", default="nucleo-f446re")
    parser.add_argument("--ram", type=int, default=64 * 1024, help="bytes")
    parser.add_argument("--ms", type=float, default=20.0, help="of one inference")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--random", action="store_true", help="propose without Optuna")
    parser.add_argument("-o", "--out", type=Path, default=Path("digits.onnx"))
    given = parser.parse_args()
    task = Task.of_digits(given.board, given.ram, given.ms, given.epochs)
    best: Found | None = None
    fit, begin = 0, time.perf_counter()
    for found in (at_random if given.random else by_optuna)(task, given.trials):
        fit += found is not None
        if found is not None and (best is None or found.accuracy > best.accuracy):
            best = found
            need = best.estimate
            print(
                f"{best.accuracy:.1%} right: {best.architecture}, RAM {need.ram_bytes:,} B, "
                f"flash {need.flash_bytes:,} B, {need.milliseconds:.2f} ms"
            )
    seconds = time.perf_counter() - begin
    print(f"{given.trials} proposals in {seconds:.0f} s, {fit} of them fit and were trained.")
    if best is None:
        return 1
    onnx.save(best.model, given.out)
    print(f"Written to {given.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
