"""`cmsis-pack`: a pack for Keil, CMSIS-Toolbox and VS Code (Open-CMSIS-Pack specification, PACK.xsd
1.7), with an example for csolution. The folder is the pack unpacked; the archive lies in it.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

from toolchain.errors import InputError
from toolchain.export.carried import Carried
from toolchain.export.exporter import URL, Exporter, Files, optimised, rendered
from toolchain.version import DATE

_VENDOR, _VERSION = "Thimble", "1.0.0"
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_DEVICES = {
    "cortex-m0": "ARMCM0",
    "cortex-m0plus": "ARMCM0P",
    "cortex-m3": "ARMCM3",
    "cortex-m4": "ARMCM4",
    "cortex-m7": "ARMCM7",
    "cortex-m33": "ARMCM33",
    "cortex-m55": "ARMCM55",
}
"""The device with each core in Arm's pack ARM::Cortex_DFP, for the example."""


def _files(carried: Carried) -> Files:
    if carried.core not in _DEVICES:
        raise InputError(
            f"cmsis-pack: packs are for Arm's processors, and {carried.board.name} has none",
            remedies=["--chip STM32F446RE, or the part that you have", "--board nucleo-f446re"],
        )
    archive = f"{_VENDOR}.{carried.name}.{_VERSION}.pack"
    lines = (
        f"`cpackget add {archive}` installs it, as Keil's Pack Installer does (File, Import); then "
        f"choose the component Machine Learning, {_VENDOR}, {carried.name}.",
        f"`example/{carried.name}.csolution.yml` is for Arm's generic {_DEVICES[carried.core]}: "
        "`cbuild` it, or put your device in its place. Its printf goes where your project says.",
        f"Before you publish it, put its address in place of {URL} in the .pdsc.",
        "A pack cannot say how it is compiled: a pragma in every file makes GCC take -O2; with Arm "
        "Compiler choose the component's optimisation.",
    )

    def file(template: str) -> str:
        return rendered(
            f"cmsis_pack/{template}.j2",
            carried,
            vendor=_VENDOR,
            version=_VERSION,
            url=URL,
            date=DATE,
            device=_DEVICES[carried.core],
            files=tuple(tree),
        )

    tree = optimised(carried.tree(), carried)
    packed: dict[str, str] = {
        **tree,
        **carried.licences,
        f"example/{carried.name}.csolution.yml": file("csolution.yml"),
        f"example/{carried.name}.cproject.yml": file("cproject.yml"),
        "example/main.c": rendered("main.c.j2", carried),
        f"{_VENDOR}.{carried.name}.pdsc": file("pack.pdsc"),
        "README.md": rendered("README.md.j2", carried, title="CMSIS-Pack", lines=lines),
    }
    return {**packed, archive: _archive(packed)}


def _archive(files: Mapping[str, str]) -> bytes:
    """A zip file of the files that has the same bytes each time."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(files):
            entry = zipfile.ZipInfo(path, _NO_TIME)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, files[path].encode("utf-8"))
    return memory.getvalue()


EXPORTER = Exporter("cmsis-pack", "a pack for Keil and VS Code, with a csolution", _files)
