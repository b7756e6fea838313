"""A census of refusals: which places in the code refuse which models, and does LiteRT run those.

    python -m benchmarks.refusals [FOLDER ...] [--json FILE]

Every .tflite and .onnx file below the folders is read and planned for this machine, operators
whole, with leave for float32. A refusal is listed by the module and function that says no and by
its text without names and numbers. Beside the models that it hits stand those of them that LiteRT's
reference kernels, or ONNX Runtime, run on zeros. The last line counts the places that refuse none.
"""

from __future__ import annotations

import argparse
import ast
import sys
import traceback
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks._cases import reason
from benchmarks._results import json_option, write_results
from toolchain.errors import DoesNotFitError, ThimbleError
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions

SMALLEST = ("examples/digits",)
ROOT = Path(__file__).resolve().parents[1]
SHARED_MODELS = ROOT.parent / "shared" / "models"
_OPTIONS = PlanOptions(nearly_free=False, allow_float=True)
_MAKERS = ("unsupported", "left_in_float")
"""Methods that make an error for their caller to raise."""


@dataclass
class Refusal:
    """A place, as module:function, its text without names and numbers, and the models it hits;
    `run`: those of them that the reference runs.
    """

    place: str
    text: str
    models: list[str] = field(default_factory=list)
    run: list[str] = field(default_factory=list)


class Places:
    """Remembers where errors are made, as front ends put many operators' errors into one."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str]] = []
        plain = ThimbleError.__init__

        def remember(error: ThimbleError, message: str = "", **named: Any) -> None:
            plain(error, message, **named)
            if message:
                self.made.append((_maker(), message))

        ThimbleError.__init__ = remember  # type: ignore[assignment, method-assign]

    def of(self, error: ThimbleError) -> tuple[str, str]:
        """Place and text of what refused the model first."""
        if error.__cause__ is not None:
            return _raised(error.__cause__), reason(error)
        within = [(place, text) for place, text in self.made if text and text in str(error)]
        least = min(within, key=lambda pair: len(pair[1]), default=(_raised(error), str(error)))
        return least[0], reason(ThimbleError(least[1]))


def _maker() -> str:
    """The function that makes an error, without those that only word it."""
    frame = sys._getframe(2)
    while frame.f_back and frame.f_code.co_name in ("__init__", *_MAKERS):
        frame = frame.f_back
    return f"{_module(Path(frame.f_code.co_filename))}:{frame.f_code.co_name}"


def _raised(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{_module(Path(last.filename))}:{last.name}"


def _module(file: Path) -> str:
    return file.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")


def refusal_of(file: Path) -> tuple[str, str] | None:
    """Place and text; None for a model that is planned, or that only does not fit."""
    places = Places()
    try:
        plan_model(file, "host", _OPTIONS)
    except DoesNotFitError:
        return None
    except ThimbleError as error:
        return places.of(error)
    return None


def run_reference(file: Path) -> None:
    """One inference on zeros. Raises whatever the runtime raises."""
    if file.suffix == ".onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(file)
        kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
        kinds |= {"tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(bool)": np.bool_}
        shapes = (
            (x, [d if isinstance(d, int) else 1 for d in x.shape]) for x in session.get_inputs()
        )
        session.run(None, {x.name: np.zeros(shape, kinds[x.type]) for x, shape in shapes})
        return
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        str(file), experimental_op_resolver_type=OpResolverType.BUILTIN_REF, num_threads=1
    )
    interpreter.allocate_tensors()
    interpreter.invoke()


def _answer(said: Any, task: Any, file: Path) -> None:
    try:
        said.send(task(file))
    except Exception:
        sys.exit(1)


def apart(task: Any, file: Path) -> tuple[Any, bool]:
    """What `task` returns, and whether it ended well, in a process of its own."""
    context = get_context("fork")
    answer, said = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(said, task, file))
    child.start()
    said.close()
    try:
        value = answer.recv()
    except EOFError:
        value = None
    child.join()
    return value, child.exitcode == 0


def census(files: Sequence[Path]) -> list[Refusal]:
    """Refusals, those with the most models first."""
    found: dict[tuple[str, str], Refusal] = defaultdict(lambda: Refusal("", ""))
    for file in track(files, "planning", console=Console(stderr=True), transient=True):
        where, ended = apart(refusal_of, file)
        if ended and where is None:
            continue
        place, text = where or ("(no error of ours)", "an internal error")
        refusal = found[place, text]
        refusal.place, refusal.text = place, text
        refusal.models.append(file.name)
        if apart(run_reference, file)[1]:
            refusal.run.append(file.name)
    return sorted(found.values(), key=lambda r: (-len(r.models), r.place, r.text))


def raising() -> Iterator[str]:
    """Every function below toolchain/ that raises an error of ours, or makes one to be raised."""
    names = {error.__name__ for error in _errors(ThimbleError)} | {"ScaleError", "NoKernelError"}
    for file in sorted((ROOT / "toolchain").rglob("*.py")):
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef) and _refuses(function, names):
                yield f"{_module(file)}:{function.name}"


def _errors(base: type[ThimbleError]) -> Iterator[type[ThimbleError]]:
    yield base
    for error in base.__subclasses__():
        yield from _errors(error)


def _refuses(function: ast.FunctionDef, names: set[str]) -> bool:
    raised = (node.exc for node in ast.walk(function) if isinstance(node, ast.Raise))
    called = (node.func for node in raised if isinstance(node, ast.Call))
    return any(
        (isinstance(what, ast.Name) and what.id in names)
        or (isinstance(what, ast.Attribute) and what.attr in _MAKERS)
        for what in called
    )


def print_census(refusals: Sequence[Refusal], files: int, without: int) -> None:
    table = Table(title=f"refusals of {files} models", header_style="bold")
    table.add_column("place", overflow="fold")
    table.add_column("text", overflow="fold")
    table.add_column("models", justify="right")
    table.add_column("the reference runs", overflow="fold")
    for refusal in refusals:
        run = f"{len(refusal.run)}: {', '.join(refusal.run)}" if refusal.run else "0"
        table.add_row(refusal.place, refusal.text, str(len(refusal.models)), run)
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table)
    console.print(f"{without} functions that can refuse a model or a command refuse none of them.")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path, default=[SHARED_MODELS])
    json_option(parser)
    arguments = parser.parse_args()
    found = {file for folder in arguments.folders for file in folder.rglob("*")}
    files = sorted(file for file in found if file.suffix in (".tflite", ".onnx"))
    refusals = census(files)
    hit = {refusal.place for refusal in refusals}
    without = sorted(set(raising()) - hit)
    print_census(refusals, len(files), len(without))
    found_here = {"models": len(files), "refusals": refusals, "without": without}
    write_results(arguments.json, found_here)
    return 0


if __name__ == "__main__":
    sys.exit(main())
