"""Checks of a board's answers, by the firmware that it is to run: a wrong one ends in one
LinkError.

The identity of a build says which firmware answered. The board itself sends it: the rest of its
answer may be wrong all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolchain.boards import Board
from toolchain.device.firmware import Firmware
from toolchain.device.protocol import BESIDE, Hello
from toolchain.errors import LinkError


class OtherFirmwareError(LinkError):
    """The board answers, and runs another firmware."""


class BesideError(LinkError):
    """The memory beside the chip does not work, or does not hold what was built."""


LEAST_DATA_BYTES = 8
"""Data bytes that a frame must carry: one operator's count."""
_COUNTER_CYCLES = 1 << 32
_MOST_TICKS = 1 << 60
"""More than a century at 300 MHz: a difference of counters that ran backwards."""
_CLOCK_TOLERANCE, _CLOCK_SECONDS = 2.0, 1.0
"""So much faster than its file says may a board's clock be, and so long may a run begin before
this computer's clock is read."""
_SUM_TOLERANCE, _SUM_TICKS = 2, 1000
"""The operators' counts are within 1% of the total, except where nearly nothing is counted."""


def check_hello(hello: Hello, firmware: Firmware) -> None:
    """Check the reply to HELLO. Raises LinkError where a board runs another firmware, or its
    numbers are not those of this one."""
    if hello.build_id != firmware.build_id:
        raise OtherFirmwareError(
            f"the board runs another firmware ({hello.model} for {hello.board}, "
            f"build {hello.build_id[:12]}, not {firmware.build_id[:12]}): "
            f"{firmware.to_flash}"
        )
    model = firmware.model
    for field, said, known in (
        ("inputs", hello.inputs, (len(model.inputs),)),
        ("outputs", hello.outputs, (len(model.outputs),)),
        ("counted operators", hello.operators, (0, len(model.operators))),
        ("bytes of arena", hello.arena_bytes, (model.arena_bytes,)),
        ("models", hello.models, (len(firmware.models),)),
    ):
        if said not in known:
            raise LinkError(
                f"the board says that it has {said:,} {field}, and its firmware has "
                f"{' or '.join(f'{one:,}' for one in known)}: {firmware.to_flash} again"
            )
    if hello.data_bytes < LEAST_DATA_BYTES:
        raise LinkError(
            f"the board says that a frame carries {hello.data_bytes} bytes of data; "
            f"{LEAST_DATA_BYTES} are the least: {firmware.to_flash} again"
        )
    _check_chip(hello, firmware)
    _check_beside(hello, firmware)
    counter = firmware.board.counter
    if counter is not None and hello.unit != counter.unit:
        raise LinkError(
            f"the board says that it counts {hello.unit}, and {firmware.board.name} counts "
            f"{counter.unit}: {firmware.to_flash} again"
        )


def _check_chip(hello: Hello, firmware: Firmware) -> None:
    """Check what the board's registers say of its clock and of its chip. Raises LinkError."""
    board, identity = firmware.board, firmware.board.chip.identity
    if hello.clock_hz > board.clock_hz:
        raise LinkError(
            f"the board says that its core runs at {hello.clock_hz:,} Hz, and {board.name} at "
            f"{board.clock_hz:,} at most: {firmware.to_flash} again"
        )
    known = () if identity is None else (identity.device_id, *identity.other_ids)
    if hello.identity and known and hello.device_id not in known:
        raise LinkError(
            f"this is no {board.name}: its chip says device 0x{hello.device_id:03x}, revision "
            f"0x{hello.revision_id:04x}, not device 0x{known[0]:03x}: compile for the board that "
            "it is"
        )


def _check_beside(hello: Hello, firmware: Firmware) -> None:
    """Check what the board says of the memory beside its chip. Raises BesideError."""
    if hello.beside == 0:
        return
    external = firmware.board.external
    name = f" ({external.bank})" if external is not None else ""
    read = hello.beside_identity.to_bytes(4, "little")[:3].hex(" ")
    identity = f"; its JEDEC identity is {read}" if hello.beside_identity else ""
    raise BesideError(
        f"the memory beside the chip{name} {BESIDE.get(hello.beside, 'failed')} (status "
        f"{hello.beside}){identity}: {firmware.to_flash} with a tool that writes it, or keep "
        "the weights in the chip's flash"
    )


def check_ticks(ticks: int, seconds: float, board: Board, clock_hz: int = 0) -> None:
    """Check the ticks of a run that took `seconds` by this computer's clock. `clock_hz`: that the
    board says; 0 for that of its file.

    Raises LinkError for a count that no counter reaches in this time, or that lacks cycles.
    """
    clocked = board.counter is not None and board.counter.unit == "cycles"
    most = _MOST_TICKS
    if clocked and not board.emulator:
        most = int(_CLOCK_TOLERANCE * (seconds + _CLOCK_SECONDS) * board.clock_hz)
    if ticks > most:
        raise LinkError(
            f"the board counted {ticks:,} in a run of {seconds:.1f} s, which its counter cannot "
            "reach: reset the board, and flash it again if that does not help"
        )
    if clocked:
        check_wraps(ticks, seconds, clock_hz or board.clock_hz)


def check_wraps(ticks: int, seconds: float, clock_hz: int) -> None:
    """Check that no operator took more than 2^32 cycles, which its count would lack: the computer's
    clock, though it knows no milliseconds, shows that."""
    lacking = seconds * clock_hz - ticks
    if lacking > _COUNTER_CYCLES / 2:
        longest = _COUNTER_CYCLES / clock_hz
        raise LinkError(
            f"the run took {seconds:.1f} s, but {ticks:,} cycles were counted: an operator takes "
            f"longer than the {longest:.1f} s that the board's counter holds; split it "
            "(thimble compile --ram), or run it once more if the line was bad"
        )


def check_counts(counts: Sequence[int], total: int | None) -> None:
    """Check the operators' counts of a run that took `total` ticks; None: nothing has run.

    Raises LinkError where they cannot be of it.
    """
    if total is None:
        return
    counted = sum(counts)
    if counted > _SUM_TOLERANCE * total + _SUM_TICKS * (len(counts) + 1):
        raise LinkError(
            f"the board's operators counted {counted:,} in a run of {total:,}: its counter does "
            "not go forward; reset the board"
        )


def check_use(name: str, used_bytes: int, most_bytes: int) -> None:
    """Check the use of a painted memory. Raises LinkError for more bytes than it has."""
    if used_bytes > most_bytes:
        raise LinkError(
            f"the board says that {used_bytes:,} bytes of its {name} of {most_bytes:,} were used: "
            "reset the board"
        )
