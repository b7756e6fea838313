"""Flashing a firmware to a board: the choice among the tools, and their run.

Each tool first reads the chip's identity and is stopped if it is not the board's chip. It then
writes, and verifies what it has written. A chip that does not answer is asked once more under
reset, because its firmware may sleep or have turned the debug port off. At last the probe reads how
far the firmware's start-up came. The messages of the tools when there is no probe, no chip or no
permission come from their sources, and those of ST's tool from people's logs
(docs/hardware-known.md lists them).
"""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from toolchain.boards import Board
from toolchain.device.firmware import Firmware
from toolchain.device.runners import BESIDE, CLASSES, IdentityError, Runner, UnreadError, tail_of
from toolchain.device.start_record import WORDS, record_address
from toolchain.device.start_record import complaint as start_complaint
from toolchain.device.tool_versions import lacks
from toolchain.errors import InputError, LinkError, MissingToolError
from toolchain.files import scratch_folder
from toolchain.packages import lazy

if TYPE_CHECKING:
    from elftools.elf import elffile
else:
    elffile = lazy("elftools.elf.elffile")

__all__ = ["IdentityError", "UnreadError", "bank_beside", "choose", "flash", "runners"]

_TIMEOUT_SECONDS = 300.0
_START_SECONDS = 2.0
"""In which a start-up ends, or has waited in vain (THIMBLE_WAIT_TURNS)."""


def runners(board: Board, probe: str = "") -> tuple[Runner, ...]:
    """The tools that can flash `board`, preferred first; () for an emulated one.

    Raises InputError if the board's file names an unknown tool, or has not the options of one.
    """
    unknown = [name for name in board.flash_runners if name not in CLASSES]
    if unknown:
        raise InputError(f"board {board.name} names unknown flashing tools: {', '.join(unknown)}")
    for name, options in board.flash_runners.items():
        needs = CLASSES[name].needs
        if set(options) - {"beside"} != set(needs):  # beside: the bank it writes, too
            raise InputError(
                f"board {board.name}: [flash.{name}] has {', '.join(options) or 'nothing'}; it "
                f"needs {', '.join(needs) or 'nothing'}"
            )
    return tuple(CLASSES[name](options, probe) for name, options in board.flash_runners.items())


def choose(
    board: Board,
    wanted: str | None = None,
    *,
    probe: str = "",
    installed: bool = True,
    beside: str = "",
) -> Runner:
    """The first installed tool, or the requested one; any possible one if not `installed`.

    `beside`: the memory beside the chip that is to be written, too; only some tools can. Raises
    InputError for an emulated board or a tool that cannot flash it, MissingToolError with the
    commands that install one.
    """
    able = runners(board, probe)
    if beside:
        able = tuple(replace(r, writes_beside=True) for r in able if BESIDE in r.options)
        if not able:
            raise InputError(
                f"no tool that is known for {board.name} writes its {beside}: write the .hex with "
                "one that does, or keep the weights in the chip's flash"
            )
    if not able:
        raise InputError(f"{board.name} runs here, there is nothing to flash: use `thimble run`")
    if wanted is not None:
        able = tuple(runner for runner in able if runner.name == wanted)
        if not able:
            tools = board.flash_runners.items()
            known = ", ".join(name for name, o in tools if not beside or BESIDE in o)
            target = f"{board.name}'s {beside}" if beside else board.name
            raise InputError(f"{target} cannot be flashed with {wanted!r}, only with {known}")
    identity, unknown = board.chip.identity, []
    for runner in able:
        if not installed:
            return runner
        if runner.available():
            why = lacks(runner.name, runner.program, identity.device_id) if identity else ""
            if not why:
                return runner
            unknown.append(f"  {why}")
    if unknown:
        others = [r.name for r in able if not r.available()]
        instead = f"; or use {', '.join(others)}" if others else ""
        raise MissingToolError(
            "\n".join([f"no tool here flashes {board.name}:", *unknown]) + instead
        )
    lines = [f"  {r.name}: {r.install.format_map(dict(r.options))}" for r in able]
    raise MissingToolError("\n".join([f"no tool to flash {board.name}; install one:", *lines]))


def bank_beside(firmware: Firmware) -> str:
    """The memory beside the chip that the image has bytes for; '' for none."""
    external = firmware.board.external
    if external is None:
        return ""
    (bank,) = [m for m in firmware.board.memories if m.name == external.bank]
    with firmware.elf.open("rb") as file:
        parts = elffile.ELFFile(file).iter_segments("PT_LOAD")
        held = any(bank.origin <= p["p_paddr"] < bank.end for p in parts if p["p_filesz"])
    return bank.name if held else ""


