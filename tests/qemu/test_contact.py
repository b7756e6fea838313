"""`thimble contact`: on emulated boards, and on stand-ins of boards with a fault each."""

from __future__ import annotations

import json
import re
import shutil
import time
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.contact_board import ContactBoard, Faults
from toolchain.boards import Board, Memory, MemoryKind, board, boards
from toolchain.cli import run
from toolchain.contact.archive import DOCUMENT, PAGE, read_contact
from toolchain.contact.commands import Command, marched, summed, switched
from toolchain.contact.document import Outcome, Result
from toolchain.contact.firmware import contact_firmware, free_ranges, images
from toolchain.contact.power.energy import GAP_SECONDS
from toolchain.contact.power.recording import Recording
from toolchain.contact.run import contact
from toolchain.contact.steps import networks, silence
from toolchain.contact.steps.operators import kinds, tried_kinds
from toolchain.contact.visit import Desk, Visit
from toolchain.device.firmware import Firmware
from toolchain.device.link import BoardFaultError
from toolchain.device.session import Session, open_board
from toolchain.errors import LinkError

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
EMULATED = "netduinoplus2"
BEYOND = 0x2004_0000
"""An address where this machine has nothing."""
CCR, DIVISION_TRAPS = 0xE000_ED14, 1 << 4
"""A register that QEMU has and a bit of it."""
ASKED = ("start", "chip", "clock", "memory", "access")
EVERY = (*ASKED, "pairs", "switches")
HANGS = LinkError(
    "nucleo-f446re holds the firmware, but the start-up waited in vain for RCC_CR_PLLRDY (held "
    "0x01000500, and bits 0x2000000 were to be 0x2000000): the PLL does not run: compare the chip "
    "with the board's file"
)


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    return contact_firmware(board(EMULATED), tmp_path_factory.mktemp("c"), external=False)


