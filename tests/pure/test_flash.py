"""Flashing: the exact command lines, the order identify - write - verify, and the real tools'
parsers where those run without hardware."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from toolchain.boards import board, boards
from toolchain.device.firmware import Firmware, FirmwareModel, Sizes
from toolchain.device.flash import IdentityError, OpenOcd, choose, flash, runners
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
    openocd += chosen("-c", "adapter serial 066DFF")
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
    assert [runner.name for runner in runners(firmware.board)] == list(NAMES)
    for name, lines in expected.items():
        runner = choose(firmware.board, name, probe=probe, installed=False)
        assert list(runner.commands(firmware, tmp_path)) == lines, name


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
    with pytest.raises(IdentityError, match=r"no device|boot loader"):
        runner.check(target, "Error: no device found")


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

    def say(self, runner: str, identity: str, verified: str, code: int = 0) -> None:
        (self.folder / "identity").write_text(identity)
        (self.folder / "verified").write_text(verified)
        script = (
            "#!/bin/sh\n"
            f'echo "$(basename $0) $@" >> {self.log}\n'
            f'case "$*" in *" -l"|*" shutdown"|*read32*|--probe|"-c port=SWD mode=UR")'
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
    flash(firmware, name, report=shown.append)
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
    assert target.chip is not None and 0 < target.chip.device_id < 0x1000
    assert [r.name for r in runners(target)]
    assert all(len(i) == 9 and i == i.lower() for i in target.usb_ids)


needs_openocd = pytest.mark.skipif(shutil.which("openocd") is None, reason="needs openocd")


@needs_openocd
@pytest.mark.parametrize("name", REAL)
def test_openocd_reads_the_configuration(name: str, tmp_path: Path) -> None:
    runner = choose(board(name), "openocd", probe="066DFF", installed=False)
    line = runner.identify(board(name))
    done = subprocess.run(
        [*line[: line.index("init") - 1], "-c", "targets", "-c", "shutdown"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Error" not in done.stderr and ".cpu" in done.stderr, done.stderr


@needs_openocd
def test_openocd_runs_the_line_that_reads_the_identity() -> None:
    """Its Tcl, with a chip's register in place of the command that needs a chip."""
    target = board("nucleo-f446re")
    runner = OpenOcd({"config": ""})
    line = runner.identify(target)
    at = line.index("init")
    stub = "proc read_memory {at width count} { return [list 0x10006421] }"
    done = subprocess.run(
        [*line[: at - 1], "-c", stub, *line[at + 1 :]],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert "chip 0x10006421" in done.stderr, done.stderr
    runner.check(target, done.stderr)
    with pytest.raises(IdentityError):
        runner.check(board("nucleo-f767zi"), done.stderr)


@pytest.mark.parametrize(
    ("name", "program", "refusal"),
    [("pyocd", "pyocd", "usage:"), ("stlink", "st-flash", "invalid command line")],
)
def test_tools_accept_their_arguments(
    name: str, program: str, refusal: str, tmp_path: Path
) -> None:
    """Without a probe each ends in saying so, not in refusing its command line."""
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    firmware = firmware_for("nucleo-f446re", tmp_path)
    for command in choose(firmware.board, name, installed=False).commands(firmware, tmp_path):
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=30,
        )
        assert refusal not in done.stdout + done.stderr, (command, done.stderr)


def test_pyocd_knows_a_part(tmp_path: Path) -> None:
    """Parts of other boards come with packs, which are fetched when they are installed."""
    if shutil.which("pyocd") is None:
        pytest.skip("needs pyocd")
    done = subprocess.run(
        ["pyocd", "list", "--targets"], capture_output=True, text=True, check=False
    )
    assert "stm32f767zi" in done.stdout
