"""Flashing: the exact command lines, the order identify - write - verify, the words in which tools
fail, and the real tools as far as they go without a probe."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from toolchain.boards import MemoryKind, board, boards
from toolchain.device.firmware import Firmware, FirmwareModel, Sizes
from toolchain.device.flash import IdentityError, UnreadError, choose, flash, runners
from toolchain.device.runners import OpenOcd, Runner, _pyocd_word
from toolchain.errors import InputError, LinkError, MissingToolError

REAL = [name for name, b in boards().items() if b.flash_runners]
NAMES = ("openocd", "pyocd", "stlink", "stm32cubeprogrammer", "dfu")


def firmware_for(name: str, folder: Path) -> Firmware:
    model = FirmwareModel("m", 16, (), (), ())
    made = Firmware(folder, board(name), (model,), Sizes(1, 1, 1, 1, 1, 1), "00" * 16)
    for path in (made.elf, made.hex, made.bin):
        path.write_bytes(b"firmware")
    return made


@pytest.mark.parametrize("probe", ["", "066DFF"])
def test_command_lines(tmp_path: Path, probe: str) -> None:
    firmware = firmware_for("nucleo-h743zi", tmp_path)
    elf, image, binary = (str(tmp_path / f"firmware.{end}") for end in ("elf", "hex", "bin"))
    back = str(tmp_path / "read-back.bin")

    def chosen(*words: str) -> list[str]:
        return list(words) if probe else []

    quiet = "gdb_port disabled; tcl_port disabled; telnet_port disabled"
    openocd = ["openocd", "-c", quiet, "-f", "board/st_nucleo_h743zi.cfg"]
    openocd += chosen("-c", "adapter serial {066DFF}")
    read = "echo [format {chip 0x%08x} [lindex [read_memory 0x5C001000 32 1] 0]]"
    pyocd = ["--no-wait", "--target", "stm32h743zitx", *chosen("--uid", "066DFF")]
    cube = ["STM32_Programmer_CLI", "-c", "port=SWD", "mode=UR", *chosen("sn=066DFF")]
    dfu = ["dfu-util", "-d", "0483:df11", *chosen("-S", "066DFF")]
    compare = f"compare 0x08000000 {binary}"
    stlink = ["st-flash", *chosen("--serial", "066DFF"), "--reset", "--format", "ihex", "write"]
    expected = {
        "openocd": [
            [*openocd, "-c", "init", "-c", read, "-c", "shutdown"],
            [*openocd, "-c", f"program {{{elf}}} verify reset exit"],
        ],
        "pyocd": [
            ["pyocd", "commander", *pyocd, "-c", "read32 0x5C001000"],
            ["pyocd", "load", *pyocd, "--no-reset", elf],
            ["pyocd", "commander", *pyocd, "-c", compare, "-c", "reset"],
        ],
        "stlink": [["st-info", "--probe"], [*stlink, image]],
        "stm32cubeprogrammer": [cube, [*cube, "-w", image, "-v", "-rst"]],
        "dfu": [
            [*dfu, "-l"],
            [*dfu, "-a", "0", "-s", "0x08000000", "-D", binary],
            [*dfu, "-a", "0", "-s", "0x08000000:8:leave", "-U", back],
        ],
    }
    assert [runner.name for runner in runners(firmware.board)] == [*NAMES, "drive"]
    for name, lines in expected.items():
        runner = choose(firmware.board, name, probe=probe, installed=False)
        assert list(runner.commands(firmware, tmp_path)) == lines, name


def test_a_chip_without_flash_is_loaded_and_started(tmp_path: Path) -> None:
    """Nothing resets it after: what RAM holds would be lost."""
    firmware = firmware_for("nucleo-n657x0-q", tmp_path)
    runner = choose(firmware.board, installed=False, probe="066DFF")
    begin = ["STM32_Programmer_CLI", "-c", "port=SWD", "mode=HOTPLUG", "ap=1", "sn=066DFF"]
    start = ["-w", str(firmware.hex), "-v", "--start", "0x34180400"]
    assert list(runner.commands(firmware, tmp_path)) == [begin, [*begin, *start]]


SAID = {
    "openocd": "Info : clock speed 1800 kHz\nchip 0x20036450\nshutdown command invoked",
    "pyocd": "5c001000:  20036450    | . dP|",
    "stlink": "Found 1 stlink programmers\n  serial:     066DFF\n  chipid:     0x0450\n",
    "stm32cubeprogrammer": "ST-LINK SN  : 066DFF\nDevice ID   : 0x450\nRevision ID : Rev V",
    "dfu": 'Found DFU: [0483:df11] name="@Internal Flash   /0x08000000/16*128Kg", serial="066DFF"',
}
OTHER = {
    name: text.replace("450", "451").replace("16*128Kg", "04*032Kg,01*128Kg,03*256Kg")
    for name, text in SAID.items()
}
VERIFIED = {
    "openocd": "** Verified OK **",
    "pyocd": "All 8 bytes match.",
    "stlink": "INFO common.c: Flash written and verified! jolly good!",
    "stm32cubeprogrammer": "Download verified successfully",
    "dfu": "Upload done.",
}


@pytest.mark.parametrize("name", NAMES)
def test_identities_are_read_and_compared(name: str) -> None:
    target = board("nucleo-h743zi")
    runner = choose(target, name, installed=False)
    runner.check(target, SAID[name])
    with pytest.raises(IdentityError, match=r"this is no nucleo-h743zi.*nothing was written"):
        runner.check(target, OTHER[name])
    with pytest.raises(UnreadError, match=r"could not be read|boot loader") as caught:
        runner.check(target, "Error: no device found")
    assert caught.value.hopeless == (name == "dfu")


FAILURES = {
    "openocd": {
        "no debug probe": "Error: open failed",
        "you may not": "Error: libusb_open() failed with LIBUSB_ERROR_ACCESS\nError: open failed",
        "does not reach": "Error: init mode failed (unable to connect to the target)",
        "install a newer one": "Error: Can't find target/stm32h7x_dual_bank.cfg",
    },
    "pyocd": {
        "no debug probe": "No connected debug probe matches unique ID '066DFF'",
        "you may not": "W Access denied while trying to get the STLink USB device configuration "
        "(VID=0483 PID=374b). This can probably be remedied with a udev rule. [usb]\n"
        "No connected debug probes",
        "name one with": "Enter the number of the debug probe or 'q' to quit> ",
        "renew it with": "C STLink 066DFF is using an unsupported, older firmware version. Please "
        "update to the latest STLink firmware. Current version is V2J21, must be at least version "
        "v2J24. [__main__]",
        "does not reach": "E Error while initing target: STLink error (9): Get IDCODE error",
        "pyocd pack install stm32h743zitx": "C Target type stm32h743zitx not recognized. Use",
    },
    "stlink": {
        "no debug probe": "Found 0 stlink programmers",
        "you may not": "ERROR usb.c: Could not open USB device 0x0483:0x374b, access error.\n"
        "Found 0 stlink programmers",
        "does not reach": "Found 1 stlink programmers\n  serial:     066DFF\n  chipid:     0x0000",
    },
    "stm32cubeprogrammer": {
        "no debug probe": "Error: No debug probe detected.",
        "another program": "Error: ST-LINK error (DEV_CONNECT_ERR)",
        "does not reach": "ST-LINK SN  : 066DFF\nError: No STM32 target found!",
    },
    "dfu": {
        "BOOT0": "dfu-util: No DFU capable USB device available",
        "you may not": "dfu-util: Cannot open DFU device 0483:df11 found on devnum 7 "
        "(LIBUSB_ERROR_ACCESS)",
    },
}


@pytest.mark.parametrize("name", NAMES)
def test_the_words_of_failing_tools_end_in_a_sentence(name: str) -> None:
    target = board("nucleo-h743zi")
    for sentence, said in FAILURES[name].items():
        with pytest.raises(UnreadError, match=sentence) as caught:
            choose(target, name, installed=False).check(target, said)
        assert said.splitlines()[-1].strip() in str(caught.value)
        assert caught.value.hopeless == (sentence != "does not reach")


def test_a_revision_that_says_it_is_another_chip_is_known() -> None:
    """An F407 of revision A says 0x411 (ST ES0182)."""
    target = board("f4-discovery")
    runner = choose(target, "openocd", installed=False)
    for identity in ("20006411", "10016413"):
        runner.check(target, f"chip 0x{identity}\n")
    with pytest.raises(IdentityError, match="device 0x421, not 0x413"):
        runner.check(target, "chip 0x10006421\n")


def test_one_of_several_probes_must_be_named() -> None:
    target = board("nucleo-h743zi")
    two = SAID["stlink"] + OTHER["stlink"].replace("066DFF", "0670AA")
    with pytest.raises(InputError, match="066DFF, 0670AA"):
        choose(target, "stlink", installed=False).check(target, two)
    choose(target, "stlink", probe="066DFF", installed=False).check(target, two)
    with pytest.raises(IdentityError, match="this is no"):
        choose(target, "stlink", probe="0670AA", installed=False).check(target, two)


class Tools:
    """Programs in place of the flashing tools: they log their arguments and say what is given."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.log.touch()
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def say(
        self, runner: str, identity: str, verified: str, code: int = 0, reset: str = ""
    ) -> None:
        """`reset`: what the chip says when it is asked under reset, where that is other."""
        (self.folder / "identity").write_text(identity)
        (self.folder / "reset").write_text(reset or identity)
        (self.folder / "verified").write_text(verified)
        script = (
            "#!/bin/sh\n"
            f'echo "$(basename $0) $@" >> {self.log}\n'
            f'case "$*" in *_srst*" shutdown"|*under-reset*read32*|--probe\\ --connect-under-reset)'
            f" cat {self.folder}/reset;;\n"
            f'*" -l"|*" shutdown"|*read32*|--probe|"-c port=SWD mode=UR")'
            f" cat {self.folder}/identity;;\n"
            f'*" -U "*) for last; do :; done; cat {self.folder}/verified > "$last"; exit {code};;\n'
            f"*) cat {self.folder}/verified; exit {code};; esac\n"
        )
        for program in (
            "openocd",
            "pyocd",
            "st-flash",
            "st-info",
            "STM32_Programmer_CLI",
            "dfu-util",
        ):
            (self.folder / program).write_text(script)
            (self.folder / program).chmod(0o755)

    def ran(self) -> list[str]:
        return self.log.read_text().splitlines()


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    folder = tmp_path / "tools"
    folder.mkdir()
    return Tools(folder, monkeypatch)


