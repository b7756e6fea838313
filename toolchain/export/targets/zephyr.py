"""`zephyr`: a module for Zephyr (its documentation, "Modules (External projects)"), with a sample.

Zephyr compiles everything with `-Os -ffreestanding`, and for a Cortex-M55 in QEMU without Helium.
The kernels' options are therefore properties of the files, which come last on the compiler's line,
and the module's Kconfig symbol selects what the core must have.
"""

from __future__ import annotations

from toolchain.export.carried import Carried
from toolchain.export.exporter import Exporter, Files, rendered

_PREFIX = "thimble_"


def _files(carried: Carried) -> Files:
    module = f"{_PREFIX}{carried.name.removeprefix(_PREFIX)}"
    sample = f"samples/{carried.name}"
    lines = (
        f"Name this folder in `ZEPHYR_EXTRA_MODULES`, or as a project of your `west.yml`, and set "
        f"`CONFIG_{module.upper()}=y`.",
        f"`west build -b BOARD {sample}` (or `cmake -B build -GNinja -DBOARD=BOARD {sample}`) "
        "builds a program that runs it once and prints the outputs.",
    )

    def file(template: str) -> str:
        return rendered(f"zephyr/{template}.j2", carried, module=module)

    return {
        **carried.tree(),
        **carried.licences,
        "zephyr/module.yml": file("module.yml"),
        "CMakeLists.txt": file("CMakeLists.txt"),
        "Kconfig": file("Kconfig"),
        f"{sample}/CMakeLists.txt": file("sample.cmake"),
        f"{sample}/prj.conf": file("prj.conf"),
        f"{sample}/sample.yaml": file("sample.yaml"),
        f"{sample}/src/main.c": file("main.c"),
        "README.md": rendered("README.md.j2", carried, title="Zephyr", lines=lines),
    }


EXPORTER = Exporter("zephyr", "a module for Zephyr, with a sample", _files)
