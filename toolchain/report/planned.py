"""Parts of `plan.json` that are read back: `plan_json` writes these classes, and `page` reads them.

A part's fields are the keys of its object, in this order (`records.encode`, `records.decode`).
"""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.cost.basis import Basis


@dataclass(frozen=True)
class PlannedOperator:
    """One step of the order: an entry of `operators`.

    `live_bytes`: of all buffers while it runs. `scratch_offset`: None where it has no scratch.
    `part_of`: the operator of the network that it is a block of; empty for a whole one. `count`: in
    the unit of `latency`.
    """

    step: int
    name: str
    kind: str
    block: str
    macs: int
    moved_bytes: int
    scratch_bytes: int
    live_bytes: int
    scratch_offset: int | None
    constant_bytes: int
    part_of: str
    is_view: bool
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    functions: tuple[str, ...]
    count: int
    basis: Basis

    @property
    def counted_as(self) -> tuple[str, str]:
        """Name and kind of the network's operator."""
        return self.part_of or self.name, self.kind


@dataclass(frozen=True, kw_only=True)
class PlannedTime:
    """`latency`: the time of one inference. A profile has its fields without a default, too.

    `per_turn`: operators whose time depends on data; the key is left out where there are none.
    """

    total: int
    unit: str
    measured_share: float = 0.0
    milliseconds: float | None
    estimated_microjoules: float | None = None
    basis: Basis
    per_turn: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlannedBank:
    """An entry of `arena_banks`: a part of the arena in one memory."""

    bank: str
    start: int
    bytes: int


@dataclass(frozen=True)
class PlannedTensor:
    """An entry of `tensors`. `live`: from its first step to before the second number."""

    offset: int
    bytes: int
    shape: tuple[int, ...]
    dtype: str
    live: tuple[int, int]


@dataclass(frozen=True)
class PlannedBuffer:
    """An entry of `buffers`: tensors that share bytes.

    `runs`: from a step on, the bytes [bottom, top) of the buffer that are live; the last is empty.
    A buffer of a split network comes to life, and dies, in parts.
    """

    tensors: tuple[str, ...]
    offset: int
    bytes: int
    runs: tuple[tuple[int, int, int], ...]
