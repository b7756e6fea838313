"""The flashing tools: one class for each, which makes its command lines and reads its answers.

The messages of the tools when there is no probe, no chip or no permission come from their sources,
and those of ST's tool from people's logs (docs/hardware.md lists them).
"""

from __future__ import annotations

import re
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from toolchain.boards import Board
from toolchain.device.drive import drives
from toolchain.device.firmware import Firmware
from toolchain.errors import InputError, LinkError

CORE_REGISTERS = ("pc", "lr", "sp")
"""Registers that tell where a silent core is."""
_ID_BITS = 0xFFF
"""DEV_ID, the low bits of DBGMCU_IDCODE."""


class IdentityError(LinkError):
    """The chip on the board is not the one that the firmware is for."""


class UnreadError(LinkError):
    """The chip's identity could not be read. `hopeless`: another way to connect will not help."""

    def __init__(self, sentence: str, said: str, *, hopeless: bool) -> None:
        super().__init__("\n".join([sentence, tail_of(said)]).rstrip())
        self.hopeless = hopeless


_NO_PROBE = (
    "no debug probe answers: plug the board in by its ST-LINK's USB socket, or check --probe"
)
_SEVERAL = "several debug probes are plugged in: name one with --probe"
_NO_ACCESS = (
    "you may not use the USB device: install the udev rules (thimble doctor --install-udev), and "
    "plug it in anew (docs/hardware.md)"
)
_BUSY = "another program holds the debug probe: end it, or plug the board in anew"
_NO_CHIP = (
    "the debug probe does not reach the chip: is the board powered, are the jumpers of its ST-LINK "
    "in place, does nothing hold its reset?"
)
_OLD_PROBE = "the firmware of the ST-LINK is too old: renew it with ST's updater, STSW-LINK007"
_NO_LOADER = "no boot loader answers: hold BOOT0 high and reset the board"


@dataclass(frozen=True)
class Runner(ABC):
    """A flashing tool. `options` are those of the board's file; the tool needs `beside` among them
    to write the memory beside the chip.

    `probe` is the serial number of the debug probe, '' if there is only one. `under_reset`: the
    chip is held in reset while the probe connects. `writes_beside`: the firmware has something in
    the memory beside the chip.
    """

    options: Mapping[str, str]
    probe: str = ""
    under_reset: bool = False
    writes_beside: bool = False

    name = ""
    program = ""
    install = ""
    verified = ""
    """Part of the tool's output when it has verified what it wrote."""
    complaints: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Patterns of the tool's output when it fails, and their meaning; the first match counts."""
    resets: ClassVar[bool] = False
    """Whether it connects to a running chip, and can connect under reset instead."""
    needs: ClassVar[tuple[str, ...]] = ()
    """The options that a board's file gives, all of them."""
    alone: ClassVar[bool] = False
    """Whether it runs in an empty folder: it would take files of the working folder for its own."""
    leaves: ClassVar[bool] = False
    """Whether the board disconnects during the last command, so that its exit status means
    nothing."""

    @abstractmethod
    def identify(self, board: Board) -> list[str]:
        """The command line that reads the chip's identity."""

    @abstractmethod
    def check(self, board: Board, said: str) -> None:
        """Check the answer `said` to `identify`.

        Raises IdentityError if it is of another chip than the board's, UnreadError if it has no
        identity.
        """

    def complaint(self, said: str) -> str:
        """The meaning of the tool's message, '' if it is not known."""
        meanings = (
            means for words, means in self.complaints if re.search(words, said, re.MULTILINE)
        )
        return next(meanings, "").format_map(dict(self.options))

    @abstractmethod
    def write(self, firmware: Firmware) -> list[str]:
        """The command line that flashes `firmware`."""

    def alternatives(self) -> tuple[Runner, ...]:
        """The ways to write: the tool as it is, or with each of several loaders in turn."""
        return (self,)

    def verify(self, firmware: Firmware, scratch: Path) -> list[str]:
        """A further command line that reads back, and starts the firmware; [] if `write` does both.

        `scratch` is a folder for it.
        """
        return []

    def matches(self, firmware: Firmware, said: str, scratch: Path) -> bool:
        """Whether the answer of the last command line says that the flash holds the firmware."""
        return self.verified in said

    def peek(self, address: int, words: int) -> list[str]:
        """The command line that reads `words` of a running chip's RAM; [] if the tool cannot."""
        return []

    def peeked(self, said: str) -> list[int]:
        """The words in the answer to `peek`; [] if there are none."""
        return []

    def halted(self) -> list[str]:
        """The command line that stops a running core, prints `CORE_REGISTERS` and lets it run on;
        [] if the tool cannot."""
        return []

    def registers(self, said: str) -> dict[str, int]:
        """The registers in the answer to `halted`, by their names."""
        found = re.findall(r"^(\w+)(?: \(/32\):| =) (0x[0-9a-fA-F]+)", said, re.MULTILINE)
        return {name: int(word, 16) for name, word in found}

    def available(self) -> bool:
        return shutil.which(self.program) is not None

    def commands(self, firmware: Firmware, scratch: Path) -> tuple[list[str], ...]:
        """All command lines in their order."""
        lines = (
            self.identify(firmware.board),
            self.write(firmware),
            self.verify(firmware, scratch),
        )
        return tuple(line for line in lines if line)


