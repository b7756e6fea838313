"""One stage on the host, one on a microcontroller: the least period with these beside the sticks.

The stage of a microcontroller is the first or the last. It takes the inference that a model of its
time predicts, and what every byte to and from it takes on the link. RAM and flash limit which
stages it can have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from toolchain.edgetpu.model.figures import HostCost, HostStage, McuStage, StageOf
from toolchain.edgetpu.plan.chains import Side, host_side, least_of, side_of, stick_side
from toolchain.edgetpu.plan.cuts import Cuts, Model, measured


class McuPlace(StrEnum):
    """The stages that a microcontroller may have."""

    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True)
class Mcu:
    """A board and its link.

    `weigh`: the milliseconds of an inference of some operators, which are the first or the last of
    the model; infinite where the board cannot have them. `place`: the stage that the board
    must have; None where it may have either, or none.
    """

    board: str
    link_bytes_per_ms: float
    weigh: Callable[[tuple[int, ...]], float]
    place: McuPlace | None = None


@dataclass(frozen=True)
class Beside:
    """A plan with a stage that is on no stick."""

    period_ms: float
    stages: int
    stage_of: StageOf
    host: HostStage | None
    mcu: McuStage | None


def least_beside(
    cuts: Cuts, sticks: int, limit: float, host: HostCost | None, mcu: Mcu | None = None
) -> Beside | None:
    """The least period below `limit` of at most `sticks` sticks with the devices beside them.

    A microcontroller has a stage; the host has one at any place, beside a microcontroller also
    none. Exact over `cuts` for every number of sticks and every place. None where nothing is
    shorter.
    """
    model = cuts.model
    best: Beside | None = None
    stick = stick_side(cuts, limit)
    on_host = None if host is None else host_side(cuts, host, limit)
    for board in _boards(cuts, mcu, limit):
        for used in reversed(range(sticks + 1)):
            for sides, at, host_at in _arrangements(used, board, stick, on_host):
                least = least_of(sides, model.cost, limit)
                if least is None:
                    continue
                stage_of, stage, beside = cuts.stage_of(least[0]), None, None
                if board is not None and at is not None:
                    operators = tuple(i for i, own in enumerate(stage_of) if own == at)
                    stage = McuStage(at, board.times[operators], board.link_bytes_per_ms)
                if host_at is not None and host is not None:
                    beside = HostStage(host_at, host)
                _, totals = measured([model], [stage_of], len(sides), beside, stage)
                if totals.period_ms < limit:
                    limit = totals.period_ms
                    best = Beside(limit, len(sides), stage_of, beside, stage)
    return best


@dataclass(frozen=True)
class _Board:
    """A microcontroller at one end of the model: its stages, and the inference of each."""

    side: Side
    first: bool
    times: dict[tuple[int, ...], float]
    link_bytes_per_ms: float


def _boards(cuts: Cuts, mcu: Mcu | None, limit: float) -> Iterator[_Board | None]:
    """The microcontroller at each end that it may have; None where there is none."""
    if mcu is None:
        yield None
        return
    for place in (mcu.place,) if mcu.place else McuPlace:
        yield _board(cuts, mcu, place == McuPlace.FIRST, limit)


def _arrangements(
    used: int, board: _Board | None, stick: Side, host: Side | None
) -> Iterator[tuple[list[Side], int | None, int | None]]:
    """The device of each stage, and the places of the microcontroller and the host, if any."""
    others: list[tuple[list[Side], int | None]] = []
    if board is not None:
        others.append(([stick] * used, None))
    if host is not None:
        for place in range(used + 1):
            others.append(([stick] * place + [host] + [stick] * (used - place), place))
    for sides, at in others:
        if board is None:
            yield sides, None, at
        elif board.first:
            yield [board.side, *sides], 0, None if at is None else at + 1
        else:
            yield [*sides, board.side], len(sides), at


def _board(cuts: Cuts, mcu: Mcu, first: bool, limit: float) -> _Board:
    """Where some operators do not fit or take too long, more do not either, and are not weighed."""
    last = len(cuts) - 1
    moved = cuts.costs.incoming[1] + cuts.costs.outgoing
    times: dict[tuple[int, ...], float] = {}
    stages: list[tuple[int, int]] = []
    stages_ms: list[float] = []
    too_much: list[frozenset[int]] = []
    for cut in range(1, last + 1) if first else range(last - 1, -1, -1):
        begin, end = (0, cut) if first else (cut, last)
        if not cuts.valid[begin, end]:
            continue
        operators = cuts.inside(begin, end)
        if any(some <= set(operators) for some in too_much):
            continue
        taken = mcu.weigh(operators)
        if taken > limit:
            too_much.append(frozenset(operators))
            continue
        whole = McuStage(0, taken, mcu.link_bytes_per_ms).stage_ms(int(moved[begin, end]))
        if whole < inf:
            times[operators] = taken
            stages.append((begin, end))
            stages_ms.append(whole)
    return _Board(side_of(cuts, stages, stages_ms), first, times, mcu.link_bytes_per_ms)


def least_share_ms(model: Model, sticks: int, host: HostCost) -> float:
    """A bound: every operator at its quickest, evenly over all sticks and the host."""
    on_host = host.weights_ms([op.macs for op in model.graph.ops])
    pairs = zip(model.weights_ms, on_host, strict=True)
    return sum(min(pair) for pair in pairs) / (sticks + 1)
