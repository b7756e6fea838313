"""Results that plans of one graph for several boards have in common, each computed once.

Nothing here changes a plan: each result follows from what its key says.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property

from toolchain.arena import Allocator
from toolchain.boards import Board
from toolchain.ir import Graph
from toolchain.memory.firmware_size import least_flash_bytes
from toolchain.memory.plan import Plan
from toolchain.ops.lowering import Kernels
from toolchain.partition.scheme import Scheme
from toolchain.partition.walk import Walks
from toolchain.planning.copies import Copies
from toolchain.planning.options import PlanOptions
from toolchain.planning.room import Forms, Room
from toolchain.planning.ways import Built, Ways, ordered_walks

_LARGE_BYTES = 1024
"""Smaller constants count with the tables and the parameters of channels."""
Names = tuple[tuple[str, str], ...]
"""The titles of kernels that are not the first ones, by their operators."""


@dataclass
class Timed:
    """Results that rest on predicted time, too: the ways to split, and the forms of kernels.

    They are those of `Known`, and of all boards that agree in `key`:

    - the costs (`CostModel.identity`): of two boards with one core, those whose memories of code
      and constants take as long to read at the boards' clocks, behind caches of one shape;
    - the banks that may hold copies of constants, by name, and which of them code;
    - the bytes of a count of an operator, which the firmware keeps in RAM;
    - whether the board is this computer;
    - whether splits may be chosen, whether they are searched, and the goal.

    How large memories are, where they lie and how many there are does not count, nor do names of
    boards: how much RAM and flash a plan may take is asked of the finished plans. `placed`: by way,
    arena, spare flash and board, a plan, whether its arena may be spread over banks, and by the
    limit of RAM, if so, its copies.
    """

    key: Hashable
    forms: Forms
    ways: Ways | None = None
    least: dict[tuple[tuple[Scheme, ...], int | None, float], int] = field(default_factory=dict)
    rooms: dict[int, Room] = field(default_factory=dict)
    lean_bytes: dict[int, int] = field(default_factory=dict)
    placed: dict[Hashable, tuple[Plan, bool, dict[int | None, Copies]]] = field(
        default_factory=dict
    )


@dataclass
class Known:
    """Results that no board's memories and clock change: kernels, orders, and places in one arena.

    They are those of the graph, order and arena of `whole`, the unsplit plan, and of all boards
    whose cores agree in every field (`Core`), for one set of options but for RAM, slowdown, flash,
    choice and goal. `graphs`: by schemes; `built` and `plans`: by schemes and titles of kernels.
    `allocator`: by which they have places.
    The plans have the name of the board that was first. `timed`: of the last board's costs; boards
    whose costs are alike should come one after the other.
    """

    whole: Plan
    kernels: Kernels
    graphs: dict[tuple[Scheme, ...], Graph] = field(default_factory=dict)
    built: dict[tuple[tuple[Scheme, ...], Names], Built] = field(default_factory=dict)
    plans: dict[tuple[tuple[Scheme, ...], Names], Plan] = field(default_factory=dict)
    allocator: Allocator = field(kw_only=True)
    timed: Timed | None = None

    @cached_property
    def least_flash_bytes(self) -> int:
        """No firmware of the graph takes less flash, however it is split."""
        return least_flash_bytes(self.whole.graph, self.whole.lowered.core)

    @cached_property
    def shares_constants(self) -> bool:
        """Whether two operators read equal constants: the firmware has one array for both."""
        graph, seen = self.whole.graph, set[bytes]()
        for op in graph.ops:
            read = (graph.tensors[name] for name in set(op.present_inputs()))
            large = (one for one in read if one.is_constant and one.size_bytes >= _LARGE_BYTES)
            contents = {one.constant.tobytes() for one in large if one.constant is not None}
            if contents & seen:
                return True
            seen |= contents
        return False

    @cached_property
    def walks(self) -> Walks:
        """The walks of regions of the operators, in the order of `whole`."""
        return ordered_walks(self.whole, self.kernels)


def planned_alike(board: Board, costs: Hashable) -> Hashable:
    """Equal for two boards that get the same plans, so that one is made for both: they agree in

    - the core, with every field of it;
    - every field of every memory, in their order: name, address, size, kind, contents, cycles of an
      access, stalls at the board's clock, where code is fetched, whether it lies beside the chip;
    - every field of every cache;
    - the clock;
    - the bytes of a count of an operator, and whether there is a counter;
    - `costs`: the identity of the board's cost model, with what was measured there.

    The board's name and title, chip, serial port, tools that flash it, and its emulator do not
    count.
    """
    counter = None if board.counter is None else board.counter.count_bytes
    return board.core, board.memories, board.caches, board.clock_hz, counter, costs


def timed_alike(
    board: Board, costs: Hashable, options: PlanOptions, banks: tuple[tuple[str, bool], ...]
) -> Hashable:
    """The key of `Timed`. `banks`: that may hold copies, and whether they may hold code."""
    counter = board.counter.count_bytes if board.counter else 0
    split = options.splits or options.splits_nearly_free
    searched = options.splits or not board.is_host
    return costs, banks, counter, board.is_host, split, searched, options.optimise
