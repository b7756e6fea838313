#!/usr/bin/env bash
# PyTorch and TensorFlow, for tutorials (tests/models/test_tutorials.py) and benchmarks/layer_matrix.py, in a virtual
# environment of their own: they are large. Prints its Python, to name in THIMBLE_FRAMEWORKS.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=.venv-frameworks
stamp="$folder/.done"
wanted="torch==2.13.0 onnxscript tensorflow-cpu==2.21.0 scikit-learn"
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$folder"
    "${PYTHON:-.venv/bin/python}" -m venv "$folder"
    # shellcheck disable=SC2086
    timeout 400 "$folder/bin/pip" install --quiet --disable-pip-version-check --no-compile $wanted >&2
    echo "$wanted" >"$stamp"
fi
echo "$PWD/$folder/bin/python"