@pytest.mark.parametrize("name", NAMES)
def test_flashing_identifies_writes_and_verifies(name: str, tmp_path: Path, tools: Tools) -> None:
    firmware = firmware_for("nucleo-h743zi", tmp_path)
    good = "firmware" if name == "dfu" else VERIFIED[name]
    tools.say(name, SAID[name], good)
    shown: list[str] = []
    flash(firmware, name, show=shown.append)
    assert len(tools.ran()) == len(shown) == (3 if name in ("pyocd", "dfu") else 2)

    tools.say(name, OTHER[name], good)
    before = len(tools.ran())
    with pytest.raises(IdentityError):
        flash(firmware, name)
    assert len(tools.ran()) == before + 1

    tools.say(name, SAID[name], "something else")
    with pytest.raises(LinkError, match="does not hold the firmware"):
        flash(firmware, name)

    tools.say(name, SAID[name], "Error: flash is locked", code=1)
    with pytest.raises(LinkError, match="could not flash nucleo-h743zi"):
        flash(firmware, name)


def test_a_board_that_leaves_before_the_last_status_is_judged_by_its_bytes(
    tmp_path: Path, tools: Tools
) -> None:
    """dfu-util exits with 74 then, though it has read the whole file back."""
    firmware = firmware_for("nucleo-h743zi", tmp_path)
    tools.say("dfu", SAID["dfu"], "firmware")
    script = (tools.folder / "dfu-util").read_text()
    (tools.folder / "dfu-util").write_text(script.replace("exit 0;;\n*)", "exit 74;;\n*)"))
    flash(firmware, "dfu")
    assert tools.ran()[-1].endswith("read-back.bin")


