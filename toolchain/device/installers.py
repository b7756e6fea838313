"""How each package manager installs the programs that the toolchain uses.

Names of packages: as Debian, Fedora, Arch, Homebrew, winget and xPack publish them. Only apt's have
been tried here.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from types import MappingProxyType

_COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "apt-get": "apt-get install -y --no-install-recommends",
        "dnf": "dnf install",
        "pacman": "pacman -S",
        "brew": "brew install",
        "winget": "winget install",
        "xpm": "xpm install --global",
    }
)
"""Each package manager's program and its command, in the order of preference."""
_COMPILER = {
    "apt-get": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
    "dnf": "arm-none-eabi-gcc-cs arm-none-eabi-newlib",
    "pacman": "arm-none-eabi-gcc arm-none-eabi-newlib",
    "brew": "--cask gcc-arm-embedded",
    "winget": "Arm.GnuArmEmbeddedToolchain",
    "xpm": "@xpack-dev-tools/arm-none-eabi-gcc@latest",
}
PACKAGES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "arm-none-eabi-gcc": _COMPILER,
        "newlib": {**_COMPILER, "apt-get": "libnewlib-arm-none-eabi"},
        "qemu-system-arm": {
            "apt-get": "qemu-system-arm",
            "dnf": "qemu-system-arm",
            "pacman": "qemu-system-arm",
            "brew": "qemu",
            "winget": "SoftwareFreedomConservancy.QEMU",
            "xpm": "@xpack-dev-tools/qemu-arm@latest",
        },
        "gcc": {
            "apt-get": "gcc libc6-dev",
            "dnf": "gcc",
            "pacman": "gcc",
            "brew": "gcc",
            "xpm": "@xpack-dev-tools/gcc@latest",
        },
        "openocd": {
            **dict.fromkeys(("apt-get", "dnf", "pacman", "brew"), "openocd"),
            "xpm": "@xpack-dev-tools/openocd@latest",
        },
        "st-flash": {
            "apt-get": "stlink-tools",
            **dict.fromkeys(("dnf", "pacman", "brew"), "stlink"),
        },
        "dfu-util": dict.fromkeys(("apt-get", "dnf", "pacman", "brew"), "dfu-util"),
    }
)
"""The package that has a program, by program and package manager."""


def install_command(program: str, which: Callable[[str], str | None] = shutil.which) -> str:
    """The command that installs `program` with a package manager that this machine has.

    Where it has none that knows the program, the names in all of them.
    """
    packages = PACKAGES[program]
    commands = {m: f"{_COMMANDS[m]} {packages[m]}" for m in _COMMANDS if m in packages}
    here = next((m for m in commands if which(m)), None)
    return commands[here] if here else "; or: ".join(commands.values())
