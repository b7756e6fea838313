"""`arduino`: a library for the Arduino IDE and arduino-cli: all code is below src/, the only folder
that they search for includes ("Library specification", 1.5 format)."""

from __future__ import annotations

from toolchain.export.carried import Carried
from toolchain.export.exporter import Exporter, Files, optimised, rendered

_LINES = (
    "Put this folder into `libraries/` of your sketchbook; the example is under File > Examples.",
    "Choose a board in the Arduino IDE whose core is the one above; "
    "its compiler's -Os is overruled by a pragma in every file here.",
)


_ARCHITECTURES = {
    "cortex-m0": "stm32,nRF5",
    "cortex-m0plus": "stm32,samd,rp2040,mbed_rp2040",
    "cortex-m3": "stm32,sam",
    "cortex-m4": "stm32,samd,nrf52,nRF5,mbed,mbed_nano,renesas_uno",
    "cortex-m7": "stm32,mbed_portenta,mbed_giga,mbed_opta",
    "cortex-m33": "stm32,rp2040,renesas_portenta,silabs",
    "cortex-m55": "stm32",
}
"""Arduino's packages of boards that have such a core among theirs; the code stops other cores."""


def _files(carried: Carried) -> Files:
    tree = carried.tree(public="src", private="src")
    sketch = f"examples/{carried.name}_example/{carried.name}_example.ino"
    return {
        **optimised(tree, carried),
        **carried.licences,
        "library.properties": rendered(
            "arduino/library.properties.j2",
            carried,
            architectures=_ARCHITECTURES.get(carried.core, "*"),
        ),
        sketch: rendered("arduino/example.ino.j2", carried),
        "README.md": rendered("README.md.j2", carried, title="Arduino", lines=_LINES),
    }


EXPORTER = Exporter("arduino", "a library for the Arduino IDE, with a sketch", _files)
