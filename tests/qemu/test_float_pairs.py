"""Float32 kinds of two operands, every special value with every other, as a Cortex-M computes them.

The compiler's own code for float and double, and newlib's, take the place of those of the host; the
bits are those of NumPy, and so of LiteRT (`host_c/test_float_pairs.py`).
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.qemu.test_operators import QUICK
from tests.support.pairs import FLOAT_PAIRS, SPECIALS, all_attributes, equal_bits, pair
from toolchain.boards import board
from toolchain.codegen import generate
from toolchain.device.build import build
from toolchain.device.session import open_board
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.kernels import cmsis_nn
from toolchain.ops import forms
from toolchain.ops.elementwise.integers import Pow
from toolchain.ops.interpret import interpret
from toolchain.planner import plan_graph

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
EXPONENTS = (-0.0, 1.0, 3.0, 127.0, 2.0**24, 2.5, -1.0)


def every_kind() -> Graph:
    """All kinds on the same 'a' and 'b'; powers of 'a' by one exponent each."""
    many = len(SPECIALS) ** 2
    ends = [Tensor(name, (many,), DType.FLOAT32) for name in "ab"]
    tensors, ops = list(ends), []
    for kind in FLOAT_PAIRS:
        spec = forms()[kind]
        attributes = next(iter(all_attributes(spec)))
        graph = pair(spec, attributes, (many,), (many,))
        tensors.append(replace(graph.output(graph.ops[0]), name=kind))
        ops.append(replace(graph.ops[0], name=kind, outputs=(kind,)))
    for number, exponent in enumerate(EXPONENTS):
        data = np.full(1, exponent, np.float32)
        tensors.append(Tensor(f"by{number}", (1,), DType.FLOAT32, None, data))
        tensors.append(Tensor(f"power{number}", (many,), DType.FLOAT32))
        names = ("a", f"by{number}"), (f"power{number}",)
        ops.append(Op("pow", f"power{number}", *names, Pow(multiplied=True)))
    return Graph.build(
        "pairs", tensors, ops, ["a", "b"], [name for op in ops for name in op.outputs]
    )


def test_pairs_of_specials_give_the_same_bits(tmp_path: Path) -> None:
    graph, target = every_kind(), board("mps2-an500")
    plan = plan_graph(graph, target, QUICK)
    sources = generate(plan, target.core, cmsis_nn.find(), name="pairs")
    firmware = build([(plan, sources)], target, tmp_path)
    rows, columns = np.meshgrid(SPECIALS, SPECIALS, indexing="ij")
    inputs = (rows.reshape(-1), columns.reshape(-1))
    with np.errstate(all="ignore"):
        wanted = interpret(graph, inputs)
    with open_board(firmware) as session:
        outputs = session.run(inputs).outputs
    for name, want in zip(graph.outputs, wanted, strict=True):
        wrong = np.flatnonzero(~equal_bits(outputs[name], want))
        told = [(inputs[0][at], inputs[1][at], outputs[name][at], want[at]) for at in wrong[:3]]
        assert not told, (name, told)
