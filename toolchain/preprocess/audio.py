"""Features of sound: the parameters, and what follows from them.

They are those of TensorFlow Lite Micro's micro front end (`FrontendConfig`), whose arithmetic the
C and `toolchain.preprocess.features` reproduce bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.errors import InputError
from toolchain.ops.signal.spectrum import SNR_BITS

WEIGHT_BITS = 12
"""Fractional bits of the window and of the filters' weights (`kFilterbankBits`)."""
NOISE_BITS = 14
MOST_SCALE_SHIFT = 10
"""With more, a logarithm might not fit 16 bits."""
_LENGTHS = (64, 4096)


@dataclass(frozen=True)
class AudioFeatures:
    """How sound becomes features. The defaults are microWakeWord's and micro_speech's, but that
    micro_speech makes a frame every 20 ms.

    rate       samples per second.
    window_ms, step_ms  the length of a frame, and how far one begins after the last.
    channels   features of a frame: bands of equal width on the mel scale.
    low_hz, high_hz  where the first band begins and the last one ends.
    smoothing_bits, even_smoothing, odd_smoothing  the running mean that is taken for noise: its
               extra bits, and the part of a new value in it, in even and odd channels.
    signal_remaining  the part of a channel that is left whatever the noise.
    pcan, pcan_strength, pcan_offset, pcan_gain_bits  gain control by the noise of each channel.
    scale_shift  features are natural logarithms times 2^scale_shift.
    """

    rate: int = 16000
    window_ms: int = 30
    step_ms: int = 10
    channels: int = 40
    low_hz: float = 125.0
    high_hz: float = 7500.0
    smoothing_bits: int = 10
    even_smoothing: float = 0.025
    odd_smoothing: float = 0.06
    signal_remaining: float = 0.05
    pcan: bool = True
    pcan_strength: float = 0.95
    pcan_offset: float = 80.0
    pcan_gain_bits: int = 21
    scale_shift: int = 6

    def __post_init__(self) -> None:
        """Check the parameters. Raises InputError naming the one beyond its limits."""
        for name, least, most in (
            ("rate", 1000, 192000),
            ("window_ms", 1, 1000),
            ("step_ms", 1, self.window_ms),
            ("channels", 1, 256),
            ("smoothing_bits", 0, 16),
            ("even_smoothing", 0.0, 1.0),
            ("odd_smoothing", 0.0, 1.0),
            ("signal_remaining", 0.0, 1.0),
            ("low_hz", 0.0, self.rate / 2),
            ("pcan_strength", 0.0, 4.0),
            ("pcan_offset", 1e-3, 1e6),
            ("scale_shift", 0, MOST_SCALE_SHIFT),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise InputError(f"audio: {name}={value} is not within {least} to {most}")
        if not self.low_hz < self.high_hz < self.rate / 2:
            raise InputError(
                f"audio: high_hz={self.high_hz:g} is not between low_hz={self.low_hz:g} and half "
                f"of rate={self.rate}"
            )
        if self.step < 1 or not _LENGTHS[0] <= self.fft_length <= _LENGTHS[1]:
            raise InputError(
                f"audio: window_ms={self.window_ms} and step_ms={self.step_ms} at "
                f"rate={self.rate} are {self.window} and {self.step} samples; a window has "
                f"{_LENGTHS[0] // 2 + 1} to {_LENGTHS[1]}, a step at least 1"
            )
        least = SNR_BITS + self.correction_bits
        if not least <= self.pcan_gain_bits <= 30:
            raise InputError(
                f"audio: pcan_gain_bits={self.pcan_gain_bits} is not within {least} to 30"
            )
        if self.pcan and self.smoothing_bits < self.correction_bits:
            raise InputError(
                f"audio: smoothing_bits={self.smoothing_bits} is below {self.correction_bits}, "
                "which pcan needs with this window"
            )

    @property
    def window(self) -> int:
        """Samples of a frame."""
        return self.window_ms * self.rate // 1000

    @property
    def step(self) -> int:
        """Samples from the begin of a frame to that of the next."""
        return self.step_ms * self.rate // 1000

    @property
    def fft_length(self) -> int:
        """The power of two that holds a frame."""
        return 1 << (self.window - 1).bit_length()

    @property
    def correction_bits(self) -> int:
        """The bits by which the signal after the filters is below its true scale."""
        return self.fft_length.bit_length() - 1 - WEIGHT_BITS // 2

    @property
    def snr_shift(self) -> int:
        return self.pcan_gain_bits - self.correction_bits - SNR_BITS
