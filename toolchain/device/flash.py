"""Putting a firmware on a board: one class for each tool that can, and the choice among them."""

from __future__ import annotations

import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from toolchain.boards import Board
from toolchain.device.firmware import Firmware
from toolchain.errors import InputError, LinkError, MissingToolError

_TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True)
class Runner(ABC):
    """A flashing tool. `options` are those of the board's file."""

    options: Mapping[str, str]

    name = ""
    program = ""
    install = ""

    @abstractmethod
    def command(self, firmware: Firmware) -> list[str]:
        """The command line that flashes `firmware` and starts it."""

    def available(self) -> bool:
        return shutil.which(self.program) is not None


class OpenOcd(Runner):
    """`config`: configuration files, separated by blanks."""

    name = "openocd"
    program = "openocd"
    install = "apt-get install -y openocd"

    def command(self, firmware: Firmware) -> list[str]:
        files = [word for file in self.options["config"].split() for word in ("-f", file)]
        return [self.program, *files, "-c", f"program {{{firmware.elf}}} verify reset exit"]


class PyOcd(Runner):
    """`target`: the part's name in its CMSIS pack."""

    name = "pyocd"
    program = "pyocd"
    install = "pip install pyocd && pyocd pack install {target}"

    def command(self, firmware: Firmware) -> list[str]:
        return [self.program, "flash", "--target", self.options["target"], str(firmware.elf)]


class StFlash(Runner):
    name = "st-flash"
    program = "st-flash"
    install = "apt-get install -y stlink-tools"

    def command(self, firmware: Firmware) -> list[str]:
        return [self.program, "--reset", "--format", "ihex", "write", str(firmware.hex)]


class Stm32Programmer(Runner):
    name = "stm32programmer"
    program = "STM32_Programmer_CLI"
    install = "install STM32CubeProgrammer from st.com and put its bin folder on PATH"

    def command(self, firmware: Firmware) -> list[str]:
        connect = ["-c", "port=SWD", "mode=UR"]
        return [self.program, *connect, "-w", str(firmware.hex), "-v", "-rst"]


class DfuUtil(Runner):
    """The ROM's USB boot loader: BOOT0 high at reset. `device`: vendor:product."""

    name = "dfu-util"
    program = "dfu-util"
    install = "apt-get install -y dfu-util"

    def command(self, firmware: Firmware) -> list[str]:
        start = firmware.board.memories[0].origin
        place = ["-a", "0", "-s", f"0x{start:08x}:leave"]
        return [self.program, "-d", self.options["device"], *place, "-D", str(firmware.bin)]


_CLASSES = {c.name: c for c in (OpenOcd, PyOcd, StFlash, Stm32Programmer, DfuUtil)}


def runners(board: Board) -> tuple[Runner, ...]:
    """The tools that can flash `board`, preferred first; () for an emulated one.

    Raises InputError where the board's file names a tool that there is no class for.
    """
    unknown = [name for name in board.flash_runners if name not in _CLASSES]
    if unknown:
        raise InputError(f"board {board.name} names unknown flashing tools: {', '.join(unknown)}")
    return tuple(_CLASSES[name](options) for name, options in board.flash_runners.items())


def choose(board: Board, wanted: str | None = None, *, installed: bool = True) -> Runner:
    """The first tool that is there, or the wanted one; any that could, if not `installed`.

    Raises InputError for an emulated board or a tool that cannot flash it, MissingToolError with
    the lines that install one.
    """
    able = runners(board)
    if not able:
        raise InputError(f"{board.name} runs here, there is nothing to flash: use `thimble run`")
    if wanted is not None:
        able = tuple(runner for runner in able if runner.name == wanted)
        if not able:
            known = ", ".join(board.flash_runners)
            raise InputError(f"{board.name} cannot be flashed with {wanted!r}, only with {known}")
    for runner in able:
        if not installed or runner.available():
            return runner
    lines = [f"  {r.name}: {r.install.format_map(dict(r.options))}" for r in able]
    raise MissingToolError("\n".join([f"no tool to flash {board.name}; install one:", *lines]))


def flash(firmware: Firmware, wanted: str | None = None) -> str:
    """Flash with the chosen tool; what it printed. Raises LinkError where it fails."""
    runner = choose(firmware.board, wanted)
    command = runner.command(firmware)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise LinkError(f"{runner.name} did not end in {_TIMEOUT_SECONDS:g} s") from error
    said = (done.stdout + done.stderr).strip()
    if done.returncode:
        tail = "\n".join(f"  {line}" for line in said.splitlines()[-8:])
        raise LinkError(f"{runner.name} could not flash {firmware.board.name}:\n{tail}")
    return said
