#!/usr/bin/env bash
# Everything a fresh checkout needs: system packages (through apt), .venv, CMSIS-NN, QEMU's plugin.
# Quick when nothing is missing. Run by `make setup`.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\033[1m%s\033[0m\n' "$*"; }
die() {
    printf '%s\n' "$*" >&2
    exit 1
}

# --- Debian packages: what is missing, and who may install it --------------------------------
declare -A provides=(
    [arm-none-eabi-gcc]=gcc-arm-none-eabi
    [qemu-system-arm]=qemu-system-arm
    [gcc]=gcc
)
packages=()
for tool in arm-none-eabi-gcc qemu-system-arm gcc; do
    command -v "$tool" >/dev/null || packages+=("${provides[$tool]}")
done
command -v arm-none-eabi-gcc >/dev/null &&
    echo '#include <string.h>' | arm-none-eabi-gcc -E - >/dev/null 2>&1 ||
    packages+=(libnewlib-arm-none-eabi)
echo '#include <string.h>' | gcc -E - >/dev/null 2>&1 || packages+=(libc6-dev)

python=""
for candidate in python3.13 python3.12 python3.11 python3; do
    if command -v "$candidate" >/dev/null &&
        "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || packages+=(python3)
[ -n "$python" ] && "$python" -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)

if [ ${#packages[@]} -gt 0 ]; then
    install="apt-get install -y --no-install-recommends ${packages[*]}"
    say "Missing: ${packages[*]}"
    command -v apt-get >/dev/null || die "This is no Debian-like system: install them by its own means, then run this again."
    if [ "$(id -u)" -eq 0 ]; then
        root=""
    elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        root="sudo"
    else
        die "Run this line as root, then run this again:
    apt-get update && $install"
    fi
    $root apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $root $install
fi
[ -n "$python" ] || python=python3

# --- Python: a virtual environment, pinned by constraints.txt --------------------------------
stamp=.venv/.thimble-setup
wanted=$(cat pyproject.toml constraints.txt | sha256sum | cut -d' ' -f1)
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    say "Setting up .venv (a few minutes the first time)"
    [ -x .venv/bin/python ] || "$python" -m venv .venv
    # Of 8,500 modules few are imported, and Python compiles those itself.
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
        --constraint constraints.txt --editable '.[dev]'
    echo "$wanted" >"$stamp"
fi

# --- CMSIS-NN: from the pinned wheel into the user's cache -----------------------------------
.venv/bin/python -m toolchain.kernels.cmsis_nn >/dev/null

# --- The plugin with which QEMU counts instructions, into the user's cache -------------------
counting=$(.venv/bin/python -m toolchain.device.trace_plugin)
[ -f "$counting" ] || say "$counting"
say "Ready: .venv/bin/thimble --help"