def flash(
    firmware: Firmware,
    wanted: str | None = None,
    probe: str = "",
    show: Callable[[str], None] = lambda line: None,
) -> None:
    """Check the chip's identity, write, verify; `show` gets each command line before it runs.

    Raises IdentityError if it is another chip and UnreadError if it does not answer (nothing is
    written then), LinkError if the tool fails or the flash does not hold what was written.
    """
    firmware, board = replace(firmware, folder=firmware.folder.absolute()), firmware.board
    chosen = choose(board, wanted, probe=probe, beside=bank_beside(firmware))
    runner = _identified(chosen, board, show)
    with scratch_folder() as scratch:
        verify = runner.verify(firmware, scratch)
        said = _written(runner, firmware, show)
        if verify:
            show(shlex.join(verify))
            said = _run(runner, board, verify, may_fail=runner.leaves)
        if not runner.matches(firmware, said, scratch):
            raise LinkError(
                f"{runner.name} wrote {board.name}, but the flash does not hold the firmware:\n"
                f"{tail_of(said)}"
            )
    _check_started(runner, firmware, show)


def _check_started(runner: Runner, firmware: Firmware, show: Callable[[str], None]) -> None:
    """Read by the probe how far the firmware's start-up came. Raises LinkError where it waits for
    ever; what cannot be read says nothing."""
    address = record_address(firmware.elf)
    if address is None or not runner.peek(address, WORDS):
        return
    time.sleep(_START_SECONDS)
    words = words_at(runner, firmware.board, address, WORDS, show)
    if why := start_complaint(words, firmware.board):
        raise LinkError(f"{firmware.board.name} holds the firmware, but {why}")


def words_at(
    runner: Runner,
    board: Board,
    address: int,
    words: int,
    show: Callable[[str], None] = lambda line: None,
) -> list[int]:
    """Words that the probe reads of a running chip; [] where it cannot."""
    line = runner.peek(address, words)
    if not line:
        return []
    show(shlex.join(line))
    return runner.peeked(_run(runner, board, line, may_fail=True))


def core_registers(runner: Runner, board: Board) -> dict[str, int]:
    """`CORE_REGISTERS` of a core that is stopped for it, by the probe; {} where it cannot."""
    line = runner.halted()
    return runner.registers(_run(runner, board, line, may_fail=True)) if line else {}


def _written(runner: Runner, firmware: Firmware, show: Callable[[str], None]) -> str:
    """The output of the tool that wrote, in the first of its ways that works. Raises LinkError
    where none does."""
    *first, last = runner.alternatives()
    for one in first:
        line = one.write(firmware)
        show(shlex.join(line))
        with contextlib.suppress(LinkError):
            said = _run(one, firmware.board, line)
            if one.verified in said:
                return said
    line = last.write(firmware)
    show(shlex.join(line))
    return _run(last, firmware.board, line)


def _identified(runner: Runner, board: Board, show: Callable[[str], None]) -> Runner:
    """`runner`, connecting in the way in which the board's chip answers."""
    line = runner.identify(board)
    show(shlex.join(line))
    try:
        runner.check(board, _run(runner, board, line, may_fail=True))
    except UnreadError as error:
        if error.hopeless or not runner.resets or runner.under_reset:
            raise
        return _identified(replace(runner, under_reset=True), board, show)
    return runner


def _run(runner: Runner, board: Board, command: Sequence[str], *, may_fail: bool = False) -> str:
    """Run the tool, and return its output. With `may_fail` the caller judges by the output."""
    try:
        with scratch_folder() as empty:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,  # pyocd asks there which probe is meant
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=_TIMEOUT_SECONDS,
                cwd=empty if runner.alone else None,
            )
    except subprocess.TimeoutExpired as error:
        raise LinkError(f"{runner.name} did not end in {_TIMEOUT_SECONDS:g} s") from error
    except OSError as error:
        raise MissingToolError(
            f"{command[0]} cannot be run ({error.strerror}): "
            f"{runner.install.format_map(dict(runner.options))}"
        ) from error
    said = (done.stdout + done.stderr).strip()
    if done.returncode and not may_fail:
        why = runner.complaint(said)
        raise LinkError(
            f"{runner.name} could not flash {board.name}{': ' + why if why else ''}:\n"
            f"{tail_of(said)}"
        )
    return said
