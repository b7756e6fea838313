"""`cubeide`: a folder for a CMake project as STM32CubeMX writes it, for STM32CubeIDE and VS Code;
for a part number also a project of STM32CubeIDE itself, which runs the example.

CubeMX's toolchain file has the core's flags; its generated folders name the program
`${CMAKE_PROJECT_NAME}` and link themselves to it, and so does this one.
"""

from __future__ import annotations

import re

from toolchain.boards.memory import Content, MemoryKind
from toolchain.errors import InputError
from toolchain.export.carried import Carried
from toolchain.export.exporter import Exporter, Files, rendered

_PART = re.compile(r"stm32[a-z0-9]{4}[a-z][a-z0-9]")
_FPU = "-mfpu="


def _files(carried: Carried) -> Files:
    if carried.board.is_host:
        raise InputError(
            "cubeide: STM32CubeMX makes projects for ST's chips, not for this computer",
            remedies=["--chip STM32F446RE, or the part that you have", "--board nucleo-f446re"],
        )
    lines = [
        f"Copy this folder as `{carried.name}` into a project that STM32CubeMX wrote (Toolchain / "
        "IDE: CMake); in its CMakeLists.txt write, below `add_subdirectory(cmake/stm32cubemx)`: "
        f"`add_subdirectory({carried.name})`.",
        f"That compiles the files, links them to the program and lets it include "
        f"`{carried.models[0].name}.h`. `example/{carried.name}_example.c` is a function that runs "
        "it once and prints the outputs: add it to the program's sources and call it from main.",
        "A project without CMake: add `src` as a source folder with -O2, and `src` and `include` "
        "to the include paths (Properties, C/C++ Build, Settings).",
    ]
    project = _project(carried)
    if project:
        lines.append(
            "The folder is also a project of STM32CubeIDE (Import, Existing Projects) that runs "
            "the example, with a start-up of its own."
        )
    return {
        **carried.tree(),
        **carried.licences,
        **project,
        "CMakeLists.txt": rendered("cubeide/CMakeLists.txt.j2", carried),
        f"example/{carried.name}_example.c": rendered("cubeide/example.c.j2", carried),
        "README.md": rendered("README.md.j2", carried, title="STM32CubeIDE", lines=lines),
    }


def _project(carried: Carried) -> dict[str, str]:
    """Eclipse's files; none for a board, whose file does not say the part that the IDE asks for.

    The part is taken to be in the package that most are, an LQFP (`T`).
    """
    board = carried.board
    if not _PART.fullmatch(board.name):
        return {}
    flash = next(m for m in board.memories if Content.CODE in m.holds)
    banks = (m for m in board.memories if m.kind is MemoryKind.RAM and Content.ARENA in m.holds)
    ram = max(banks, key=lambda memory: memory.size_bytes)
    script = f"{board.name.upper()}_FLASH.ld"
    fpu = next((f.removeprefix(_FPU) for f in carried.core_flags if f.startswith(_FPU)), "")
    part = f"{board.name.upper()}Tx"

    def file(template: str) -> str:
        known = {"part": part, "fpu": fpu, "script": script, "flash": flash, "ram": ram}
        return rendered(f"cubeide/{template}.j2", carried, **known)

    return {
        ".project": file("project"),
        ".cproject": file("cproject"),
        script: file("linker.ld"),
        "example/startup.c": file("startup.c"),
    }


EXPORTER = Exporter("cubeide", "a folder for STM32CubeMX's CMake projects and STM32CubeIDE", _files)
