"""Checks this machine for the programs and packages that the toolchain uses."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
from dataclasses import dataclass

from toolchain.device import trace_plugin, udev
from toolchain.device.installers import install_command
from toolchain.errors import ThimbleError
from toolchain.kernels import cmsis_nn
from toolchain.packages import EXTRAS, Extra

_PROGRAMS = (
    (
        "arm-none-eabi-gcc",
        "compile for boards",
        True,
        install_command("arm-none-eabi-gcc"),
    ),
    ("qemu-system-arm", "emulate boards", True, install_command("qemu-system-arm")),
    ("gcc", "the host board", False, install_command("gcc")),
    ("openocd", "flash", False, install_command("openocd")),
    ("pyocd", "flash", False, "pip install pyocd"),
    ("st-flash", "flash", False, install_command("st-flash")),
    ("STM32_Programmer_CLI", "flash", False, "STM32CubeProgrammer, from ST's site"),
    ("dfu-util", "flash over USB", False, install_command("dfu-util")),
    (
        "edgetpu_compiler",
        "compile stages for Edge TPUs",
        False,
        "Coral's package repository, https://coral.ai/docs/edgetpu/compiler (x86-64 Linux)",
    ),
)
_PACKAGES = (("tflite-micro", "check models that LiteRT refuses", False),)


@dataclass(frozen=True)
class Finding:
    """One program or package; `found` is its version or path, '' if it is missing."""

    what: str
    purpose: str
    found: str
    needed: bool
    remedy: str


def examine() -> tuple[Finding, ...]:
    """All programs and packages that the toolchain uses, the most important first."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    return (
        Finding("Python", "everything", python, True, ""),
        *map(_extra, EXTRAS),
        *(
            Finding(name, purpose, _package(name), needed, f"pip install {name}")
            for name, purpose, needed in _PACKAGES
        ),
        *(
            Finding(name, purpose, _program(name), needed, remedy)
            for name, purpose, needed, remedy in _PROGRAMS
        ),
        Finding("newlib", "the C library of boards", _newlib(), True, install_command("newlib")),
        Finding("CMSIS-NN", "kernels", _kernels(), True, _fetched()),
        _tracing(),
        *((_usb_rules(),) if sys.platform == "linux" else ()),
    )


def _fetched() -> str:
    """The remedy where CMSIS-NN is missing: the wheel that Thimble fetches, the folder that keeps
    it, and the way without a network."""
    return (
        f"nothing to do: the first compile or verify fetches {cmsis_nn.PINNED_WHEEL} with pip, "
        f"checks its sources and keeps them in {cmsis_nn.cached_folder()} (now: python -m "
        f"toolchain.kernels.cmsis_nn). Offline: copy that folder from a machine that has it, or "
        f"set {cmsis_nn.ENVIRONMENT_VARIABLE} to a CMSIS-NN checkout"
    )


def _usb_rules() -> Finding:
    """udev's rules of this package; others that give the same access count as none."""
    found = str(udev.INSTALLED) if udev.is_installed() else ""
    purpose = "use debug probes and Edge TPUs without root"
    return Finding("USB rules", purpose, found, False, "thimble doctor --install-udev")


def _tracing() -> Finding:
    why = trace_plugin.unavailable()
    plugin = "" if why else str(trace_plugin.build())
    return Finding("QEMU plugin", "cycles of emulated boards", plugin, False, why)


def _extra(extra: Extra) -> Finding:
    """An extra: its packages with their versions, if all are there."""
    versions = [f"{name} {_package(name.replace('_', '-'))}" for name in extra.packages]
    listed = "" if extra.missing else ", ".join(versions)
    return Finding(f"extra [{extra.name}]", extra.purpose, listed, False, extra.remedy)


def _package(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _program(name: str) -> str:
    """The first line that the program says of its version; its path where it says nothing."""
    path = shutil.which(name)
    if path is None:
        return ""
    try:
        done = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=300,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return path
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0] if lines else path


def _newlib() -> str:
    """The path at which the cross compiler finds its C library; '' where it has none."""
    compiler = shutil.which("arm-none-eabi-gcc")
    if compiler is None:
        return ""
    done = subprocess.run(
        [compiler, "-print-file-name=nosys.specs"],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    path = done.stdout.strip()
    return path if path not in ("", "nosys.specs") else ""


def _kernels() -> str:
    try:
        folder = cmsis_nn.installed()
    except ThimbleError:
        return ""
    return str(folder) if folder else ""