def _check_id(runner: Runner, board: Board, chip_id: int | None, said: str) -> None:
    identity = board.chip.identity
    if identity is None:
        raise InputError(f"the file of {board.chip.name} does not say how to know it ([identity])")
    if not chip_id:
        why = runner.complaint(said)
        sentence = why or "the chip's identity could not be read"
        raise UnreadError(sentence, said, hopeless=bool(why) and why != _NO_CHIP)
    if chip_id & _ID_BITS not in (identity.device_id, *identity.other_ids):
        raise IdentityError(
            f"this is no {board.name}: the chip says device 0x{chip_id & _ID_BITS:03x}, not "
            f"0x{identity.device_id:03x}; nothing was written"
        )


def _hexadecimal(pattern: str, said: str) -> int | None:
    match = re.search(pattern, said, re.MULTILINE)
    return int(match[1], 16) if match else None


def _register(board: Board) -> str:
    identity = board.chip.identity
    return f"0x{identity.id_register:08X}" if identity else "0"


_NO_PORTS = "gdb_port disabled; tcl_port disabled; telnet_port disabled"
"""Two boards are flashed at the same time; openocd's servers would be in each other's way."""


_UNDER_RESET = "reset_config srst_only srst_nogate connect_assert_srst"


def _tcl_word(text: str) -> str:
    """`text` as one word of Tcl, whatever is in it."""
    if re.search(r"[{}\\]", text):
        return re.sub(r"([^\w./-])", r"\\\1", text)
    return f"{{{text}}}"


BESIDE = "beside"


class OpenOcd(Runner):
    """`config`: configuration files, separated by spaces. `beside`: those that also set up the
    controller of the memory beside the chip.
    """

    name = "openocd"
    needs = ("config",)
    program = "openocd"
    install = "apt-get install -y openocd"
    verified = "Verified OK"
    resets = True
    alone = True
    complaints = (
        (r"libusb_open\(\) failed with LIBUSB_ERROR_ACCESS", _NO_ACCESS),
        (r"LIBUSB_ERROR_BUSY|the selected device is already used", _BUSY),
        (r"init mode failed|unable to connect to the target|Error connecting DP", _NO_CHIP),
        (r"target voltage may be too low", _NO_CHIP),
        (r"^Error: open failed|No device matches the serial string", _NO_PROBE),
        (r"no ST-LINK detected|ST-LINK open failed", _NO_PROBE),  # behind ST's stlink-server
        (r"Can't find \S+\.cfg", "this openocd lacks a file of {config}: install a newer one"),
    )

    def _start(self) -> list[str]:
        config = self.options[BESIDE if self.writes_beside else "config"]
        files = [word for file in config.split() for word in ("-f", file)]
        lines = [f"adapter serial {_tcl_word(self.probe)}"] if self.probe else []
        lines += [_UNDER_RESET] if self.under_reset else []
        return [self.program, "-c", _NO_PORTS, *files, *_commands(lines)]

    def identify(self, board: Board) -> list[str]:
        read = f"[lindex [read_memory {_register(board)} 32 1] 0]"
        begin = ["init", "reset halt"] if self.under_reset else ["init"]
        return [
            *self._start(),
            *_commands([*begin, f"echo [format {{chip 0x%08x}} {read}]", "shutdown"]),
        ]

    def check(self, board: Board, said: str) -> None:
        _check_id(self, board, _hexadecimal(r"^chip (0x[0-9a-f]+)", said), said)

    def write(self, firmware: Firmware) -> list[str]:
        line = f"program {_tcl_word(str(firmware.elf))} verify reset exit"
        return [*self._start(), *_commands([line])]

    def peek(self, address: int, words: int) -> list[str]:
        read = f'echo "words [read_memory 0x{address:08x} 32 {words}]"'
        return [*replace(self, under_reset=False)._start(), *_commands(["init", read, "shutdown"])]

    def peeked(self, said: str) -> list[int]:
        line = re.search(r"^words (.*)$", said, re.MULTILINE)
        return [int(word, 16) for word in line[1].split()] if line else []

    def halted(self) -> list[str]:
        lines = ("init", "halt", *(f"reg {name}" for name in CORE_REGISTERS), "resume", "shutdown")
        return [*replace(self, under_reset=False)._start(), *_commands(lines)]


