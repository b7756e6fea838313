"""`runtime_c/include` has what generated C calls, and that alone; the rest lies beside kernels."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import toolchain
from toolchain.boards import HOST
from toolchain.codegen.generate import INFO_HEADER
from toolchain.errors import UnsupportedError
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.kernels import runtime_c
from toolchain.kernels.c_sources import source_closure
from toolchain.ops import forms, kernel_of
from toolchain.ops.unary.quantize import Quantize
from toolchain.resources import RUNTIME_C, TEMPLATES

SAMPLES = 8
CONVERTED = (DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT16, DType.INT32)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_DECLARED = re.compile(r"^\w[\w \n*]*?\b(thimble_\w+)\([^;{}]*\)\s*[;{]", re.MULTILINE)
_INCLUDED = re.compile(r'^#include "(thimble_\w+\.h)"', re.MULTILINE)
_WORD = re.compile(r"\bthimble_\w+")


def code(path: Path) -> str:
    return _COMMENT.sub("", path.read_text(encoding="utf-8"))


def public() -> tuple[Path, ...]:
    return runtime_c.tree().headers()


def support() -> tuple[Path, ...]:
    return runtime_c.tree().support()


def graphs() -> Iterator[Graph]:
    for form in forms().values():
        rng = np.random.default_rng(11)
        yield from (form.sample(rng) for _ in range(SAMPLES))
    q = Quantisation((0.5,), (0,))
    for source, target, even in product(CONVERTED, CONVERTED[1:], (False, True)):
        if (source, target) == (DType.FLOAT32, DType.INT32):
            continue  # no format has it
        x = Tensor("x", (4,), source, None if source is DType.FLOAT32 else q)
        op = Op("quantize", "quantize", ("x",), ("y",), Quantize(target, halves_to_even=even))
        yield Graph.build("pair", [x, Tensor("y", (4,), target, q)], [op], ["x"], ["y"])


@cache
def called() -> frozenset[str]:
    """Functions of ours that kernels call in samples of every kind."""
    found: set[str] = set()
    for graph in graphs():
        for op in graph.ops:
            try:
                found.update(kernel_of(op, graph, HOST).functions)
            except UnsupportedError:
                continue
    return frozenset(name for name in found if name.startswith("thimble_"))


@cache
def named() -> frozenset[str]:
    """Functions that samples seldom or never reach: whole strings in `toolchain/ops`, or words of a
    template."""
    found: set[str] = set()
    for path in (Path(toolchain.__file__).parent / "ops").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    for path in (TEMPLATES / "ops").glob("*.j2"):
        found.update(_WORD.findall(path.read_text(encoding="utf-8")))
    return frozenset(found)


@cache
def composed() -> tuple[re.Pattern[str], ...]:
    """The f-strings in `toolchain/ops` that begin as our functions do."""
    found = []
    for path in (Path(toolchain.__file__).parent / "ops").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr) and "thimble_" in ast.unparse(node.values[0]):
                parts = (
                    re.escape(str(part.value)) if isinstance(part, ast.Constant) else r"\w+"
                    for part in node.values
                )
                found.append(re.compile("".join(parts)))
    return tuple(found)


@pytest.mark.slow
def test_a_public_header_declares_only_what_generated_c_can_call() -> None:
    declared = {name: path.name for path in public() for name in _DECLARED.findall(code(path))}
    assert len(declared) > 100
    inner = {
        name: header
        for name, header in declared.items()
        if header != INFO_HEADER  # which callers of the generated C call
        and name not in called() | named()
        and not any(p.fullmatch(name) for p in composed())
    }
    assert not inner, "move these beside their family, or to runtime_c/source/support"


def test_what_generated_c_calls_is_declared_in_a_public_header() -> None:
    assert len(called()) > 90
    for name in called():
        (header,) = source_closure([name], [runtime_c.tree()]).headers
        assert (runtime_c.INCLUDE / header).is_file()


def test_public_headers_and_templates_include_no_support_header() -> None:
    """Nor could they: generated C is compiled without the folder of support headers."""
    names = {path.name for path in support()}
    for path in (*public(), *TEMPLATES.rglob("*.j2")):
        assert not names & set(_INCLUDED.findall(path.read_text(encoding="utf-8"))), path


def test_a_header_lies_beside_its_family_unless_several_include_it() -> None:
    families: dict[str, set[str]] = {path.name: set() for path in support()}
    for path in (RUNTIME_C / "source").rglob("*.[ch]"):
        for name in _INCLUDED.findall(path.read_text(encoding="utf-8")):
            if name in families:
                families[name].add(path.parent.name)
    for path in support():
        shared = families[path.name] - {"support"}
        if path.parent.name == "support":
            assert len(shared) > 1, f"{path.name} is for {shared} alone"
        else:
            assert shared == {path.parent.name}, path.name


def test_no_two_headers_have_one_name() -> None:
    """A library has all of them in one folder."""
    (most,) = Counter(path.name for path in (*public(), *support())).most_common(1)
    assert most[1] == 1, most[0]
