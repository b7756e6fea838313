"""Energy of an inference: recordings of power, the runs that show in them, and ST's LPM01A."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from toolchain.boards import board
from toolchain.cli import run
from toolchain.contact.power.energy import GAP_SECONDS, Burst, energies
from toolchain.contact.power.lpm01a import Lpm01a
from toolchain.contact.power.recorder import ExportedFile, recorder_of
from toolchain.contact.power.recording import Recording, read_recording
from toolchain.contact.run import contact
from toolchain.contact.steps.networks import burst
from toolchain.contact.visit import Desk
from toolchain.errors import InputError, LinkError

BURSTS = (
    Burst("ad", 1000.0, 1002.2, 1000, 0.002),
    Burst("kws", 1009.0, 1011.1, 200, 0.01),
    Burst("vww", 1020.0, 1022.0, 10, 0.2),
)
SHIFT, IDLE_WATTS = -987.6543, 0.012
RUN_WATTS = {"ad": 0.090, "kws": 0.120, "vww": 0.105}


def recorded(run_watts: dict[str, float], noise: float = 0.002, hz: int = 1000) -> Recording:
    """40 s with the bursts, and with flashing, which draws as much, between them."""
    rng = np.random.default_rng(3)
    seconds = np.arange(40 * hz) / hz
    watts = np.full(len(seconds), IDLE_WATTS)
    for one in BURSTS:
        inside = (seconds >= one.began + SHIFT) & (seconds < one.ended + SHIFT)
        busy = one.runs * one.run_seconds / (one.ended - one.began)
        watts[inside] += (run_watts[one.network] - IDLE_WATTS) * busy
        before = one.began + SHIFT - 4.0
        watts[(seconds >= before) & (seconds < before + 2.5)] = 0.110
    return Recording(seconds, watts + rng.normal(0, noise, len(watts)))


def test_runs_are_found_in_a_recording_and_integrated() -> None:
    found = energies(recorded(RUN_WATTS), BURSTS)
    assert [one.network for one in found] == ["ad", "kws", "vww"]
    for one, made in zip(found, BURSTS, strict=True):
        wanted = RUN_WATTS[one.network]
        assert one.microjoules == pytest.approx(1e6 * wanted * made.run_seconds, rel=0.01)
        assert one.run_watts == pytest.approx(wanted, rel=0.01)
        assert one.idle_watts == pytest.approx(IDLE_WATTS, rel=0.05)


def test_a_recording_without_the_runs_is_told() -> None:
    flat = Recording(np.arange(40000) / 1000, np.random.default_rng(1).normal(0.05, 0.01, 40000))
    with pytest.raises(InputError, match="do not stand out in the recording of power"):
        energies(flat, BURSTS)
    short = Recording(flat.seconds[:5000], flat.watts[:5000])
    with pytest.raises(InputError, match=r"has 5.0 s, and the runs with their gaps took 24.0 s"):
        energies(short, BURSTS)


@pytest.mark.parametrize(
    ("text", "watts"),
    [
        ("Timestamp(ms),Current(uA),D0-D7\n0,1000,0\n500,3000,0\n", [0.002, 0.006]),
        ("#time (s),current (A),voltage (V)\n0,0.5,3\n0.5,0.25,2\n", [1.5, 0.5]),
        ("Time [s];Main current [mA];Main power [mW]\n0;1;2,5\n0,5;1;4\n", [0.0025, 0.004]),
        ('"time_us","power_w"\n0,7\n500000,8\n', [7.0, 8.0]),
    ],
    ids=["PPK2", "Joulescope", "semicolons", "underscores"],
)
def test_columns_are_recognised(tmp_path: Path, text: str, watts: Sequence[float]) -> None:
    file = tmp_path / "power.csv"
    file.write_text(text)
    found = read_recording(file, 2.0)
    assert found.watts == pytest.approx(watts) and found.seconds == pytest.approx([0.0, 0.5])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0,1\n1,2\n", r"its first line is '0,1'; recognised are a first line with a column"),
        ("time (s),voltage (V)\n0,1\n", "recognised are"),
        ("time (s),current (A)\n0,1\n1,x\n", "could not convert string 'x'"),
        ("time (s),current (A)\n1,1\n0,1\n", "time goes back"),
        ("time (s),current (A)\n1,1\n", "fewer than two samples"),
    ],
)
def test_other_files_are_told(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "power.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=said):
        read_recording(file, 3.3)


def test_an_exported_file_is_waited_for(tmp_path: Path) -> None:
    """An older one of that name is not read, and neither is one that still grows."""
    file = tmp_path / "power.csv"
    file.write_text("time (s),current (A)\n0,1\n1,1\n")
    os.utime(file, (100, 100))
    now = [1000.0]
    rows = [2, 3]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if now[0] > 1002 and rows:
            count = rows.pop(0)
            text = "".join(f"{i},{count}\n" for i in range(count))
            file.write_text(f"time (s),current (A)\n{text}")

    recorder = ExportedFile(file, 1.0, lambda: now[0], sleep)
    recorder.begin()
    recorder.start()
    assert recorder.finish().watts.tolist() == [3.0, 3.0, 3.0]
    os.utime(file, (100, 100))
    with pytest.raises(InputError, match=r"was not written within 300 s after the last run"):
        recorder.finish()
    recorder.close()


class Shield:
    """A stand-in for an LPM01A on a pseudo-terminal."""

    def __init__(self, joules: Sequence[str], refuses: str = "") -> None:
        import pty
        import tty

        self._leader, follower = pty.openpty()
        tty.setraw(follower)
        self.port, self._follower = os.ttyname(follower), follower
        self._joules, self._refuses = joules, refuses
        self.commands: list[str] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        waiting = b""
        while True:
            try:
                waiting += os.read(self._leader, 4096)
            except OSError:
                return
            *lines, waiting = waiting.split(b"\r\n")
            for line in lines:
                self._answer(line.decode())

    def _answer(self, command: str) -> None:
        self.commands.append(command)
        if command == "hrc":
            return
        if command == self._refuses:
            self._say("\r\nPowerShield > error: out of range\r\n\r\n")
        elif command == "stop":
            self._say("end\r\n\r\nPowerShield > Acquisition completed\r\n")
        else:
            self._say(f"\r\nPowerShield > ack {command}\r\n\r\n")
        if command == "start":
            self._say("TimeStamp: 000s 000ms, buff 00%\r\n\0")
            self._say("".join(f"{one}\r\n" for one in self._joules))

    def _say(self, text: str) -> None:
        os.write(self._leader, text.encode())

    def end(self) -> None:
        """The thread reads an error once nobody has the other side open."""
        os.close(self._follower)
        self._thread.join(10)
        os.close(self._leader)


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals are of Unix")
def test_an_lpm01a_supplies_the_board_and_sends_its_energy() -> None:
    shield = Shield(["6409-07", "1200-08", "0000+00"])
    recorder = recorder_of(f"lpm01a:{shield.port}", 1.8)
    assert isinstance(recorder, Lpm01a)
    try:
        recorder.begin()
        assert {"htc", "volt 1800m", "pwr on nostatus", "output energy"} <= set(shield.commands)
        recorder.start()
        found = recorder.finish()
    finally:
        recorder.close()
        shield.end()
    assert found.watts == pytest.approx([0.6409, 0.012, 0.0])
    assert found.seconds == pytest.approx([0.0, 0.001, 0.002])


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals are of Unix")
def test_a_refusal_of_an_lpm01a_is_told() -> None:
    shield = Shield([], refuses="volt 3300m")
    recorder = Lpm01a(shield.port, 3.3)
    with pytest.raises(LinkError, match=r"refused 'volt 3300m': error: out of range"):
        recorder.begin()
    recorder.close()
    shield.end()
    with pytest.raises(InputError, match=r"supplies 1.8 to 3.3 V, not 5"):
        recorder_of("lpm01a:/dev/null", 5.0)


def test_runs_in_a_row_have_gaps_around_them() -> None:
    now, runs = [50.0], [0]

    def slept(seconds: float) -> None:
        now[0] += seconds

    def repeat() -> None:
        runs[0] += 1
        now[0] += 0.021

    desk = Desk(board("nucleo-f446re"), clock=lambda: now[0], sleep=slept)
    session = SimpleNamespace(hello=SimpleNamespace(clock_hz=90_000_000), repeat=repeat)
    made = burst(SimpleNamespace(desk=desk, board=desk.board), session, "kws", 1_800_000)  # type: ignore[arg-type]
    assert (made.runs, made.run_seconds) == (100, 0.02) and runs == [100]
    assert made.began == 50.0 + GAP_SECONDS and made.ended == pytest.approx(made.began + 2.1)
    assert now[0] == pytest.approx(made.ended + GAP_SECONDS)


def test_an_emulated_board_draws_no_power(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = Desk(board("netduinoplus2"), recorder=recorder_of("x.csv", 3.3))
    with pytest.raises(InputError, match="an emulated board draws no power"):
        contact(desk)
    assert run(["contact", "--sticks", "--power", "x.csv"]) != 0
    assert "--sticks visits Edge TPUs" in capsys.readouterr().err
