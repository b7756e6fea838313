"""What `labgrid-client show` prints of a place, recorded from labgrid 26.0.1."""

from __future__ import annotations

import pytest

from toolchain.device.places import port_of, reserved
from toolchain.errors import InputError, LinkError, MissingToolError

HEAD = """Place 'h743':
  matches:
    lab/bench/*
  acquired: vm/somebody
  acquired resources:
    lab/bench/NetworkSerialPort/uart
  created: 2026-11-21 07:27:37.004627
  changed: 2026-11-21 07:27:45.070167
"""
RAW = """Acquired resource 'uart' (lab/bench/NetworkSerialPort/uart):
  {'acquired': 'h743',
   'avail': True,
   'cls': 'NetworkSerialPort',
   'params': {'extra': {'proxy': 'localhost', 'proxy_required': False},
              'host': 'lab1',
              'port': 45678,
              'protocol': 'raw',
              'speed': 115200}}
"""
RFC2217 = RAW.replace("              'protocol': 'raw',\n", "")
POWER = """Acquired resource 'power' (lab/bench/NetworkPowerPort/power):
  {'acquired': 'h743', 'avail': True, 'cls': 'NetworkPowerPort', 'params': {'index': 3}}
"""
LOCAL = """Acquired resource 'uart' (lab/bench/RawSerialPort/uart):
  {'cls': 'RawSerialPort', 'params': {'port': '/dev/ttyACM3', 'speed': 115200}}
"""


@pytest.mark.parametrize(
    ("shown", "port"),
    [
        (HEAD + POWER + RAW, "socket://lab1:45678"),
        (HEAD + RFC2217 + POWER, "rfc2217://lab1:45678?ign_set_control"),
        (HEAD + LOCAL, "/dev/ttyACM3"),
    ],
)
def test_the_serial_port_of_a_place(shown: str, port: str) -> None:
    assert port_of("h743", shown) == port


def test_none_or_several_are_told() -> None:
    with pytest.raises(InputError, match="'h743' has 0 serial ports, not one"):
        port_of("h743", HEAD + POWER)
    with pytest.raises(InputError, match=r"2 serial ports \(socket://lab1:45678, /dev/ttyACM3\)"):
        port_of("h743", HEAD + RAW + LOCAL)
    with pytest.raises(LinkError, match="not understood"):
        port_of("h743", HEAD + RAW.replace("True", "<object>"))


def test_without_labgrid_the_line_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingToolError, match="pipx install labgrid"), reserved("h743"):
        pass
