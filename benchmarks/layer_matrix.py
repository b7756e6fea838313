"""Layers of PyTorch and Keras, from the framework to C that is compared with its reference.

    python -m benchmarks.layer_matrix --python $(scripts/frameworks.sh) [--only TEXT]
                                      [--json FILE] [--markdown FILE]
    python -m benchmarks.layer_matrix --from-json FILE --markdown FILE

Each row is a small network around one layer, with seeded weights
(`ecosystem/pytorch_layers.py`, `ecosystem/keras_layers.py`). The columns are ways to C:

- `compile_torch`, `compile_keras`: int8, as the framework's usual quantiser makes it, no option
- `quantize`: `torch.onnx.export` as it is (its newer exporter), then `thimble quantize`, no option
- `float`: the exporter's file, compiled with --float

A cell compares 3 runs of the C, on this machine, with LiteRT or ONNX Runtime. `--python`: one that
has PyTorch and TensorFlow.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks._layer_cells import KERAS, PYTORCH, RUNS, Cell
from benchmarks._results import json_option, write_results
from toolchain.files import write_file

SMALLEST = ("--python /bin/false --only no_layer",)
"""The frameworks are in no environment of this project."""
ROOT = Path(__file__).resolve().parents[1]
COLUMNS: Mapping[str, Sequence[str]] = {
    PYTORCH: ("compile_torch", "quantize", "float"),
    KERAS: ("compile_keras", "float"),
}
PAGE = """\
# Layers from PyTorch and Keras

This page is made, with {tools}, by:

```
python -m benchmarks.layer_matrix --python $(scripts/frameworks.sh) --markdown docs/layers.md
```

Each row is a network of a few layers around the one that is named, with seeded weights. Each cell
is a way from the framework to C, which is compared with LiteRT or ONNX Runtime in {runs} runs on
this machine.

- **compile_torch**, **compile_keras**: [the Python interface](from-python.md), int8, no option:
  PyTorch's exporter through TorchScript (the newer one for layers that it does not know) and ONNX
  Runtime's quantiser; TensorFlow's converter.
- **quantize**: `torch.onnx.export` as it is (its newer exporter), then `thimble quantize`, int8, no
  option.
- **float**: the exporter's file, with `--float`.

A cell says *exact* where no element differs; *1 step* where an int8 output differs by one step at
most, as those of [ONNX models](operators.md) may; *2 steps* where each operator alone is within one
step, and the operators behind it make two of it; *close* where a float differs by at most 2^-16 of
the output's largest element. Parentheses have the operators in float32, of all. Notes are below the
table.
"""


def cells_of(python: str, framework: str, text: str) -> Iterator[Cell]:
    """The cells of one framework, as they are made."""
    here = [path for path in sys.path if path.endswith("site-packages")]
    path = os.pathsep.join([str(ROOT), *here])
    command = [
        python,
        "-c",
        "from benchmarks import _layer_cells as c; c.answer()",
        framework,
        text,
    ]
    env = {**os.environ, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}
    with subprocess.Popen(
        command, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        for line in child.stdout or ():
            yield Cell(**json.loads(line))
    if child.returncode:
        print(f"left out: {framework} ({python} ended with {child.returncode})", file=sys.stderr)


def text_of(cell: Cell, notes: list[str]) -> str:
    """What a cell of the table says; a refusal is added to the `notes`."""
    if cell.verdict in ("exact", "near"):
        steps = "1 step" if cell.largest <= 1 else f"{cell.largest:g} steps"
        near = "close" if cell.column == "float" else steps
        text = "exact" if cell.verdict == "exact" else near
        mixed = cell.floats and cell.column != "float"
        return f"{text} ({cell.floats} of {cell.operators})" if mixed else text
    if cell.verdict == "differs":
        said = f"{cell.differing} of {cell.elements} elements differ, by at most {cell.largest:g}"
    else:
        said = re.sub(r"^\S+\.(onnx|tflite): ", "", " ".join(cell.said.split()))
    if said not in notes:
        notes.append(said)
    return f"{cell.verdict} [{notes.index(said) + 1}]"


def markdown(cells: Sequence[Cell]) -> str:
    known = {(cell.framework, cell.layer, cell.column): cell for cell in cells}
    columns = [(framework, column) for framework, named in COLUMNS.items() for column in named]
    heads = [f"{framework}, {column}" for framework, column in columns]
    notes: list[str] = []
    lines = [f"| layer | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for layer in dict.fromkeys(cell.layer for cell in cells):
        row = [known.get((framework, layer, column)) for framework, column in columns]
        texts = ["-" if cell is None else text_of(cell, notes) for cell in row]
        lines.append(f"| {layer} | {' | '.join(texts)} |")
    tools = "; ".join(dict.fromkeys(cell.tools for cell in cells))
    listed = [f"{number}. {note}" for number, note in enumerate(notes, 1)]
    return "\n".join([PAGE.format(tools=tools, runs=RUNS), *lines, "", *listed]).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--python", help="the Python with PyTorch and TensorFlow")
    source.add_argument("--from-json", type=Path, help="the cells of an earlier run")
    parser.add_argument("--only", default="", help="layers whose name contains this")
    json_option(parser)
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    if arguments.from_json:
        cells = [Cell(**fields) for fields in json.loads(arguments.from_json.read_text())]
    else:
        cells = []
        for framework in COLUMNS:
            for cell in cells_of(arguments.python, framework, arguments.only):
                said = cell.said.splitlines()[0] if cell.said else ""
                print(
                    f"{framework}, {cell.layer}, {cell.column}: {cell.verdict} {said}", flush=True
                )
                cells.append(cell)
    write_results(arguments.json, cells)
    if arguments.markdown:
        write_file(arguments.markdown, markdown(cells))
    return 1 if any(cell.verdict in ("differs", "failed") for cell in cells) else 0


if __name__ == "__main__":
    sys.exit(main())
