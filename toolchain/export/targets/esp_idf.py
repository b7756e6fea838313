"""`esp-idf`: a component for Espressif's chips (ESP-IDF Programming Guide, "Build System", and the
component manager's manifest). They run no Arm instructions, so the kernels are plain C.
"""

from __future__ import annotations

from toolchain.errors import InputError
from toolchain.export.carried import Carried
from toolchain.export.exporter import Exporter, Files, rendered

_PLAIN = "mps2-an385"
_LINES = (
    "Put this folder into `components/` of your project; its headers are found by every component "
    "that names it in REQUIRES.",
    "`examples/run_once` is a project: `idf.py -C examples/run_once build flash monitor`.",
    "The kernels are plain C: exact on Xtensa and RISC-V too, and not written for their speed.",
)


def _files(carried: Carried) -> Files:
    core = carried.board.core
    if core.dsp or core.mve:
        raise InputError(
            f"esp-idf: kernels for a {core.name} use instructions that Espressif's chips lack",
            remedies=[f"--board {_PLAIN}, whose kernels are plain C", "leave out --board"],
        )
    example = "examples/run_once"
    return {
        **carried.tree(),
        **carried.licences,
        "CMakeLists.txt": rendered("esp_idf/CMakeLists.txt.j2", carried),
        "idf_component.yml": rendered("esp_idf/idf_component.yml.j2", carried),
        f"{example}/CMakeLists.txt": rendered("esp_idf/example.cmake.j2", carried),
        f"{example}/main/CMakeLists.txt": rendered("esp_idf/example_main.cmake.j2", carried),
        f"{example}/main/main.c": rendered("esp_idf/main.c.j2", carried),
        "README.md": rendered("README.md.j2", carried, title="ESP-IDF", lines=_LINES, plain=True),
    }


EXPORTER = Exporter("esp-idf", "a component for ESP-IDF, in plain C", _files, _PLAIN)