@pytest.mark.parametrize("name", ["openocd", "pyocd", "stlink"])
def test_a_chip_that_does_not_answer_is_asked_under_reset(
    name: str, tmp_path: Path, tools: Tools
) -> None:
    firmware = firmware_for("nucleo-h743zi", tmp_path)
    tools.say(name, FAILURES[name]["does not reach"], VERIFIED[name], reset=SAID[name])
    flash(firmware, name)
    first, *others = tools.ran()
    word = {"openocd": "connect_assert_srst", "pyocd": "under-reset", "stlink": "under-reset"}[name]
    assert word not in first and others and all(word in line for line in others)

    tools.log.write_text("")
    tools.say(name, FAILURES[name]["does not reach"], VERIFIED[name], reset=OTHER[name])
    with pytest.raises(IdentityError, match="nothing was written"):
        flash(firmware, name)
    tools.log.write_text("")
    tools.say(name, FAILURES[name]["no debug probe"], VERIFIED[name], reset=SAID[name])
    with pytest.raises(UnreadError, match="no debug probe"):
        flash(firmware, name)
    assert len(tools.ran()) == 1


def test_a_missing_tool_is_told_with_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match="apt-get install -y openocd") as caught:
        flash(firmware_for("nucleo-f446re", tmp_path))
    assert "pyocd pack install stm32f446retx" in str(caught.value)


@pytest.mark.parametrize("name", REAL)
def test_every_real_board_says_what_it_is(name: str) -> None:
    target = board(name)
    identity = target.chip.identity
    assert identity is not None and 0 < identity.device_id < 0x1000
    assert [r.name for r in runners(target)]
    assert all(len(i) == 9 and i == i.lower() for i in target.usb_ids)


