"""Clips of sound: int16, 16,000 samples a second, the same wherever they are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tests.support.graphs import dense_chain
from toolchain.ir import Graph, Quantisation

RATE = 16000
SAMPLES = 5000


def clips() -> Mapping[str, NDArray[np.int16]]:
    t = np.arange(SAMPLES) / RATE
    rng = np.random.default_rng(20)
    noise = rng.normal(0, 1, SAMPLES)
    chirp = np.sin(2 * np.pi * (100 * t + 9000 * t * t))
    syllables = 0.5 + 0.5 * np.sin(2 * np.pi * 6 * t)
    square = np.where(np.sin(2 * np.pi * 300 * t) > 0, 32767, -32768)
    wide = {
        "sine": 10000 * np.sin(2 * np.pi * 440 * t),
        "noise": 3000 * noise,
        "silence": np.zeros(SAMPLES),
        "loud": 60000 * np.sin(2 * np.pi * 1000 * t) + 9000 * noise,
        "speech": 12000 * chirp * syllables + 40 * noise,
        "square": square,
        "faint": rng.integers(-1, 2, SAMPLES),
        "lowest": np.full(SAMPLES, -32768),
        "clicks": np.where(np.arange(SAMPLES) % 1700 == 800, 32767, 0),
    }
    return {
        name: np.clip(np.rint(clip), -32768, 32767).astype(np.int16) for name, clip in wide.items()
    }


def listener(frames: int, channels: int = 40, *, scale: float = 26 / 255) -> Graph:
    """A layer over `frames` frames of features: int8 (1, frames * channels) to int8 (1, 4)."""
    graph = dense_chain("listener", (frames * channels, 4), seed=4)
    tensors = dict(graph.tensors)
    tensors["x"] = replace(tensors["x"], quantisation=Quantisation((scale,), (-128,)))
    tensors["y"] = replace(tensors["y"], quantisation=Quantisation((0.5,), (3,)))
    return Graph.build(graph.name, list(tensors.values()), graph.ops, graph.inputs, graph.outputs)
