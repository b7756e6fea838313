"""The Fourier transform of real samples. TFLM's SignalRfft: int16 (`signal_rfft_s16`), as KissFFT
rounds it, and float32 (`signal_rfft_f32`).
"""

from __future__ import annotations

from toolchain.ir import DType
from toolchain.ops.signal.signal_rfft_f32 import F32
from toolchain.ops.signal.signal_rfft_s16 import S16
from toolchain.ops.signal.signal_rfft_s16 import SignalRfft as SignalRfft
from toolchain.ops.spec import by_type

SPEC = by_type({DType.INT16: S16, DType.FLOAT32: F32})