def _commands(lines: Sequence[str]) -> list[str]:
    return [word for line in lines for word in ("-c", line)]


def _dumped(said: str, line_begins: str) -> list[int]:
    """The words of a dump of memory, whose lines begin so."""
    rest = re.findall(
        rf"{line_begins}\s+((?:[0-9a-fA-F]{{8}}\s+)*[0-9a-fA-F]{{8}})", said, re.MULTILINE
    )
    return [int(word, 16) for words in rest for word in words.split()]


def _pyocd_word(text: str) -> str:
    """`text` as one word of a commander's line, which pyocd splits twice (`_split_commands`, then
    `parse_command`)."""
    for _ in range(2):
        text = re.sub(r"([^\w./:-])", r"\\\1", text)
    return text


class PyOcd(Runner):
    """`target`: the part's name in its CMSIS pack."""

    name = "pyocd"
    needs = ("target",)
    program = "pyocd"
    install = "pip install pyocd && pyocd pack install {target}"
    resets = True
    complaints = (
        (r"udev rule|Access denied", _NO_ACCESS),
        (r"unsupported, older firmware|firmware does not support JTAG/SWD", _OLD_PROBE),
        (r"^Enter the number of the debug probe|More than one debug probe matches", _SEVERAL),
        (r"No connected debug probe|No target device available", _NO_PROBE),
        (
            r"Target type \S+ not recognized",
            "pyocd does not know {target}: run `pyocd pack install {target}`",
        ),
        (r"No device connected|Get IDCODE error|[AD]P (fault|error|wait)|No ACK", _NO_CHIP),
        (r"Unable to claim interface|Resource busy|Already opened in another mode", _BUSY),
    )

    def _start(self, command: str) -> list[str]:
        chosen = ["--uid", self.probe] if self.probe else []
        chosen += ["--connect", "under-reset"] if self.under_reset else []
        return [self.program, command, "--no-wait", "--target", self.options["target"], *chosen]

    def identify(self, board: Board) -> list[str]:
        return [*self._start("commander"), "-c", f"read32 {_register(board)}"]

    def check(self, board: Board, said: str) -> None:
        chip_id = _hexadecimal(r"^[0-9a-fA-F]{8}:\s+([0-9a-fA-F]{8})\b", said)
        _check_id(self, board, chip_id, said)

    def write(self, firmware: Firmware) -> list[str]:
        return [*self._start("load"), "--no-reset", str(firmware.elf)]

    def verify(self, firmware: Firmware, scratch: Path) -> list[str]:
        start = f"0x{firmware.board.memories[0].origin:08x}"
        compare = f"compare {start} {_pyocd_word(str(firmware.bin))}"
        return [*self._start("commander"), *_commands([compare, "reset"])]

    def matches(self, firmware: Firmware, said: str, scratch: Path) -> bool:
        return re.search(r"All \d+ bytes match", said) is not None

    def peek(self, address: int, words: int) -> list[str]:
        start = replace(self, under_reset=False)._start("commander")
        return [*start, "--connect", "attach", "-c", f"read32 0x{address:08x} {4 * words}"]

    def peeked(self, said: str) -> list[int]:
        return _dumped(said, r"^[0-9a-fA-F]{8}:")

    def halted(self) -> list[str]:
        start = replace(self, under_reset=False)._start("commander")
        lines = ("halt", *(f"reg {name}" for name in CORE_REGISTERS), "go")
        return [*start, "--connect", "attach", *_commands(lines)]


