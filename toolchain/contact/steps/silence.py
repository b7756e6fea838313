"""A board that does not answer: what the probe reads of it, what was tried, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolchain.contact.document import Outcome
from toolchain.contact.visit import Told, Visit
from toolchain.device.firmware import Firmware
from toolchain.device.flash import choose, core_registers, words_at
from toolchain.device.link import NoAnswerError, SilentError
from toolchain.device.runners import Runner
from toolchain.device.start_record import WORDS, complaint, record_address
from toolchain.errors import LinkError, ThimbleError
from toolchain.packages import lazy

if TYPE_CHECKING:
    from elftools.elf import elffile, sections
else:
    elffile, sections = lazy("elftools.elf.elffile"), lazy("elftools.elf.sections")

_VECTORS = 2
_GARBAGE = (
    "bytes come that are no frames. The UART runs at another speed than this computer: the core's "
    "clock is not the one of the board's file (clock_hz, [clock]), the line is another board's, or "
    "its ground is loose"
)
_NOTHING = (
    "nothing comes at all. Check the port (--port) and the pins of [uart] in the board's file; a "
    "solder bridge or a jumper may keep the ST-LINK's port from them"
)


def asked(visit: Visit, error: LinkError) -> tuple[str, ...]:
    """As `told`, in sentences alone; () where `error` is another than silence."""
    return told(visit, error).sentences if isinstance(error, NoAnswerError) else ()


def told(visit: Visit, error: NoAnswerError) -> Told:
    """The answers of a probe about the board of `visit`, after `error`."""
    firmware = visit.firmware
    assert firmware is not None
    line = _NOTHING if isinstance(error, SilentError) else _GARBAGE
    if visit.board.emulator is not None:
        return Told(Outcome.FINDING, (line, "QEMU has no probe to ask"), {"tried": ["HELLO"]})
    tried = ["HELLO, again and again"]
    try:
        runner = choose(visit.board, visit.desk.runner, probe=visit.desk.probe)
        findings, values = _probed(runner, firmware, tried)
    except ThimbleError as why:
        return Told(Outcome.FINDING, (line, f"the probe was not asked: {why}"), {"tried": tried})
    remedy = () if findings else (line,)
    return Told(Outcome.FINDING, (*findings, *remedy), {"tried": tried, **values})


def _probed(
    runner: Runner, firmware: Firmware, tried: list[str]
) -> tuple[list[str], dict[str, Any]]:
    """Findings, and words behind them. `tried` gets what is asked."""
    board, findings = firmware.board, []
    values: dict[str, Any] = {"probe": runner.name}
    start = board.memories[0].origin
    tried.append(f"vector table at 0x{start:08x}")
    vectors = words_at(runner, board, start, _VECTORS)
    values["vectors"] = [f"0x{word:08x}" for word in vectors]
    if vectors and vectors != (wanted := _vectors(firmware, start)):
        findings.append(
            f"the flash at 0x{start:08x} holds another vector table ({_hexadecimal(vectors)}, not "
            f"{_hexadecimal(wanted)}): flash again; if that does not help, the chip starts from "
            "another bank (option bytes, BOOT0)"
        )
    address = record_address(firmware.elf)
    if address is not None:
        tried.append(f"record of faults at 0x{address:08x}")
        record = words_at(runner, board, address, WORDS)
        values["record"] = [f"0x{word:08x}" for word in record]
        if why := complaint(record, board):
            findings.append(why)
    tried.append("registers of the halted core")
    core = core_registers(runner, board)
    values["core"] = {name: f"0x{word:08x}" for name, word in core.items()}
    if "pc" in core:
        where = _function(firmware, core["pc"])
        caller = _function(firmware, core["lr"]) if "lr" in core else ""
        called = f", called from {caller}" if caller else ""
        findings.append(
            f"the core is in {where}{called}"
            if where
            else f"the core runs outside of the firmware, at 0x{core['pc']:08x}: a boot loader of "
            "the chip, if that lies in system memory (BOOT0, option bytes)"
        )
    return findings, values


def _hexadecimal(words: list[int]) -> str:
    return " ".join(f"0x{word:08x}" for word in words)


def _vectors(firmware: Firmware, start: int) -> list[int]:
    """The first words of the firmware's image at `start`."""
    with firmware.elf.open("rb") as file:
        for part in elffile.ELFFile(file).iter_segments("PT_LOAD"):
            if part["p_paddr"] == start and part["p_filesz"]:
                data = part.data()
                return [int.from_bytes(data[4 * i : 4 * i + 4], "little") for i in range(_VECTORS)]
    return []


def _function(firmware: Firmware, address: int) -> str:
    """The function of the firmware that an address lies in; '' for none."""
    at = address & ~1
    with firmware.elf.open("rb") as file:
        symbols = elffile.ELFFile(file).get_section_by_name(".symtab")
        assert isinstance(symbols, sections.SymbolTableSection)
        for symbol in symbols.iter_symbols():
            begin = symbol["st_value"] & ~1
            if symbol["st_info"]["type"] == "STT_FUNC" and begin <= at < begin + symbol["st_size"]:
                return str(symbol.name)
    return ""


TITLE = "what the probe says of a silent board"
