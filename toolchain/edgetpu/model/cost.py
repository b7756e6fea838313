"""The time of a stage on a USB stick, fitted to published measurements of Edge TPUs.

A stage takes a fixed time per call, and time for its arithmetic, for the parameters that its cache
cannot hold, and for its transfers. Sticks behind one hub share the bus over which parameters
stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

CACHE_BYTES = int(7.7 * (1 << 20))
"""Usable parameter cache of a stick: 8 MiB minus activations and code."""


@dataclass(frozen=True)
class EdgeTpuCost:
    """Rates in bytes (or MACs) per millisecond. The defaults fit USB 3 sticks behind one hub.

    A layer is cached whole or streamed whole. `whole_layers=False` counts what exceeds the cache to
    the byte, as the formulation's spill does.
    """

    cache_bytes: int = CACHE_BYTES
    call_ms: float = 0.3
    macs_per_ms: float = 0.5e9
    stream_bytes_per_ms: float = 500e3
    in_bytes_per_ms: float = 311e3
    out_bytes_per_ms: float = 53e3
    hub_bytes_per_ms: float = 445e3
    whole_layers: bool = True

    def spill_bytes(self, param_bytes: int) -> int:
        """Parameters beyond the cache, to the byte (formulation (8))."""
        return max(0, param_bytes - self.cache_bytes)

    def streamed_bytes(self, layers: Iterable[int]) -> int:
        """Parameter bytes sent with every frame, where the cache is the layers' alone."""
        return self.first_fit(layers, self.cache_bytes)[0]

    def first_fit(self, layers: Iterable[int], free: int) -> tuple[int, int]:
        """Parameter bytes sent with every frame, and what is left of `free` bytes of the cache:
        layers in order, each cached if it fits.
        """
        if not self.whole_layers:
            total = sum(layers)
            return max(0, total - free), max(0, free - total)
        streamed = 0
        for size in layers:
            if size <= free:
                free -= size
            else:
                streamed += size
        return streamed, free

    def overhead_ms(self, streamed: int, in_bytes: int, out_bytes: int) -> float:
        """Time of a call of a stage without its arithmetic, alone on its bus."""
        return (
            self.call_ms
            + streamed / self.stream_bytes_per_ms
            + in_bytes / self.in_bytes_per_ms
            + out_bytes / self.out_bytes_per_ms
        )

    def period_ms(self, stages_ms: Sequence[float], streamed: int) -> float:
        """Time between results: the slowest stage, or the shared bus if that is slower."""
        return max(max(stages_ms), streamed / self.hub_bytes_per_ms)


@dataclass(frozen=True)
class HostCost:
    """The time of a stage on the computer that the sticks are plugged into, on one of its cores.

    Its tensors stay in memory: only the sticks beside it send and receive. `times_ms`: measured
    milliseconds of each operator, instead of `macs_per_ms`.
    """

    macs_per_ms: float = 10e6
    call_ms: float = 0.02
    times_ms: tuple[float, ...] | None = None

    def weights_ms(self, macs: Sequence[int]) -> tuple[float, ...]:
        """Milliseconds of each operator. Raises ValueError for times of another model."""
        if self.times_ms is None:
            return tuple(count / self.macs_per_ms for count in macs)
        if len(self.times_ms) != len(macs):
            raise ValueError(f"{len(self.times_ms)} times for {len(macs)} operators")
        return self.times_ms


PROCESSOR = EdgeTpuCost(
    cache_bytes=1 << 40,
    call_ms=0.02,
    macs_per_ms=1e6,
    stream_bytes_per_ms=1e9,
    in_bytes_per_ms=1e7,
    out_bytes_per_ms=1e7,
    hub_bytes_per_ms=1e9,
)
"""Stages on the processor, for replanning from a profile that was measured there."""
