"""tflite-micro's signal operators in a row: the front end's features, by NumPy and by its judge."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.sounds import clips
from tests.support.tflite_writer import tflite_bytes
from toolchain.ir import DType, Graph, Op, State, Tensor
from toolchain.ops.check import check
from toolchain.ops.interpret import interpret
from toolchain.ops.signal.signal_energy import SignalEnergy
from toolchain.ops.signal.signal_fft_auto_scale import SignalFftAutoScale
from toolchain.ops.signal.signal_filter_bank import SignalFilterBank
from toolchain.ops.signal.signal_filter_bank_log import SignalFilterBankLog
from toolchain.ops.signal.signal_filter_bank_square_root import SignalFilterBankSquareRoot
from toolchain.ops.signal.signal_pcan import SignalPcan
from toolchain.ops.signal.signal_rfft import SignalRfft
from toolchain.ops.signal.signal_spectral_subtraction import SignalSpectralSubtraction
from toolchain.ops.signal.signal_window import SignalWindow
from toolchain.preprocess.audio import WEIGHT_BITS, AudioFeatures
from toolchain.preprocess.features import features_of, noise_parameters
from toolchain.preprocess.tables import filter_bank, gain_table, window_weights
from toolchain.reference.process import Runtime, RuntimeProcess, open_model

AUDIO = AudioFeatures(step_ms=30)


def chain() -> Graph:
    """A window of samples to a frame of features."""
    bank, noise = filter_bank(AUDIO), noise_parameters(AUDIO)
    count, channels = AUDIO.fft_length // 2 + 1, AUDIO.channels
    tables = {
        "window": window_weights(AUDIO.window),
        "weights": bank.weights,
        "unweights": bank.unweights,
        "starts": bank.starts,
        "weight starts": bank.weight_starts,
        "widths": bank.widths,
        "gains": gain_table(AUDIO),
    }
    tensors = [
        *(Tensor(n, (AUDIO.window,), DType.INT16) for n in ("samples", "windowed", "scaled")),
        Tensor("bits", (), DType.INT32),
        Tensor("spectrum", (2 * count,), DType.INT16),
        Tensor("energy", (count,), DType.UINT32),
        Tensor("sums", (channels,), DType.UINT64),
        *(
            Tensor(n, (channels,), DType.UINT32)
            for n in ("signal", "clean", "noise", "clean_memory", "clean_memory_next", "even")
        ),
        Tensor("features", (channels,), DType.INT16),
        *(Tensor(n, data.shape, DType.INT16, constant=data) for n, data in tables.items()),
    ]
    own = SignalSpectralSubtraction(
        *(channels, noise.smoothing[0], noise.rest[0], noise.smoothing[1], noise.rest[1]),
        *(noise.floor, noise.scale_bits, noise.bits),
    )
    bank_inputs = ("energy", "weights", "unweights", "starts", "weight starts", "widths")
    steps = [
        (("samples", "window"), ("windowed",), "signal_window", SignalWindow(WEIGHT_BITS)),
        (("windowed",), ("scaled", "bits"), "signal_fft_auto_scale", SignalFftAutoScale()),
        (("scaled",), ("spectrum",), "signal_rfft", SignalRfft(AUDIO.fft_length)),
        (("spectrum",), ("energy",), "signal_energy", SignalEnergy(bank.end, bank.first)),
        (bank_inputs, ("sums",), "signal_filter_bank", SignalFilterBank(channels, bank.energies)),
        (
            ("sums", "bits"),
            ("signal",),
            "signal_filter_bank_square_root",
            SignalFilterBankSquareRoot(),
        ),
        (
            ("signal", "clean_memory"),
            ("clean", "noise", "clean_memory_next"),
            "signal_spectral_subtraction",
            own,
        ),
        (("clean", "noise", "gains"), ("even",), "signal_pcan", SignalPcan(AUDIO.snr_shift)),
        (
            ("even",),
            ("features",),
            "signal_filter_bank_log",
            SignalFilterBankLog(AUDIO.correction_bits, 1 << AUDIO.scale_shift),
        ),
    ]
    ops = [Op(kind, kind, inputs, outputs, own) for inputs, outputs, kind, own in steps]
    state = State("clean_memory", "clean_memory_next", np.zeros(channels, np.uint32))
    return check(Graph.build("chain", tensors, ops, ["samples"], ["features"], [state]))


def windows(clip: NDArray[np.int16]) -> NDArray[np.int16]:
    count = len(clip) // AUDIO.window
    return clip[: count * AUDIO.window].reshape(count, AUDIO.window)


@pytest.mark.parametrize("name", ["clicks", "loud", "silence", "speech", "square"])
def test_the_operators_make_the_front_end_s_features(name: str) -> None:
    graph, memory, clip = chain(), {}, clips()[name]
    made = [interpret(graph, [window], memory)[0] for window in windows(clip)]
    np.testing.assert_array_equal(made, features_of(AUDIO, clip))


def test_tflite_micro_makes_the_same() -> None:
    pytest.importorskip("tflite_micro")
    opened = open_model(RuntimeProcess(), Runtime.TFLITE_MICRO, tflite_bytes(chain()), 1)
    for name in ("speech", "noise", "loud"):
        opened.restart()
        clip = clips()[name]
        made = [opened.run([window])[0] for window in windows(clip)]
        np.testing.assert_array_equal(made, features_of(AUDIO, clip))
