"""How often the loops of the kernels turn that compute no windows: elementwise, copies, products.

Each function follows one kernel in `runtime_c/source` and takes what its lowering fills in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from toolchain.boards import Core
from toolchain.cost.window_terms import Terms, is_narrow, slow_channels
from toolchain.ir import Graph, Op
from toolchain.ops.matmul.common import matmul_attributes, matmul_depth
from toolchain.ops.matmul.dense_kernels import four_bit_filters
from toolchain.ops.movement.copies import StridedCopy
from toolchain.ops.reduction.common import blocks
from toolchain.ops.spec import Lowering


def runs_of_four(size: int, times: int = 1, path: str = "") -> Terms:
    """Of a loop over four elements at a time and one over the rest."""
    return {f"four{path}": times * (size // 4), f"rest{path}": times * (size % 4)}


def unary_terms(op: Op, graph: Graph, core: Core, lowering: Lowering) -> Terms:
    """`thimble_lookup_s8` and `thimble_rescale_s8`."""
    fields = lowering.fields
    if fields["kernel"] == "rescale" and (fields["min"], fields["max"]) != (-128, 127):
        return {"call": 1.0, "clamped": fields["size"]}
    return {"call": 1.0, **runs_of_four(fields["size"])}


def binary_terms(op: Op, graph: Graph, core: Core, lowering: Lowering) -> Terms:
    """Two operands, broadcast: a call for each run that both walk."""
    shape, params = lowering.fields["shape"], lowering.fields.get("params", {})
    calls = math.prod(loop.count for loop in shape.loops)
    terms: Terms = {"call": 1.0, "run": calls}
    dense = shape.step_1 == 1 and shape.step_2 == 1
    if not dense or "negative_bias" not in params:
        return terms | {"element": calls * shape.size}
    if core.mve:
        return terms | {"vector": calls * -(-shape.size // 4)}
    if (params["min"], params["max"]) != (-128, 127):
        return terms | {"element": calls * shape.size}
    one_bias = params["negative_bias"] == 0 and params.get("rounding", 0) == 0
    return terms | runs_of_four(shape.size, calls, " of one bias" if one_bias else "")


def move_terms(run: StridedCopy, core: Core) -> Terms:
    """`thimble_move`, of words where both ends are aligned."""
    size = run.run_bytes
    if core.mve:
        return {"call": 1.0, "block": size // 32, "vector": -(-(size % 32) // 16)}
    aligned = run.source_offset % 4 == 0 and size % 4 == 0
    left = size % 32 if aligned else size
    counts = {"sixteen": left // 16, "word": left % 16 // 4, "byte": left % 4}
    if aligned:
        counts["block"] = size // 32
    return {"call": 1.0, **counts} | {f"any {name}": bool(n) for name, n in counts.items()}


def memcpy_terms(sizes: Sequence[int]) -> Terms:
    """newlib's memcpy of words, once for each size."""
    return {
        "call": 1.0,
        "copy": len(sizes),
        "64 bytes": sum(size // 64 for size in sizes),
        "16 bytes": sum(size % 64 // 16 for size in sizes),
        "word": sum(size % 16 // 4 for size in sizes),
        "byte": sum(size % 4 for size in sizes),
    }


def copy_terms(copies: tuple[StridedCopy, ...]) -> Terms:
    """`thimble_copy_nd`, once for each copy."""
    names = ("plain copy", "copy", "turn", "run", "word", "byte", "lone byte")
    terms = {"call": 1.0, **dict.fromkeys(names, 0.0)}
    for copy in copies:
        runs = math.prod(loop.count for loop in copy.loops)
        if not copy.loops:
            terms["plain copy"] += 1
        else:
            terms["copy"] += 1
            terms["turn"] += math.prod(loop.count for loop in copy.loops[:-1])
        if copy.loops and copy.run_bytes == 1:
            terms["lone byte"] += runs
            continue
        terms["run"] += runs if copy.loops else 0
        terms["word"] += runs * (copy.run_bytes // 4)
        terms["byte"] += runs * (copy.run_bytes % 4)
    return terms


def fully_connected_terms(op: Op, graph: Graph, core: Core) -> tuple[str, Terms]:
    """Kernel and terms, by four units at a time."""
    units, depth = graph.input(op, 1).shape
    rows = graph.input(op, 0).elements // depth
    words, blocks = -(-depth // 4), rows * -(-units // 4)
    _, slow = slow_channels(op, graph)
    fours = slow[: units // 4 * 4].reshape(-1, 4)
    slow_units = 4 * rows * int(fours.any(axis=1).sum())
    quick = 0 if is_narrow(op, graph) else rows * (units // 4) - slow_units // 4
    terms: Terms = {
        "call": 1.0,
        "row": rows,
        "block": blocks,
        "quick block": quick,
        "lone unit": rows * units - 4 * quick - slow_units,
        "slow unit": slow_units,
        "uneven block": blocks * bool(depth % 4),
    }
    if four_bit_filters(op, graph):
        terms["eight taps"] = blocks * -(-depth // 8)
        return "thimble_fully_connected_s4", terms | {"row word": rows * words}
    return "thimble_fully_connected_s8", terms | {"word": blocks * words}


def reduction_terms(op: Op, graph: Graph) -> Terms:
    """Sums over windows of four channels: mean, sum, and parts of them."""
    outer, first, middle, second, inner = blocks(op, graph)
    places, fours, rest = outer * middle, inner // 4, inner % 4
    terms: Terms = {
        "call": 1.0,
        "place": places,
        "four": places * fours,
        "four row": places * fours * first,
        "four tap": places * fours * first * second,
        "lone group": places * bool(rest),
        "lone": places * rest,
        "lone row": places * rest * first,
        "lone tap": places * rest * first * second,
    }
    return terms


def matmul_terms(op: Op, graph: Graph) -> Terms:
    """Each column of y is widened once and then meets the rows of x, two at a time where these lie
    element by element."""
    attributes, y = matmul_attributes(op), graph.output(op)
    depth, rows, columns = matmul_depth(op, graph), y.shape[-2], y.shape[-1]
    batches = y.elements // (rows * columns)
    widened, words, rest = batches * columns, depth // 4, depth % 4
    apart = "" if attributes.adjoint_y or columns == 1 else "strided "
    terms: Terms = {
        "call": 1.0,
        "batch": batches,
        "column": widened,
        f"{apart}column word": widened * words,
        "column rest": widened * bool(rest),
    }
    if attributes.adjoint_x and rows > 1:
        return terms | {
            "output": y.elements,
            "strided word": y.elements * words,
            "strided rest": y.elements * bool(rest),
        }
    pairs, single = widened * (rows // 2), widened * (rows % 2)
    return terms | {
        "pair": pairs,
        "pair word": pairs * words,
        "pair rest": pairs * bool(rest),
        "output": single,
        "word": single * words,
        "rest": single * bool(rest),
    }


def partial_fully_connected_terms(op: Op, graph: Graph) -> Terms:
    """`thimble_partial_fully_connected_s8`."""
    units, depth = graph.input(op, 1).shape
    rows = graph.input(op, 0).elements // depth
    blocks = rows * -(-units // 4)
    return {
        "call": 1.0,
        "row": rows,
        "block": blocks,
        "word": blocks * -(-depth // 4),
        "uneven block": blocks * bool(depth % 4),
        "output": rows * units,
        "added": rows * units * adds(op),
    }


def adds(op: Op) -> bool:
    """Whether sums go on from earlier ones."""
    return bool(op.inputs[-1])


def ending_terms(op: Op, graph: Graph, lowering: Lowering) -> Terms:
    """int32 sums that become int8."""
    pixels, elements = lowering.fields["pixels"], graph.output(op).elements
    narrow = is_narrow(op, graph)
    terms: Terms = {"call": 1.0, "pixel": pixels, "narrow pixel": pixels * narrow}
    return terms | {"narrow element": elements * narrow, "element": elements * (not narrow)}


def softmax_terms(op: Op, graph: Graph) -> Terms:
    """Each row is read three times."""
    x = graph.input(op, 0)
    rows = x.elements // x.shape[-1]
    columns = x.shape[-1]
    sixteens = {"sixteen": rows * (columns // 16), "rest": rows * (columns % 16)}
    return {"call": 1.0, "row": rows, "element": x.elements, **sixteens}


def plain_terms(op: Op, graph: Graph, macs: int) -> Terms:
    """Of a kernel that has no formula of its own."""
    elements = sum(graph.tensors[name].elements for name in op.outputs)
    read = sum(
        graph.tensors[name].elements
        for name in op.present_inputs()
        if not graph.tensors[name].is_constant
    )
    return {"call": 1.0, "product": macs, "read element": read, "written element": elements}