def real(program: str) -> str:
    """Its path. Nothing is installed for a test: the tool is tried where it is."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"needs {program}")
    return path


def run(command: list[str]) -> tuple[int, str]:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr


def runners_of(name: str) -> list[tuple[str, Runner]]:
    able = [b for b in REAL if name in board(b).flash_runners]
    return [(b, choose(board(b), name, installed=False)) for b in able]


PROBES = ["066DFF", "a [exit] $x; {b", 'quo"te\\']
SHOW_WORD = "proc adapter args { echo <[lindex $args 1]> }"


@pytest.mark.parametrize("name", [b for b in REAL if "openocd" in board(b).flash_runners])
def test_openocd_reads_the_configuration(name: str) -> None:
    """The files are found, the whole flash has banks, the probe's name stays one word."""
    real("openocd")
    target = board(name)
    for probe in PROBES:
        runner = choose(target, "openocd", probe=probe, installed=False)
        for way in (runner, replace(runner, under_reset=True)):
            line = way.identify(target)
            named = next(i for i, word in enumerate(line) if word.startswith("adapter serial"))
            line[named - 1 : named - 1] = ["-c", SHOW_WORD]
            before = line[: line.index("init") - 1]
            code, said = run([*before, "-c", "targets", "-c", "flash banks", "-c", "shutdown"])
            assert code == 0 and "Error" not in said and ".cpu" in said, said
            assert f"<{probe}>" in said, said
            assert way.under_reset == ("connect_assert_srst" in said)
    banks = re.findall(r"\((stm32\w+)\) at (0x[0-9a-f]+)", said)
    assert banks
    starts = {int(start, 16) for driver, start in banks if driver == "stm32h7x"}
    flash = [b.memory for b in target.chip.banks if b.memory.kind is MemoryKind.FLASH]
    if starts:  # a bank of this driver has 1 MB at most; others find out where theirs is
        assert starts == {at for m in flash for at in range(m.origin, m.end, 1 << 20)}


def test_openocd_runs_the_line_that_reads_the_identity() -> None:
    """Its Tcl, with a chip's register in place of the command that needs a chip."""
    real("openocd")
    target = board("nucleo-f446re")
    for way in (OpenOcd({"config": ""}), OpenOcd({"config": ""}, under_reset=True)):
        line = way.identify(target)
        at = line.index("init")
        stub = "proc read_memory {at width count} { return [list 0x10006421] }; proc reset args {}"
        _, said = run([*line[: at - 1], "-c", stub, *line[at + 1 :]])
        assert "chip 0x10006421" in said, said
        way.check(target, said)
        with pytest.raises(IdentityError):
            way.check(board("nucleo-f767zi"), said)


@pytest.mark.parametrize("name", ["openocd", "pyocd", "stlink", "dfu"])
def test_without_a_probe_the_real_tools_say_so_and_so_do_we(name: str, tmp_path: Path) -> None:
    """Every command line of every board is accepted, and fails for want of a probe alone.

    pyocd, which takes long to start, looks a target up only when it has a probe: one board will do.
    """
    for board_name, runner in runners_of(name)[: 1 if name == "pyocd" else None]:
        real(runner.program)
        firmware = firmware_for(board_name, tmp_path)
        ways = [runner, *([replace(runner, under_reset=True)] if runner.resets else [])]
        for way in ways:
            for command in way.commands(firmware, tmp_path):
                code, said = run(command)
                for refusal in ("usage:", "invalid command line", "Incorrect argument", "Usage:"):
                    assert refusal not in said, (command, said)
                sentence = way.complaint(said)
                listed = command[-1] == "-l"  # no device is no error of dfu-util then
                assert listed or re.search("no debug probe|no boot loader", sentence), said
                assert code != 0 or listed or command[0] == "st-info", command
    with pytest.raises(UnreadError, match=r"no debug probe|no boot loader"):
        flash(firmware, name)


def test_pyocd_knows_a_part() -> None:
    """Parts of other boards come with packs, which are fetched when they are installed."""
    real("pyocd")
    assert "stm32f767zi" in run(["pyocd", "list", "--targets"])[1]


SPLIT = """import json, sys
from pyocd.utility.cmdline import split_command_line
print(json.dumps(split_command_line(split_command_line(sys.argv[1]))))"""


def test_pyocd_takes_a_file_name_as_one_word() -> None:
    """By its own splitter, which its commander calls twice on each line."""
    interpreter = Path(real("pyocd")).read_text().splitlines()[0].removeprefix("#!")
    for path in ("/a/firmware.bin", '/a b/#1;x/it\'s ["q"] $(y)\\firmware.bin'):
        line = f"compare 0x08000000 {_pyocd_word(path)}"
        _, said = run([interpreter, "-c", SPLIT, line])
        assert json.loads(said) == ["compare", "0x08000000", path], said
