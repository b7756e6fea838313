"""`cmake`: a folder for add_subdirectory(), with a toolchain file and presets."""

from __future__ import annotations

from toolchain.export.carried import Carried
from toolchain.export.exporter import Exporter, Files, rendered


def _files(carried: Carried) -> Files:
    preset = "host" if carried.board.is_host else "firmware"
    lines = (
        f"`add_subdirectory()` this folder and link the target `{carried.name}`; its headers are "
        "in `include`.",
        f"Alone: `cmake --preset {preset}`, then `cmake --build build`; `example/main.c` runs it "
        "once.",
    )
    made: dict[str, str] = {
        **carried.tree(),
        **carried.licences,
        "CMakeLists.txt": rendered("cmake/CMakeLists.txt.j2", carried),
        "CMakePresets.json": rendered("cmake/CMakePresets.json.j2", carried),
        "example/main.c": rendered("main.c.j2", carried),
        "README.md": rendered("README.md.j2", carried, title="CMake", lines=lines),
    }
    if not carried.board.is_host:
        made["toolchain.cmake"] = rendered("cmake/toolchain.cmake.j2", carried)
    return made


EXPORTER = Exporter("cmake", "a CMake folder for add_subdirectory(), with toolchain file", _files)
