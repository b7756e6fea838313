"""Writes models made by TensorFlow's converter, tf2onnx, and PyTorch's exporters with onnxruntime.

    python benchmarks/ecosystem/make.py --out DIR [--only TEXT]
    .venv/bin/python benchmarks/reach.py --models DIR

The tools are large and no dependency of this project: install them in environments of their own,
`pip install tensorflow-cpu tf2onnx` or `pip install torch onnx onnxscript onnxruntime`, and run
this in each. Weights and calibration data come from seeds. A tool that is not installed is left
out and said so. DIR/models.json says which tool made which file.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

SMALLEST = ("--out {scratch} --only no_model",)
"""Its tools are in no environment of this project: it says so, and makes nothing."""
MODULES = ("tensorflow_models", "tf2onnx_models", "pytorch_models")
INDEX = "models.json"


def tools() -> list[ModuleType]:
    """The modules whose tools are installed; says which are not."""
    found = []
    for name in MODULES:
        try:
            found.append(importlib.import_module(f"benchmarks.ecosystem.{name}"))
        except ImportError as error:
            print(f"left out: {name} ({error})", file=sys.stderr)
    return found


def write(file: str, out: Path, module: ModuleType) -> str:
    """Make one file. Returns what went wrong, or nothing."""
    try:
        data = module.models()[file]()
    except Exception as error:  # whatever the tool raises: the others can still be made
        return f"{type(error).__name__}: {str(error).strip().splitlines()[-1][:200]}"
    (out / file).write_bytes(data)
    index = out / INDEX
    known = json.loads(index.read_text()) if index.exists() else {}
    index.write_text(json.dumps(known | {file: module.TOOL}, indent=1, sort_keys=True) + "\n")
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="models whose name contains this")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for module in tools():
        for file in module.models():
            if arguments.only in file:
                wrong = write(file, arguments.out, module)
                print(f"{file}: {wrong or 'made'}", flush=True)
                failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
