#!/usr/bin/env bash
# Programs that pack libraries for PlatformIO and ESP-IDF, for tests/host_c/test_export.py, in a virtual environment
# of their own: what they depend on conflicts with what Thimble does. Prints the folder to name in THIMBLE_PACKAGERS.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=.venv-packagers
stamp="$folder/.done"
wanted="platformio==6.2.0 idf-component-manager==3.1.2"
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$folder"
    python3 -m venv "$folder"
    # shellcheck disable=SC2086
    "$folder/bin/pip" install --quiet --disable-pip-version-check --no-compile $wanted >&2
    echo "$wanted" >"$stamp"
fi
echo "$PWD/$folder/bin"
