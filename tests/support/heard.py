"""A model that takes sound, run over all clips by a program of its library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.support.host import plan_of
from tests.support.sounds import clips, listener
from tests.support.states import window
from tests.support.with_files import run_with_files
from toolchain.boards import Board
from toolchain.codegen import generate
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn
from toolchain.ops.check import check
from toolchain.ops.interpret import interpret
from toolchain.preprocess.audio import AudioFeatures
from toolchain.preprocess.audio_input import AudioInput
from toolchain.preprocess.features import features_of

Array = NDArray[np.generic]


def check_heard(board: Board, graph: Graph, audio: AudioInput, folder: Path) -> None:
    """Features and outputs of the C are those of NumPy, for every clip."""
    plan = plan_of(graph, board.core)
    sources = generate(plan, board.core, cmsis_nn.find(), name="wake", preprocess=audio)
    sounds = clips().values()
    encoded = [np.int32(len(clip)).tobytes() + clip.tobytes() for clip in sounds]
    (folder / "sound.bin").write_bytes(b"".join(encoded))
    output = f"wake_output_{sources.outputs[0]}"
    flags = [f"-DOUTPUT={output}", f"-DOUTPUT_BYTES={output.upper()}_BYTES"]
    flags += ["-DSTATEFUL"] * bool(graph.states)
    run_with_files(board, sources, "heard.c", folder, flags)
    features = np.fromfile(folder / "features.bin", dtype="<i2").reshape(
        -1, audio.features.channels
    )
    np.testing.assert_array_equal(
        features, np.concatenate([features_of(audio.features, clip) for clip in sounds])
    )
    (x,), (y,) = graph.inputs, graph.outputs
    bound = audio.bound(graph.tensors[x], stateful=bool(graph.states))
    want: list[Array] = []
    for clip in sounds:
        memory: dict[str, Array] = {}
        want += [interpret(graph, [one], memory)[0] for one in bound.windows(clip)]
    got = np.fromfile(folder / "outputs.bin", dtype=graph.tensors[y].dtype.numpy)
    assert len(want) > len(sounds)
    np.testing.assert_array_equal(got, np.concatenate([one.reshape(-1) for one in want]))


def cases() -> Mapping[str, tuple[Graph, AudioInput]]:
    """A window that moves by a frame; other parameters, whose transform has a pass of pairs; a
    model that keeps state, whose input has a scale of its own.
    """
    other = AudioFeatures(
        *(8000, 25, 11, 20), high_hz=3500.0, pcan=False, scale_shift=8, even_smoothing=0.1
    )
    return {
        "window": (listener(4), AudioInput()),
        "other": (listener(5, 20, scale=0.5), AudioInput(other, stride=2)),
        "state": (check(window(5, 2)), AudioInput(AudioFeatures(window_ms=40, channels=4))),
    }