class StLink(Runner):
    """The open st-flash and st-info."""

    name = "stlink"
    program = "st-flash"
    install = "apt-get install -y stlink-tools"
    verified = "Flash written and verified"
    resets = True
    complaints = (
        (r"Could not open USB device .*access error", _NO_ACCESS),
        (r"Couldn't find (any|matched) ST-Link|Found 0 stlink programmers", _NO_PROBE),
        (
            r"unknown chip id! 0x0*[1-9a-f]",
            "this st-flash does not know the chip: install a newer one, or use another tool",
        ),
        (r"unknown chip id|chipid:\s*0x0+\s*$", _NO_CHIP),
        (r"Failed to (connect to target|enter SWD mode|halt the core)", _NO_CHIP),
    )

    def _way(self) -> list[str]:
        return ["--connect-under-reset"] if self.under_reset else []

    def identify(self, board: Board) -> list[str]:
        return ["st-info", "--probe", *self._way()]

    def check(self, board: Board, said: str) -> None:
        serials = re.findall(r"^\s*serial:\s*(\S+)", said, re.MULTILINE)
        chips = re.findall(r"^\s*chipid:\s*(0x[0-9a-fA-F]+)", said, re.MULTILINE)
        probes = dict(zip(serials, chips, strict=False))
        if len(probes) > 1 and not self.probe:
            raise InputError(
                f"several probes are plugged in; name one with --probe: {', '.join(probes)}"
            )
        chip = probes.get(self.probe) if self.probe else next(iter(probes.values()), None)
        _check_id(self, board, int(chip, 16) if chip else None, said)

    def write(self, firmware: Firmware) -> list[str]:
        chosen = ["--serial", self.probe] if self.probe else []
        how = [*self._way(), "--reset", "--format", "ihex"]
        return [self.program, *chosen, *how, "write", str(firmware.hex)]


_LOADERS = "ExternalLoader"


class Stm32CubeProgrammer(Runner):
    """ST's own command line (UM2237). It always connects under reset here. `beside`: the external
    loader of the memory beside the chip, in the folder where ST's installer puts it; several,
    separated by spaces, where revisions of the board have different memories.
    """

    name = "stm32cubeprogrammer"
    program = "STM32_Programmer_CLI"
    install = "install STM32CubeProgrammer from st.com and put its bin folder on PATH"
    verified = "verified successfully"
    complaints = (
        (r"DEV_CONNECT_ERR", _BUSY),
        (r"No debug probe detected|No ST-?LINK detected|DEV_NO_STLINK", _NO_PROBE),
        (r"Serial number not found", _NO_PROBE),
        (r"No STM32 target found|Unable to get core ID|DEV_TARGET_", _NO_CHIP),
    )

    def _start(self) -> list[str]:
        chosen = [f"sn={self.probe}"] if self.probe else []
        return [self.program, "-c", "port=SWD", "mode=UR", *chosen]

    def identify(self, board: Board) -> list[str]:
        return self._start()

    def check(self, board: Board, said: str) -> None:
        _check_id(self, board, _hexadecimal(r"^\s*Device ID\s*:\s*(0x[0-9a-fA-F]+)", said), said)

    def write(self, firmware: Firmware) -> list[str]:
        return [*self._start(), *self._loader(), "-w", str(firmware.hex), "-v", "-rst"]

    def alternatives(self) -> tuple[Runner, ...]:
        if not self.writes_beside:
            return (self,)
        loaders = self.options[BESIDE].split()
        return tuple(replace(self, options={**self.options, BESIDE: one}) for one in loaders)

    def peek(self, address: int, words: int) -> list[str]:
        return [*self._attach(), "-r32", f"0x{address:08X}", f"0x{4 * words:X}"]

    def _attach(self) -> list[str]:
        chosen = [f"sn={self.probe}"] if self.probe else []
        return [self.program, "-c", "port=SWD", "mode=HOTPLUG", *chosen]

    def peeked(self, said: str) -> list[int]:
        return _dumped(said, r"^\s*0x[0-9a-fA-F]{8}\s*:")

    def _loader(self) -> list[str]:
        if not self.writes_beside:
            return []
        program = shutil.which(self.program)
        folder = Path(program).resolve().parent if program else Path()
        return ["-el", str(folder / _LOADERS / self.options[BESIDE].split()[0])]


class Stm32CubeProgrammerRam(Stm32CubeProgrammer):
    """STM32CubeProgrammer for a chip that has no flash and whose boot ROM waits for a debug probe:
    it loads the firmware into RAM and starts it (UM2237, `--start`). A reset would lose it, so the
    running chip is connected to, by the access port of its core, as Zephyr's file of the board
    does.
    """

    name = "stm32cubeprogrammer-ram"

    def _start(self) -> list[str]:
        return self._attach()

    def _attach(self) -> list[str]:
        chosen = [f"sn={self.probe}"] if self.probe else []
        return [self.program, "-c", "port=SWD", "mode=HOTPLUG", "ap=1", *chosen]

    def write(self, firmware: Firmware) -> list[str]:
        begin = f"0x{firmware.board.memories[0].origin:08x}"
        return [*self._start(), *self._loader(), "-w", str(firmware.hex), "-v", "--start", begin]


