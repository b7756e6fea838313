"""How to plan: the options of `plan`, `compile` and similar commands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from toolchain import arena, partition, schedule
from toolchain.boards import Board
from toolchain.decode.option import Decode, decoding
from toolchain.errors import InputError
from toolchain.frontends import Reading
from toolchain.memory.firmware_size import ram_bytes
from toolchain.memory.plan import NEARLY_FREE, Plan
from toolchain.ops.preference import Preference, preference
from toolchain.partition import splitters
from toolchain.preprocess.option import Preprocess
from toolchain.preprocess.option import preprocess as read_preprocess

DEFAULT_BOARD = "netduinoplus2"
_SECONDS, _FAST_SECONDS = 1.0, 0.2
"""Work limit of the search for these, and of placing them; in fast plans of each search."""
_SHARE, _SPEED_SHARE = 12, 15
"""Sixteenths of the flash. The size of code is an estimate, and firmware grows."""


class Optimise(StrEnum):
    """The values of `--optimise`.

    BALANCED  quicker kernels whose constants the flash holds with room to spare, in an arena that
              is no larger than that of the unsplit network without them.
    SPEED     the quickest kernels that flash and RAM hold; nothing is split that need not be.
    SIZE      the kernels with the least flash and scratch.
    """

    BALANCED = "balanced"
    SPEED = "speed"
    SIZE = "size"


def goal(name: str) -> Optimise:
    """The goal of that name. Raises InputError for an unknown one."""
    try:
        return Optimise(name)
    except ValueError:
        known = ", ".join(Optimise)
        raise InputError(f"--optimise {name!r} is unknown; there are: {known}") from None


@dataclass(frozen=True)
class PlanOptions:
    """How to plan. Limits in seconds count work that takes about so long on one core.

    No clock changes a plan.

    time_limit_seconds  limit for the scheduler and for the allocator, each.
    rewrite      partition concatenations where that lowers the peak. Convolutions that sum in parts
                 take about three times the instructions.
    ram_bytes    split operators, if needed, until arena, data and stack fit into this RAM, at the
                 least cost.
    flash_bytes  flash for all code and constants. By default three quarters of the board's may be
                 spent on quicker kernels, 15 sixteenths with Optimise.SPEED.
    optimise     what to spend flash and RAM on.
    max_slowdown  split for the smallest arena that costs no more than this fraction of the
                 latency.
    nearly_free  take splits that cost at most NEARLY_FREE of the latency and save memory worth
                 having (`planning.nearly_free`). Not looked for where one of the two above is set,
                 or a scheduler or allocator other than the default (a method that is named gives
                 what it gives alone), nor with Optimise.SPEED.
    fast         limit each search to a fifth of a second's worth of work.
    choice       the plan of this number among those to choose from, from 1 (`planning.choices`).
    splitter     the search for ways to split, limited by `split_seconds`; None: 30, or 1 for what
                 is nearly free.
    allow_float  accept models that compute in float32 throughout. Single float operators in a
                 quantised model are always accepted.
    kernels      whose kernels to take: CMSIS-NN's, Thimble's, or the quicker for each operator.
    dead_channels  remove channels that cannot change an output.
    one_bank     keep the arena in one piece, even if it then lies in a slow bank or fits none.
    labels       names of the classes of the outputs that have so many. By default the model file's.
    copy_constants  let the start-up copy constants and code to RAM that is read sooner than flash
                 (`planning.copies`). Never with Optimise.SIZE.
    stream_input  one input arrives by rows and takes no RAM (`planning.rows`): the only one that
                 has rows, or the one named `streamed_input`.
    input_shapes  pairs of an input's name and its shape, for what an ONNX file leaves open.
    preprocess   also generate what makes the model's input from sound or from a camera's frame. It
                 changes no plan.
    decode       also compute boxes, classes and scores from the heads that the model's outputs are.
    """

    scheduler: str = schedule.DEFAULT
    allocator: str = arena.DEFAULT
    time_limit_seconds: float | None = None
    rewrite: bool = True
    ram_bytes: int | None = None
    max_slowdown: float | None = None
    flash_bytes: int | None = None
    optimise: Optimise = Optimise.BALANCED
    nearly_free: bool = True
    fast: bool = False
    choice: int | None = None
    splitter: str = splitters.DEFAULT
    split_seconds: float | None = None
    one_bank: bool = False
    allow_float: bool = False
    kernels: Preference = Preference.AUTO
    dead_channels: bool = True
    copy_constants: bool = True
    labels: tuple[str, ...] = ()
    stream_input: bool = False
    streamed_input: str = ""
    input_shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    preprocess: Preprocess | None = None
    decode: Decode | None = None

    def __post_init__(self) -> None:
        """A name such as "cmsis-nn" or the texts of `--preprocess` and `--decode` will do. Raises
        InputError for an unknown one.
        """
        object.__setattr__(self, "kernels", preference(self.kernels))
        object.__setattr__(self, "optimise", goal(self.optimise))
        if isinstance(self.preprocess, str):
            object.__setattr__(self, "preprocess", read_preprocess(self.preprocess))
        if isinstance(self.decode, str):
            object.__setattr__(self, "decode", decoding(self.decode))
        if self.fast and self.time_limit_seconds is None:
            object.__setattr__(self, "time_limit_seconds", _FAST_SECONDS)

    @property
    def reading(self) -> Reading:
        """How the model file is to be read."""
        return Reading(dict(self.input_shapes), self.allow_float)

    @property
    def splits(self) -> bool:
        """Whether splits are requested."""
        return self.ram_bytes is not None or self.max_slowdown is not None

    def flash_of(self, target: Board) -> int:
        """Bytes of flash that the firmware may take with quicker kernels."""
        if self.flash_bytes is not None:
            return self.flash_bytes
        speed = self.optimise is Optimise.SPEED
        return target.own_flash_bytes * (_SPEED_SHARE if speed else _SHARE) // 16

    @property
    def splits_nearly_free(self) -> bool:
        """Whether splits are taken that are nearly free."""
        named = (self.scheduler, self.allocator) != (schedule.DEFAULT, arena.DEFAULT)
        wanted = self.nearly_free and self.optimise is not Optimise.SPEED
        return wanted and not self.splits and not named

    @property
    def unsplit(self) -> PlanOptions:
        """The same, with every operator whole."""
        return replace(self, ram_bytes=None, max_slowdown=None, nearly_free=False, choice=None)

    @property
    def for_nearly_free(self) -> PlanOptions:
        """The same as a request for splits that are nearly free."""
        seconds = self.nearly_free_seconds if self.split_seconds is None else self.split_seconds
        return replace(self, max_slowdown=NEARLY_FREE, split_seconds=seconds)

    @property
    def nearly_free_seconds(self) -> float:
        return _FAST_SECONDS if self.fast else _SECONDS

    @property
    def search_seconds(self) -> float:
        """Work limit of a search for ways to split."""
        return partition.DEFAULT_SECONDS if self.split_seconds is None else self.split_seconds

    def met_by(self, plan: Plan) -> bool:
        """Whether a plan needs no more RAM than `ram_bytes`."""
        return self.ram_bytes is not None and ram_bytes(plan) <= self.ram_bytes
