"""Features of sound: TensorFlow Lite Micro's micro front end, and how they meet an input."""

from __future__ import annotations

import hashlib
import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.sounds import clips, listener
from toolchain.errors import InputError
from toolchain.ir import DType, Quantisation, Tensor
from toolchain.planning.options import PlanOptions
from toolchain.preprocess.audio import AudioFeatures
from toolchain.preprocess.audio_input import AudioInput, Scaling
from toolchain.preprocess.features import Features, features_of
from toolchain.preprocess.option import preprocess
from toolchain.preprocess.tables import filter_bank

GOLDEN = Path(__file__).parents[1] / "goldens" / "micro_features.json"
CHUNK = 160


def reference(samples: NDArray[np.int16]) -> NDArray[np.int16]:
    """By the package pymicro-features, which wraps TensorFlow Lite Micro's own code."""
    try:
        module = importlib.import_module("pymicro_features")
    except ModuleNotFoundError:
        pytest.skip("pymicro-features is not installed")
    front_end, frames, at = module.MicroFrontend(), [], 0
    while at + CHUNK <= len(samples):
        got = front_end.process_samples(samples[at : at + CHUNK].tobytes())
        at += got.samples_read
        if got.features:
            frames.append(np.rint(np.array(got.features) * 25.6).astype(np.int16))
    return np.array(frames)


@pytest.mark.parametrize("name", sorted(clips()))
def test_features_are_those_that_pymicro_features_gave(name: str) -> None:
    """Its results are kept as digests, so that they are compared where it is not installed."""
    golden = json.loads(GOLDEN.read_text())
    frames = features_of(AudioFeatures(), clips()[name])[: golden["frames"]]
    assert hashlib.sha256(frames.astype("<i2").tobytes()).hexdigest() == golden["sha256"][name]


@pytest.mark.parametrize("name", sorted(clips()))
def test_features_are_those_of_pymicro_features(name: str) -> None:
    want = reference(clips()[name])
    np.testing.assert_array_equal(features_of(AudioFeatures(), clips()[name])[: len(want)], want)


def test_the_clips_differ_and_reach_both_ends() -> None:
    """Else equal digests would say little."""
    made = {name: features_of(AudioFeatures(), clip) for name, clip in clips().items()}
    assert len({frames.tobytes() for frames in made.values()}) == len(made)
    assert not made["silence"].any()
    assert max(frames.max() for frames in made.values()) > 650


def test_pieces_of_any_size_give_the_same_frames() -> None:
    clip = clips()["speech"]
    stream, frames = Features(AudioFeatures()), []
    for piece in np.array_split(clip, [1, 2, 500, 1300, 1300, 4999]):
        frames += list(stream.push(piece))
    np.testing.assert_array_equal(frames, features_of(AudioFeatures(), clip))


def test_the_filters_are_those_of_the_c_library() -> None:
    """Two weights are 1 off where ln(1 + x) is rounded to nearest."""
    bank = filter_bank(AudioFeatures())
    assert (bank.first, bank.end, bank.energies) == (5, 241, 242)
    assert int(bank.weights.sum()) * 2 > 4096 * 200
    both = bank.weights.astype(int) + bank.unweights
    assert set(both[both > 0].tolist()) <= {4095, 4096, 4097}


def test_windows_of_a_stream_move_on_by_the_stride() -> None:
    tensor = listener(4).tensors["x"]
    bound = AudioInput(stride=2).bound(tensor, stateful=False)
    clip = clips()["speech"]
    frames = bound.scaling.apply(features_of(bound.features, clip))
    windows = list(bound.windows(clip))
    assert len(windows) == (len(frames) - 4) // 2 + 1 > 3
    for index, window in enumerate(windows):
        np.testing.assert_array_equal(window.reshape(4, 40), frames[2 * index : 2 * index + 4])


@pytest.mark.parametrize(("stateful", "stride"), [(True, 3), (False, 1)])
def test_the_stride_of_a_model_that_keeps_state_is_all_frames(stateful: bool, stride: int) -> None:
    assert AudioInput().bound(listener(3).tensors["x"], stateful=stateful).stride == stride


def test_inputs_like_micro_speechs_get_its_own_division() -> None:
    scaling = AudioInput().bound(listener(1).tensors["x"], stateful=False).scaling
    features = np.arange(0, 700, dtype=np.int16)
    want = np.minimum((features.astype(int) * 256 + 333) // 666 - 128, 127)
    np.testing.assert_array_equal(scaling.apply(features), want)


@pytest.mark.parametrize("scale", [0.01, 0.05, 0.2, 3.0])
def test_other_inputs_get_the_nearest_step(scale: float) -> None:
    tensor = Tensor("x", (1, 40), DType.INT8, Quantisation((scale,), (-100,)))
    scaling = AudioInput().bound(tensor, stateful=False).scaling
    features = np.arange(0, 1500, dtype=np.int16)
    want = np.clip(features / 25.6 / scale - 100, -128, 127)
    assert np.abs(scaling.apply(features) - want).max() <= 0.5 + 1e-2
    assert np.iinfo(np.int16).max * scaling.numerator + scaling.denominator // 2 < 2**31


def test_float_inputs_get_tenths_of_256ths() -> None:
    assert Scaling(DType.FLOAT32).apply(np.array([256], dtype=np.int16)) == np.float32(10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sound", "it begins with audio or image"),
        ("audio:windows=3", "'windows' is unknown; there are: channels, even_smoothing"),
        ("audio:step_ms", "'step_ms' is no parameter"),
        ("audio:step_ms=1,step_ms=2", "'step_ms=2' is no parameter"),
        ("audio:step_ms=ten", "step_ms=ten is not a whole number"),
        ("audio:pcan=yes", "pcan=yes is not on or off"),
        ("audio:low_hz=x", "low_hz=x is not a number"),
        ("audio:low_hz=nan", "low_hz=nan is not within"),
        ("audio:step_ms=31", "step_ms=31 is not within 1 to 30"),
        ("audio:high_hz=8000", "high_hz=8000 is not between"),
        ("audio:window_ms=1,step_ms=1", "are 16 and 16 samples; a window has 33 to 4096"),
        ("audio:pcan_gain_bits=3", "pcan_gain_bits=3 is not within 15 to 30"),
        ("audio:smoothing_bits=2", "smoothing_bits=2 is below 3"),
    ],
)
def test_what_cannot_be_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(InputError, match="audio") as raised:
        preprocess(text)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("audio:channels=39", "input x [1x120] is no whole number of frames of 39 channels"),
        ("audio:stride=4", "stride=4 is not within 1 to 3"),
        ("audio:stride=0", "stride=0 is not within 1 to 3"),
    ],
)
def test_what_does_not_suit_the_model_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        preprocess(text).bound(listener(3).tensors["x"], stateful=False)
    assert message in str(raised.value)


def test_parameters_are_read() -> None:
    made = preprocess("audio:step_ms=20,low_hz=100.5,pcan=off,stride=2")
    assert made == AudioInput(AudioFeatures(step_ms=20, low_hz=100.5, pcan=False), 2)


def test_options_of_a_plan_take_the_text() -> None:
    assert PlanOptions(preprocess="audio:stride=2") == PlanOptions(preprocess=AudioInput(stride=2))  # type: ignore[arg-type]
