"""Writes models made by TensorFlow's converter, tf2onnx, and PyTorch's exporters with onnxruntime.

    python benchmarks/ecosystem/make.py --out DIR [--only TEXT] [--tool MODULE]
    .venv/bin/python benchmarks/reach.py --models DIR

The tools are large and no dependency of this project: install them in environments of their own,
`pip install tensorflow-cpu tf2onnx tf_keras`, `pip install torch onnx onnxscript onnxruntime
brevitas onnxoptimizer torchao` or `pip install litert-torch`, and run this in each. Weights and
calibration data come from seeds. A tool that is not installed is left out and said so.
DIR/models.json says which tool made which file.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

SMALLEST = ("--out {scratch} --only no_model",)
"""Its tools are in no environment of this project: it says so, and makes nothing."""
MODULES = (
    *("tensorflow_models", "tensorflow_rare", "tf2onnx_models", "tf_keras_models"),
    *("pytorch_models", "pytorch_rare", "litert_torch_models", "brevitas_models"),
    "pt2e_models",
)
INDEX = "models.json"


def tools(wanted: Sequence[str]) -> list[ModuleType]:
    """The modules among `wanted` whose tools are installed; says which are not."""
    found = []
    for name in wanted:
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


def apart(file: str, out: Path, module: ModuleType) -> str:
    """`write` in a process of its own: some converters end theirs with a signal."""
    context = multiprocessing.get_context("fork")
    answer, said = context.Pipe(duplex=False)
    child = context.Process(target=lambda: said.send(write(file, out, module)))
    child.start()
    said.close()
    try:
        wrong = str(answer.recv())
    except EOFError:
        child.join()
        wrong = f"its tool ended by signal {-(child.exitcode or 0)}"
    child.join()
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument(
        "--tool",
        action="append",
        choices=MODULES,
        help="these modules only: TensorFlow and PyTorch in one process disturb each other",
    )
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for module in tools(arguments.tool or MODULES):
        for file in module.models():
            if arguments.only in file:
                wrong = apart(file, arguments.out, module)
                print(f"{file}: {wrong or 'made'}", flush=True)
                failed += bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
