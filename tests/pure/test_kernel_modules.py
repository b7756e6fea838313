"""A C function has one module, which alone knows its name, and is named after it or one like it."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import toolchain
from toolchain.kernels import c_sources, cmsis_nn, runtime_c
from toolchain.ops import forms, kernel_of
from toolchain.ops.convolution.kernels.cmsis_nn import arm_depthwise_conv_s8_opt
from toolchain.ops.preference import Preference
from toolchain.report.kinds import CORES

ROOT = Path(toolchain.__file__).parent
C_NAME = re.compile(r"(thimble|arm)_\w+")
ASKED = ("startswith", "endswith", "removeprefix", "removesuffix")
PREFIX = re.compile(r"(thimble|arm)_\w*")


def _functions(module: ModuleType) -> tuple[str, ...]:
    """The functions of a kernel module: one, or several that compute the same thing."""
    several = getattr(module, "FUNCTIONS", None)
    if several is None:
        return (module.FUNCTION,)
    return tuple(dict.fromkeys(several.values() if isinstance(several, Mapping) else several))


@cache
def _modules() -> dict[str, ModuleType]:
    """Modules in folders `kernels` of families that are named as C functions, by these names."""
    walked = pkgutil.walk_packages([str(ROOT / "ops")], "toolchain.ops.")
    names = [module.name for module in walked if ".kernels." in module.name]
    stems = {name: name.rpartition(".")[2] for name in names}
    return {s: importlib.import_module(n) for n, s in stems.items() if C_NAME.fullmatch(s)}


@cache
def kernel_modules() -> dict[str, str]:
    """The module of each function that one declares."""
    return {f: module.__name__ for module in _modules().values() for f in _functions(module)}


@pytest.mark.parametrize("function", sorted(kernel_modules()))
def test_a_kernel_module_is_named_as_its_first_function_and_makes_kernels_of_all(
    function: str,
) -> None:
    module = importlib.import_module(kernel_modules()[function])
    theirs = cmsis_nn.is_named(function)
    tree = cmsis_nn.tree(cmsis_nn.find()) if theirs else runtime_c.tree()
    stem, folder = module.__name__.split(".")[:-3:-1]
    assert stem == _functions(module)[0] and callable(module.kernel)
    assert folder == ("cmsis_nn" if theirs else "kernels")
    assert c_sources.defines(tree, function)
    assert [other for other in _modules().values() if function in _functions(other)] == [module]


def test_families_with_kernel_modules_call_no_function_without_one() -> None:
    """Convolutions, products and pools, of the samples of their kinds on every core."""
    families = {name.split(".")[2] for name in kernel_modules().values()}
    kinds = {path.stem for family in families for path in (ROOT / "ops" / family).glob("*.py")} - {
        "conv3d"
    }
    called = set()
    for spec in forms().values():
        if spec.kind not in kinds:
            continue
        for seed in range(2):
            graph = spec.sample(np.random.default_rng(seed))
            for core in CORES:
                for preference in Preference:
                    kernel = kernel_of(graph.ops[0], graph, core, preference)
                    called |= {f for one in kernel.forms() for f in one.functions}
    assert {"thimble_convolve_s8", "arm_max_pool_s16", "thimble_batch_matmul_f32"} <= called
    hybrid = {name for name in called if "_hybrid_" in name}  # theirs are in ops/hybrid
    assert sorted(called - hybrid - set(kernel_modules())) == []


def _compared(tree: ast.Module) -> Iterator[tuple[ast.Compare | ast.Call, ast.expr]]:
    """Operands of comparisons, and what strings are asked to begin or end with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for operand in (node.left, *node.comparators):
                yield node, operand
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ASKED:
            for operand in node.args:
                yield node, operand


def _texts(operand: ast.expr, module: ModuleType) -> Iterator[str]:
    """The strings that an operand of a comparison is, or holds: literals, and constants by name."""
    for node in ast.walk(operand):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Name):
            value = getattr(module, node.id, None)
            values = value if isinstance(value, tuple | list | set | frozenset | dict) else (value,)
            yield from (one for one in values if isinstance(one, str))


def _named(tree: ast.Module) -> set[str]:
    """The strings of a file outside of its comparisons."""
    compared = {id(node) for where, _ in _compared(tree) for node in ast.walk(where)}
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in compared
    }


def _strangers(path: Path) -> Iterator[str]:
    """Names of C functions that a file compares although they are not its own."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = path.read_text(encoding="utf-8")
    if not re.search(r"thimble_|arm_|\.function", text):
        return
    tree = ast.parse(text)
    own, module = _named(tree), importlib.import_module(name)
    for node, operand in _compared(tree):
        for named in filter(PREFIX.fullmatch, _texts(operand, module)):
            home = kernel_modules().get(named)
            if named not in own if home is None else home != name:
                yield f"{path.relative_to(ROOT.parent)}:{node.lineno} compares {named}"


ALLOWED = {
    "toolchain/export/targets/zephyr.py": "a prefix of the names of options",
    "toolchain/kernels/cmsis_nn.py": "tells CMSIS-NN's functions",
}


def test_no_name_of_a_c_function_is_compared_outside_its_module() -> None:
    files = sorted(ROOT.rglob("*.py"))
    found = [
        text
        for path in files
        if path.name != "__main__.py" and str(path.relative_to(ROOT.parent)) not in ALLOWED
        for text in _strangers(path)
    ]
    assert found == []


def test_a_compared_name_is_found(tmp_path: Path) -> None:
    """The search sees literals, prefixes, and constants of another module."""
    for text in (
        'found = call.function == "thimble_convolve_s8"',
        'found = call.function.startswith("thimble_convolve_")',
        'found = call.function in ("memset", "arm_convolve_s8")',
    ):
        tree = ast.parse(text)
        texts = [t for _, operand in _compared(tree) for t in _texts(operand, toolchain)]
        assert any(PREFIX.fullmatch(one) for one in texts), text


def test_what_c_and_python_share_is_read_from_c() -> None:
    assert runtime_c.defined("include/thimble_requant.h", "THIMBLE_SHIFT_FLOAT") == -1
    with pytest.raises(KeyError, match="defines no integer THIMBLE_SHIFT"):
        runtime_c.defined("include/thimble_requant.h", "THIMBLE_SHIFT")


def test_blocks_of_channels_are_as_cmsis_nn_has_them() -> None:
    """CMSIS-NN is not there when Python starts: its number stands in Python, too."""
    headers = cmsis_nn.tree(cmsis_nn.find()).headers()
    text = next(path for path in headers if path.name == "arm_nnsupportfunctions.h").read_text()
    found = re.search(r"#define CH_IN_BLOCK_MVE \(?(\d+)\)?", text)
    assert found and int(found[1]) == arm_depthwise_conv_s8_opt.CHANNELS_AT_ONCE
