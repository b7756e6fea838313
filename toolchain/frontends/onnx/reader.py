"""The ONNX front end: QDQ and QLinear models as onnxruntime's static quantiser writes them.

Images that ONNX writes NCHW are NHWC in the Graph. Each operator is read as its row in
`operators` says. Float and uint8 inputs and outputs are `quantize` and `dequantize` operators in
the Graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from toolchain.errors import FloatModelError, InputError, UnsupportedError
from toolchain.frontends.front_end import AS_WRITTEN, Problem, Reading, unsupported
from toolchain.frontends.onnx.arithmetic import IN_INT8, Arithmetic, Float32
from toolchain.frontends.onnx.casts import join_casts
from toolchain.frontends.onnx.clips import clips_of_reals
from toolchain.frontends.onnx.dynamic import join_dynamic
from toolchain.frontends.onnx.file import read_file
from toolchain.frontends.onnx.importer import Importer
from toolchain.frontends.onnx.model import FileModel
from toolchain.frontends.onnx.operators import Trait, operator
from toolchain.frontends.onnx.protos import constants_from_nodes, is_function
from toolchain.frontends.onnx.qonnx import in_standard_operators
from toolchain.frontends.onnx.quantisation import DEQUANTIZE
from toolchain.frontends.onnx.rewriting import in_new_forms, without_integers
from toolchain.frontends.onnx.shapes import is_standard, ranks, resolve, with_shapes
from toolchain.frontends.onnx.stored import Stored
from toolchain.frontends.onnx.tables import fuse_tables
from toolchain.ir import Graph
from toolchain.ir.verify import InvalidGraphError
from toolchain.ops.check import check


def read(data: bytes, path: Path, wanted: Reading = AS_WRITTEN) -> Graph:
    """Read an ONNX file. See `FrontEnd.read`."""
    return read_traced(data, path, wanted)[0]


def read_traced(
    data: bytes, path: Path, wanted: Reading = AS_WRITTEN
) -> tuple[Graph, Mapping[str, Stored]]:
    """The graph, and which of its tensors hold results of the file's operators (`Importer.stored`).

    Raises as `FrontEnd.read` does.
    """
    try:
        return _read(data, path, wanted)
    except UnsupportedError as error:
        if str(error).startswith(f"{path.name}: "):  # a list of operators
            raise
        raise UnsupportedError(f"{path.name}: {error}") from error
    except InputError as error:
        raise InputError(f"{path.name}: {error}") from error


def _read(data: bytes, path: Path, wanted: Reading) -> tuple[Graph, Mapping[str, Stored]]:
    parsed = read_file(in_standard_operators(data))
    old = with_shapes(constants_from_nodes(parsed), wanted.input_shapes)
    file = in_new_forms(old, lambda: ranks(old))
    unknown = _unknown(file)
    expanded = without_integers(file)
    in_float = _is_float(expanded)
    kept_in_float = wanted.allow_float if in_float else None
    if any(not is_standard(problem.operator) for problem in unknown):
        raise _refused(path, unknown, file, kept_in_float)
    try:
        shaped = resolve(expanded)
    except InputError as error:
        unknown = [one for one in unknown if not _may_vanish(one.operator, file.opset)]
        if not unknown:
            raise
        raise _refused(path, unknown, file, kept_in_float, [str(error)]) from error
    arithmetic = Float32() if in_float else Arithmetic()
    joined = join_dynamic(clips_of_reals(join_casts(shaped)))
    importer = Importer(joined if in_float else fuse_tables(joined), arithmetic)
    graph = importer.graph(path.stem)
    if importer.faults and not importer.problems:
        raise InputError("\n  ".join(importer.faults))
    if graph is None:
        raise _refused(path, importer.problems, file, kept_in_float, importer.faults)
    if not graph.ops:
        raise InputError("the model computes nothing")
    try:
        checked = check(graph)
    except InvalidGraphError as error:
        raise InputError(f"the model contradicts itself: {error}") from error
    stored = importer.stored.items()
    return checked, {name: place for name, place in stored if place.tensor in checked.tensors}


def _refused(
    path: Path,
    problems: Sequence[Problem],
    file: FileModel,
    kept_in_float: bool | None,
    faults: Sequence[str] = (),
) -> UnsupportedError:
    """`kept_in_float`: of a float model, whether the caller wants it so; None for an int8 model.
    `faults`: what else is wrong with the file, apart from operators that cannot be read.
    """
    if kept_in_float:
        problems = [replace(p, remedy="") if p.remedy == IN_INT8 else p for p in problems]
    error = unsupported(path, problems, len(file.nodes))
    if faults:
        besides = "".join(f"\n  besides, {fault}" for fault in faults)
        error = UnsupportedError(f"{error}{besides}", operator=error.operator)
    if kept_in_float is None or kept_in_float:
        return error
    problem = "this is a float model; quantise it first"
    if _is_dynamic(without_integers(file)):
        problem = (
            "this model's activations are floats; quantise the float model that it was made of"
        )
    problem += f", {_QUANTISE_HINT}"
    return FloatModelError(f"{path.name}: {problem}. Nor can it run in float:\n{error}")


_QUANTISE_HINT = (
    "with inputs like those it will meet: `thimble quantize MODEL.onnx --data FILES -o OUT.onnx`"
)


def _is_float(expanded: FileModel) -> bool:
    """Whether the model's activations are floats: it is not quantised at all, or dynamically."""
    storing = (
        node.operator for node in expanded.nodes if Trait.STORES in operator(node.operator).traits
    )
    ignored = {DEQUANTIZE} if _is_dynamic(expanded) else set()
    return set(storing) <= ignored


def _is_dynamic(expanded: FileModel) -> bool:
    """Whether scales of activations are known only while the model runs."""
    return any(Trait.OF_THE_MOMENT in operator(n.operator).traits for n in expanded.nodes)


def _may_vanish(name: str, opset: int) -> bool:
    """Whether a standard operator becomes a constant or others where the file is sound."""
    row = operator(name)
    return Trait.FOLDED_ONLY in row.traits or (row.unread is None and is_function(name, opset))


def _unknown(model: FileModel) -> list[Problem]:
    """Operators that have no form."""
    problems = []
    for node in model.nodes:
        row = operator(node.operator)
        if not (row.stays or row.integers or row.composed):
            problems.append(Problem(node.operator, node.index, *row.refusal))
    return problems
