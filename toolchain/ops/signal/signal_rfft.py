"""The Fourier transform of real samples. TFLM's SignalRfft: int16 (`signal_rfft_s16`), as KissFFT
rounds it, and float32 (`signal_rfft_f32`).
"""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.signal.signal_rfft_f32 import F32
from toolchain.ops.signal.signal_rfft_s16 import S16
from toolchain.ops.signal.signal_rfft_s16 import SignalRfft as SignalRfft

SPEC = kit.OpSpec((S16, F32))