class Dfu(Runner):
    """The ROM's USB boot loader: BOOT0 high at reset. `device`: vendor:product.

    It reports only the size of the chip's flash, and does not verify, so Thimble reads the flash
    back and compares. The board starts its firmware and leaves while dfu-util still waits for a
    last status.
    """

    name = "dfu"
    needs = ("device",)
    program = "dfu-util"
    install = "apt-get install -y dfu-util"
    leaves = True
    complaints = (
        (r"LIBUSB_ERROR_ACCESS", _NO_ACCESS),
        (r"More than one DFU capable USB device", _SEVERAL),
        (r"No DFU capable USB device|Lost device after RESET", _NO_LOADER),
    )

    def _start(self) -> list[str]:
        chosen = ["-S", self.probe] if self.probe else []
        return [self.program, "-d", self.options["device"], *chosen]

    def identify(self, board: Board) -> list[str]:
        return [*self._start(), "-l"]

    def check(self, board: Board, said: str) -> None:
        flash = board.memories[0]
        named = re.search(rf"@Internal Flash\s*/0x{flash.origin:08x}/([^\"]+)", said, re.IGNORECASE)
        if named is None:
            raise UnreadError(self.complaint(said) or _NO_LOADER, said, hopeless=True)
        sectors = re.findall(r"(\d+)\*(\d+)([KM ])", named[1])
        flash_bytes = sum(
            int(n) * int(s) * {"K": 1024, "M": 1 << 20, " ": 1}[u] for n, s, u in sectors
        )
        on_chip = (bank.memory for bank in board.chip.banks)
        wanted = sum(m.size_bytes for m in on_chip if m.kind is flash.kind)
        if flash_bytes != wanted:
            raise IdentityError(
                f"this is no {board.name}: the boot loader has {flash_bytes:,} bytes of flash, not "
                f"{wanted:,}; nothing was written"
            )

    def write(self, firmware: Firmware) -> list[str]:
        place = ["-a", "0", "-s", f"0x{firmware.board.memories[0].origin:08x}"]
        return [*self._start(), *place, "-D", str(firmware.bin)]

    def verify(self, firmware: Firmware, scratch: Path) -> list[str]:
        size = firmware.bin.stat().st_size
        place = f"0x{firmware.board.memories[0].origin:08x}:{size}:leave"
        return [*self._start(), "-a", "0", "-s", place, "-U", str(self._back(scratch))]

    def matches(self, firmware: Firmware, said: str, scratch: Path) -> bool:
        back = self._back(scratch)
        return back.exists() and back.read_bytes() == firmware.bin.read_bytes()

    def _back(self, scratch: Path) -> Path:
        return scratch / "read-back.bin"


class Drive(Runner):
    """The drive of the board's ST-LINK: `firmware.bin` is copied to it (`drive.py`). `part`: what
    the drive's label has of the board's name, as H743ZI of NODE_H743ZI. Nothing else tells the
    board, and nothing is read back: the ST-LINK says only when it has failed.
    """

    name = "drive"
    needs = ("part",)
    program = "the drive of the ST-LINK"
    install = "mount the drive of the ST-LINK, whose label has {part} in it"
    verified = "the ST-LINK programmed it"

    def available(self) -> bool:
        return any(self.options["part"] in label for label in drives())

    def _module(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "toolchain.device.drive", *words]

    def _label(self) -> str:
        """The label of the only drive of such a board, or its part where there is none."""
        labels = [label for label in drives() if self.options["part"] in label]
        if len(labels) > 1:
            raise InputError(f"several such boards are plugged in: unplug all but one of {labels}")
        return labels[0] if labels else self.options["part"]

    def identify(self, board: Board) -> list[str]:
        return self._module("find")

    def check(self, board: Board, said: str) -> None:
        labels = re.findall(r"^drive (\S+) at", said, re.MULTILINE)
        if any(self.options["part"] in label for label in labels):
            return
        if labels:
            raise IdentityError(
                f"this is no {board.name}: the drive's label is {', '.join(labels)}; nothing was "
                "written"
            )
        raise UnreadError("no drive of an ST-LINK is mounted", said, hopeless=True)

    def write(self, firmware: Firmware) -> list[str]:
        return self._module("copy", str(firmware.bin), self._label())


def tail_of(said: str) -> str:
    """The last lines of what a tool said."""
    return "\n".join(f"  {line}" for line in said.splitlines()[-8:])


CLASSES = {
    c.name: c
    for c in (OpenOcd, PyOcd, StLink, Stm32CubeProgrammer, Stm32CubeProgrammerRam, Dfu, Drive)
}
"""By name."""