def test_an_emulated_board_gives_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "contact.zip"
    only = [word for name in EVERY for word in ("--only", name)]
    assert run(["contact", "-b", EMULATED, "-o", str(file), *only, "--json", "-"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["file"] == str(file)
    with zipfile.ZipFile(file) as archive:
        assert archive.namelist() == [DOCUMENT, PAGE]
        document, page = (archive.read(name).decode() for name in archive.namelist())
    assert json.loads(document) == {
        k: v for k, v in said.items() if k not in ("file", "json_version")
    }
    assert "<td>a call to a new line</td>" in page and "<script" not in page
    assert "marched over" in page and str(tmp_path) not in page
    found = read_contact(file)
    by_step = {result.step: result for result in found.results}
    assert tuple(by_step) == EVERY and found.emulated
    assert {pair.count for pair in found.pairs} == {2.0} and len(found.pairs) == 11
    assert {pair.name: pair.predicted for pair in found.pairs}["float_macs"] == 6.0
    assert by_step["chip"].outcome is Outcome.SKIPPED
    assert by_step["switches"].sentences == (
        "QEMU models neither the prefetch of a flash nor a cache",
    )
    assert by_step["clock"].values["counted_hz"] > 0
    assert [one.bank for one in found.accesses] == ["FLASH", "SRAM", "FLASH"]
    flash, ram, _ = (one.lines for one in found.accesses)
    assert flash is not None and flash[:2] == (1.0, 0.25) and 0.98 < flash[2] <= 1.0
    assert ram == (1.0, 1.0, 1.0)  # no cache, and a word is all that an access delivers
    for one in found.accesses:
        assert one.stall == 0 < one.first  # QEMU counts instructions
    (ram,) = by_step["memory"].values["ram"]
    assert ram["bytes"] > 0.9 * board(EMULATED).ram_bytes


def test_marches_and_sums_keep_away_from_the_firmware(firmware: Firmware) -> None:
    """The firmware answers on, from what it keeps elsewhere. Where there is no RAM it faults, says
    so and starts again."""
    (part,) = free_ranges(firmware, external=False)
    (image,) = images(firmware)
    with open_board(firmware) as session:
        before = session.memory_use().stack_bytes
        assert marched(session, part.start, part.size_bytes, 60.0) is None
        assert session.memory_use().stack_bytes >= before
        held, changed = switched(session, CCR, DIVISION_TRAPS, 60.0, on=True)
        assert (held ^ changed) == DIVISION_TRAPS & ~held
        assert switched(session, CCR, DIVISION_TRAPS, 60.0, on=False)[1] == held & ~DIVISION_TRAPS
        (ram,) = [m for m in firmware.board.memories if m.kind is MemoryKind.RAM]
        with pytest.raises(BoardFaultError) as raised:
            marched(session, BEYOND, 4096, 60.0)
        assert raised.value.fault.register("bfar") == BEYOND
        session.greet()
        assert summed(session, image.start, image.size_bytes, 60.0) == image.crc
    assert part.start + part.size_bytes == ram.end
    assert image.start == firmware.board.memories[0].origin


SILICON = "nucleo-f446re"


def visited(
    faults: Faults,
    firmware: Firmware,
    name: str = SILICON,
    seconds: float = 600.0,
    only: tuple[str, ...] = ASKED,
    **desk: object,
) -> tuple[ContactBoard, Mapping[str, Result]]:
    """What a visit finds on a stand-in of a real board, by step."""
    stand_in = ContactBoard(faults)

    def maker(target: Board, folder: Path, *, external: bool) -> Firmware:
        held = replace(firmware, board=target, folder=folder)
        folder.mkdir()
        shutil.copy(firmware.elf, held.elf)
        return held

    named = {"flasher": stand_in.flashed, **desk}
    at = Desk(board(name), opener=stand_in.opened, maker=maker, clock=stand_in.clock, **named)  # type: ignore[arg-type]
    found = contact(at, only=only, seconds=seconds)
    return stand_in, {result.step: result for result in found.results}


def test_a_board_without_a_fault_has_no_finding(firmware: Firmware) -> None:
    stand_in, results = visited(Faults(), firmware)
    assert tuple(results) == ASKED
    assert {r.outcome for r in results.values()} == {Outcome.OK}, results
    assert results["chip"].values["registers"].keys() >= {"RCC_CR", "RCC_PLLCFGR", "FLASH_ACR"}
    assert results["chip"].values["registers"].keys() >= {"RCC_CSR", "FLASH_OPTCR"}
    assert re.fullmatch("[0-9a-f]{32}", results["chip"].values["unique_id_hash"])
    assert results["clock"].values["counted_hz"] == pytest.approx(180e6, rel=1e-4)
    assert {*stand_in.commands} == {*Command} - {Command.PAIR, Command.SWITCH}
    assert "FLASH: a read from a new line waits 5.0 cycles" in results["access"].sentences


@pytest.mark.parametrize(
    ("faults", "step", "sentence"),
    [
        (
            Faults(identity=0x1000_0451),
            "start",
            "this is no nucleo-f446re: its chip says device 0x451",
        ),
        (
            Faults(told_hz=100_000_000, clock_hz=100_000_000),
            "clock",
            "the core runs at 100 MHz, not at the 180 MHz of nucleo-f446re's file",
        ),
        (
            Faults(clock_hz=90_000_000),
            "clock",
            "the registers say 180 MHz (-50.00%): another oscillator",
        ),
        (
            Faults(stuck={0x2000_8000: 1 << 5}),
            "memory",
            "is damaged at 0x20008000: bit 5 (0x00000020 was read where 0x00000000 was written)",
        ),
        (
            Faults(ram_end=0x2001_0000),
            "memory",
            "ends before 0x20020000: bus error at the address in bfar",
        ),
        (Faults(flash="wrong"), "memory", "are not those that were built (CRC 0x"),
        (Faults(flash="unstable"), "memory", "read differently twice"),
        (
            Faults(stall=9),
            "access",
            "FLASH: a call to a new line waits 9.0 cycles, and the file of the chip says 5",
        ),
        (
            Faults(garbage=b"\x55\xaa\xff\x07\0" * 3),
            "silence",
            "bytes come that are no frames. The UART runs at another speed",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_fault_ends_in_its_sentence(
    faults: Faults, step: str, sentence: str, firmware: Firmware, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # no probe
    _, results = visited(faults, firmware)
    assert {r.step for r in results.values() if r.outcome is Outcome.FINDING} >= {step}
    assert sentence in " ".join(results[step].sentences)
    assert tuple(name for name in results if name != "silence") == ASKED


def test_pairs_of_instructions_are_held_against_the_table_of_the_core(firmware: Firmware) -> None:
    _, results = visited(Faults(), firmware, only=("pairs",))
    assert results["pairs"].outcome is Outcome.OK
    _, results = visited(Faults(pairs=1.5), firmware, only=("pairs",))
    first, *_, last = results["pairs"].sentences
    assert first == "add_add: 3.00 cycles, and the core's timing table says 2.00"
    assert last == "11 pairs of instructions were timed"


def test_prefetch_and_caches_are_switched_off_and_on_again(firmware: Firmware) -> None:
    """Every combination; a read in sequence is dear without the cache of data (0x400)."""
    stand_in, results = visited(Faults(dear_switch={0x400: 9}), firmware, only=("switches",))
    settings = results["switches"].values["settings"]
    assert results["switches"].outcome is Outcome.OK and len(settings) == 8
    for one in settings:
        assert one["sequential"] == (5.0 if "FLASH_ACR_DCEN" in one["on"] else 14.0)
    assert (
        "a read in sequence takes 5.00 cycles, 5.00 without prefetch (FLASH_ACR_PRFTEN), 5.00 "
        "without the cache of instructions (FLASH_ACR_ICEN), 14.00 without the cache of data "
        "(FLASH_ACR_DCEN), 14.00 without any"
    ) in results["switches"].sentences
    assert stand_in.registers == {0x4002_3C00: 0x700}
    stand_in, results = visited(Faults(stuck_switch=0x200), firmware, only=("switches",))
    assert results["switches"].sentences == (
        "the cache of instructions (FLASH_ACR_ICEN) did not change",
    )
    assert stand_in.registers == {0x4002_3C00: 0x700}
    _, results = visited(Faults(), firmware, "nucleo-f103rb", only=("switches",))
    assert results["switches"].outcome is Outcome.SKIPPED


def test_a_board_that_is_another_gets_no_more_firmware(firmware: Firmware) -> None:
    """Nor are folders of the user in what is sent."""
    wrong = Faults(identity=0x1000_0451)
    _, results = visited(wrong, firmware, only=("start", "operators", "networks"))
    for name in ("operators", "networks"):
        assert results[name].sentences == ("the board did not answer with the contact firmware",)

    def elsewhere(firmware: Firmware, wanted: str | None, probe: str) -> None:
        raise LinkError(f"flash {firmware.folder}/x by {Path.home()}/tool")

    _, results = visited(Faults(), firmware, only=("start",), flasher=elsewhere)
    assert results["start"].sentences == ("flash contact/x by ~/tool",)


def test_damaged_memory_beside_the_chip_is_told_and_the_rest_goes_on(firmware: Firmware) -> None:
    _, results = visited(Faults(beside=-42), firmware, "f746g-disco")
    assert results["start"].outcome is Outcome.FINDING
    assert "(QSPI) does not hold the weights of this firmware" in results["start"].sentences[0]
    assert results["memory"].outcome is Outcome.OK
    assert results["memory"].sentences[-1] == "QSPI was not summed: it was not made readable"


def test_flash_beside_the_chip_reads_the_same_twice(firmware: Firmware) -> None:
    _, results = visited(Faults(), firmware, "f746g-disco", only=("memory",))
    (beside,) = results["memory"].values["beside"]
    assert beside == {"bank": "QSPI", "start": 0x9000_0000, "bytes": 1 << 20, "crcs": [1 << 20] * 2}
    assert "QSPI: the first 1,048,576 of its 16,777,216 bytes read the same twice" in " ".join(
        results["memory"].sentences
    )
    unstable = Faults(beside_bytes="unstable")
    _, results = visited(unstable, firmware, "f746g-disco", only=("memory",))
    assert results["memory"].outcome is Outcome.FINDING
    assert "bytes read differently twice (CRC 0x" in results["memory"].sentences[0]


def test_a_hang_in_the_pll_is_told_by_the_tool_that_flashed(firmware: Firmware) -> None:
    def hangs(firmware: Firmware, wanted: str | None, probe: str) -> None:
        raise HANGS

    _, results = visited(Faults(), firmware, flasher=hangs)
    assert "waited in vain for RCC_CR_PLLRDY" in results["start"].sentences[0]
    assert results["memory"].sentences == ("no contact firmware answers",)


def test_a_silent_board_is_asked_by_its_probe(
    firmware: Firmware, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of the visit; the probe finds the core in a function of the firmware."""
    with firmware.elf.open("rb") as file:
        symbols = silence.elffile.ELFFile(file).get_section_by_name(".symtab")
        at = {s.name: s["st_value"] for s in symbols.iter_symbols()}
    monkeypatch.setattr(silence, "words_at", lambda *_: [])
    core = {"pc": at["thimble_uart_get"], "lr": at["thimble_serve"] | 1}
    monkeypatch.setattr(silence, "core_registers", lambda *_: core)
    monkeypatch.setattr(silence, "choose", lambda *_, **__: type("Runner", (), {"name": "openocd"}))
    _, results = visited(Faults(silent_after=6), firmware)
    assert results["silence"].outcome is Outcome.FINDING
    (sentence,) = results["silence"].sentences
    assert sentence == "the core is in thimble_uart_get, called from thimble_serve"
    assert "record of faults" in " ".join(results["silence"].values["tried"])


OTHERS = [name for name, each in boards().items() if each.emulator and name != EMULATED]


@pytest.mark.long
@pytest.mark.parametrize("name", OTHERS)
def test_every_emulated_board_is_visited(name: str) -> None:
    found = contact(Desk(board(name)), only=ASKED)
    assert found.of(Outcome.FINDING) == ()
    assert len(found.accesses) > 2


def bench(folder: Path, **desk: object) -> Visit:
    """An emulated board that is at hand for a step by itself."""
    return Visit(Desk(board(EMULATED), **desk), folder, 600.0)  # type: ignore[arg-type]


def test_operators_are_compared_counted_and_predicted(tmp_path: Path) -> None:
    """Among them one that computes in float and one that keeps a state."""
    names = ("add", "svdf", "float_function")
    done = tried_kinds(bench(tmp_path), names, 300.0)
    assert done.outcome is Outcome.OK and done.values["equal"] == list(names)
    assert [sample.kind for sample in done.samples] == list(names)
    for sample in done.samples:
        assert 0 < sample.warm <= sample.cold and sample.predicted > 0
        assert sample.differing == 0 < sample.elements


class Drawn:
    """A recorder of a board that draws 1 W in runs and 0.1 W beside them, and the clock of it."""

    def __init__(self) -> None:
        self._skipped, self.slept = 0.0, list[float]()

    def now(self) -> float:
        return time.monotonic() + self._skipped

    def sleep(self, seconds: float) -> None:
        self.slept.append(self.now())
        self._skipped += seconds

    def begin(self) -> None: ...

    def start(self) -> None: ...

    def finish(self, report: object = None) -> Recording:
        before, after = self.slept
        seconds = np.arange(0.0, after - before + 2.0, 0.001)
        in_runs = (seconds > GAP_SECONDS) & (seconds < after - before)
        return Recording(seconds, np.where(in_runs, 1.0, 0.1))

    def close(self) -> None: ...


@pytest.mark.long
def test_energy_of_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "_MOST_RUNS", 20)
    drawn = Drawn()
    visit = bench(tmp_path, recorder=drawn, clock=drawn.now, sleep=drawn.sleep)
    done = networks.tried_networks(visit, ("ad",))
    (row,) = done.values["networks"]
    assert done.outcome is Outcome.OK and row["runs_in_a_row"] == 20
    assert row["idle_milliwatts"] == pytest.approx(100, rel=0.01)
    assert row["run_milliwatts"] > 200
    assert f"ad: {row['microjoules']:,.1f} uJ a run" in done.sentences[-1]


def wrong_bytes(source: Firmware, port: str | None = None, **named: object) -> Session:
    """`open_board`, of a board that changes the first byte of every output."""
    session = open_board(source, port, **named)  # type: ignore[arg-type]
    right = session.read_output

    def read(index: int, size: int) -> bytes:
        data = right(index, size)
        return bytes((data[0] ^ 0x40,)) + data[1:]

    session.read_output = read  # type: ignore[method-assign]
    return session


def test_a_board_that_computes_other_bytes_is_told(tmp_path: Path) -> None:
    done = tried_kinds(bench(tmp_path, opener=wrong_bytes), ("add",), 300.0)
    assert done.outcome is Outcome.FINDING and not done.values["equal"]
    (sample,) = done.samples
    assert sample.differing == 3  # one in each run
    assert done.sentences[0] == f"add: 3 of {sample.elements} elements are not the reference's"


def test_operators_that_a_board_does_not_hold_are_left_out(tmp_path: Path) -> None:
    """What does not fit together is tried one by one; a board that fails twice is left alone."""
    small = replace(board(EMULATED), memories=tuple(map(crowded, board(EMULATED).memories)))
    visit = Visit(Desk(small), tmp_path / "a", 600.0)
    done = tried_kinds(visit, ("add", "mul"), 300.0)
    assert done.values == {"equal": [], "too_big": ["add", "mul"], "left_out": []}
    lost = bench(tmp_path / "b", opener=gone)
    done = tried_kinds(lost, kinds()[:20], 300.0)
    assert done.outcome is Outcome.FINDING and len(done.values["left_out"]) == 4
    assert "left out, as the board failed: 4 kinds" in done.sentences


def crowded(memory: Memory) -> Memory:
    return replace(memory, size_bytes=2048) if memory.kind is MemoryKind.RAM else memory


def gone(source: Firmware, port: str | None = None, **named: object) -> Session:
    raise LinkError("the line to the board broke")


def test_the_time_of_a_visit_is_kept(firmware: Firmware) -> None:
    """A step begins while there is time; the others say why they were not."""
    stand_in, results = visited(Faults(clock_hz=1_800_000), firmware, seconds=30.0)
    assert "another oscillator" in results["clock"].sentences[0]
    assert results["memory"].sentences == ("the time of the visit was over",)
    assert Command.MARCH not in stand_in.commands
