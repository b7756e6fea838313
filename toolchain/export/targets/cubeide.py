"""`cubeide`: a folder for a CMake project as STM32CubeMX writes it, for STM32CubeIDE and VS Code.

CubeMX's toolchain file has the core's flags; its generated folders name the program
`${CMAKE_PROJECT_NAME}` and link themselves to it, and so does this one.
"""

from __future__ import annotations

from toolchain.errors import InputError
from toolchain.export.carried import Carried
from toolchain.export.exporter import Exporter, Files, rendered


def _files(carried: Carried) -> Files:
    if carried.board.is_host:
        raise InputError(
            "cubeide: STM32CubeMX makes projects for ST's chips, not for this computer",
            remedies=["--chip STM32F446RE, or the part that you have", "--board nucleo-f446re"],
        )
    lines = (
        "Copy this folder into a project that STM32CubeMX wrote (Toolchain / IDE: CMake); in its "
        "CMakeLists.txt write, below `add_subdirectory(cmake/stm32cubemx)`: "
        f"`add_subdirectory({carried.name})`.",
        f"That compiles the files, links them to the program and lets it include "
        f"`{carried.models[0].name}.h`. `example/{carried.name}_example.c` is a function that runs "
        "it once and prints the outputs: add it to the program's sources and call it from main.",
        "A project without CMake: add `src` as a source folder with -O2, and `src` and `include` "
        "to the include paths (Properties, C/C++ Build, Settings).",
    )
    return {
        **carried.tree(),
        **carried.licences,
        "CMakeLists.txt": rendered("cubeide/CMakeLists.txt.j2", carried),
        f"example/{carried.name}_example.c": rendered("cubeide/example.c.j2", carried),
        "README.md": rendered("README.md.j2", carried, title="STM32CubeIDE", lines=lines),
    }


EXPORTER = Exporter("cubeide", "a folder for a CMake project of STM32CubeMX", _files)
