"""`thimble arena`: from buffers with lifetimes to offsets in the smallest arena, and what is
proved.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from rich.table import Table

from toolchain import arena
from toolchain.arena.exact import DEFAULT_TIME_LIMIT_SECONDS
from toolchain.cli._collector import collector_paused
from toolchain.cli._console import error_console, output_console, progress
from toolchain.cli._groups import argument, grouped, only, option
from toolchain.cli._output import JsonOption, write_json, write_text
from toolchain.errors import InputError, ResultError
from toolchain.frontends.minimalloc import BufferFile, offsets_csv, read_buffers
from toolchain.ir import Placement
from toolchain.ir.arena import check_placement
from toolchain.planning.options import PlanOptions

_SECONDS_A_BUFFER = 1.1e-5
"""Seconds to read a buffer, check its offset and write it."""


@grouped
def command(
    file: Path = argument("FILE.csv", "Buffers: id,lower,upper,size[,alignment]."),
    *,
    capacity: int | None = option(
        None, "Stop at the first placement within this size; exit 1 if there is none.", unit="BYTES"
    ),
    output: str | None = option(
        None, "Write the offsets here; default: stdout.", "-o", unit="FILE|-"
    ),
    check: bool = option(False, "Only check the offsets in the file."),
    options: Annotated[PlanOptions, only("allocator")],
    time_limit: float | None = option(
        None,
        "Work limit for reading, placing, checking and writing (10), in seconds that it "
        "takes on one core of a desktop computer. At the limit the best placement so far is "
        "written. No clock is read: the result is the same on every machine. A million "
        "buffers take some fifteen seconds with any limit.",
        unit="S",
    ),
    json: JsonOption = None,
) -> None:
    """Place buffers in the smallest arena, and say whether it is proved to be the smallest.

    Reads and writes MiniMalloc's CSV format: lifetimes are half-open [lower, upper), sizes and
    offsets in bytes. The offsets go to standard output, size and proof to standard error.

    Example: `thimble arena A.1048576.csv --capacity 1048576 -o A.out.csv`
    """
    for name, value in (("capacity", capacity), ("time-limit", time_limit)):
        if value is not None and value < 0:
            raise InputError(f"--{name} is {value}; it cannot be negative")
    with collector_paused():
        buffers = read_buffers(file)
    if check:
        _check(file, buffers, capacity)
        return
    if buffers.offsets is not None:
        raise InputError(
            f"{file} gives offsets already; --check checks them, without that column they are found"
        )
    method = arena.allocator(options.allocator)
    limit = DEFAULT_TIME_LIMIT_SECONDS if time_limit is None else time_limit
    with progress() as step:
        step(f"placing {len(buffers.problem.blocks)} buffers")
        rest = len(buffers.problem.blocks) * _SECONDS_A_BUFFER
        placement = method.place(buffers.problem, max(limit - rest, 0.0), capacity)
    check_placement(buffers.problem, placement)
    result = _result(file, buffers, placement, capacity)
    met = capacity is None or placement.size_bytes <= capacity
    if met and (output is not None or json is None):
        write_text(output or "-", offsets_csv(buffers.problem, placement.offsets))
    if json:
        write_json(json, result)
    quiet = json == "-" or (output or "-") == "-"
    (error_console() if quiet else output_console()).print(_table(result))
    if not met:
        known = (
            "there is none"
            if placement.lower_bound_bytes > (capacity or 0)
            else "none was found within the limit; --time-limit gives more"
        )
        raise ResultError(
            f"no placement within {capacity:,} B: {known} (best {placement.size_bytes:,} B, "
            f"lower bound {placement.lower_bound_bytes:,} B)"
        )


def _check(file: Path, buffers: BufferFile, capacity: int | None) -> None:
    if buffers.offsets is None:
        raise InputError(f"{file} has no column offset: there is nothing to check")
    blocks = buffers.problem.blocks
    ends = [at + block.size_bytes for at, block in zip(buffers.offsets, blocks, strict=True)]
    size = max(ends, default=0) if capacity is None else capacity
    try:
        check_placement(buffers.problem, Placement("file", buffers.offsets, size, 0))
    except ValueError as error:
        raise ResultError(f"{file}: {error}") from error
    output_console().print(f"{file}: {len(blocks)} buffers lie within {size:,} B, none in another.")


def _result(
    file: Path, buffers: BufferFile, placement: Placement, capacity: int | None
) -> dict[str, Any]:
    blocks = buffers.problem.blocks
    result: dict[str, Any] = {
        "file": file.name,
        "allocator": placement.allocator,
        "buffers": len(blocks),
        "size_bytes": placement.size_bytes,
        "lower_bound_bytes": placement.lower_bound_bytes,
        "proved_optimal": placement.proved_optimal,
        "seconds": placement.seconds,
    }
    if capacity is not None:
        result |= {"capacity_bytes": capacity, "capacity_met": placement.size_bytes <= capacity}
    offsets = zip(blocks, placement.offsets, strict=True)
    return result | {"offsets": {block.name: at for block, at in offsets}}


def _table(result: dict[str, Any]) -> Table:
    proof = (
        "proved smallest"
        if result["proved_optimal"]
        else f"no placement is below {result['lower_bound_bytes']:,} B"
    )
    table = Table(title=f"{result['file']}: {result['buffers']} buffers", show_header=False)
    table.add_row("allocator", result["allocator"])
    table.add_row("arena", f"{result['size_bytes']:,} B, {proof}")
    if "capacity_bytes" in result:
        met = "met" if result["capacity_met"] else "not met"
        table.add_row("capacity", f"{result['capacity_bytes']:,} B, {met}")
    table.add_row("time", f"{result['seconds']:.3f} s")
    return table
