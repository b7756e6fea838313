"""`thimble doctor` names packages of the package manager that the machine has."""

from __future__ import annotations

import pytest

from toolchain.device.installers import PACKAGES, install_command


@pytest.mark.parametrize(
    ("manager", "said"),
    [
        ("apt-get", "apt-get install -y --no-install-recommends qemu-system-arm"),
        ("dnf", "dnf install qemu-system-arm"),
        ("pacman", "pacman -S qemu-system-arm"),
        ("brew", "brew install qemu"),
        ("winget", "winget install SoftwareFreedomConservancy.QEMU"),
        ("xpm", "xpm install --global @xpack-dev-tools/qemu-arm@latest"),
    ],
)
def test_the_package_manager_that_is_there(manager: str, said: str) -> None:
    assert (
        install_command("qemu-system-arm", lambda name: name if name == manager else None) == said
    )


@pytest.mark.parametrize("program", PACKAGES)
def test_without_one_all_are_named(program: str) -> None:
    said = install_command(program, lambda _: None).split("; or: ")
    assert len(said) == len(PACKAGES[program]) > 3


def test_one_that_lacks_the_program_is_passed_over() -> None:
    said = install_command("openocd", lambda name: name if name in ("winget", "xpm") else None)
    assert said == "xpm install --global @xpack-dev-tools/openocd@latest"
