"""Texts of a model's file in generated C, which a strict compiler with trigraphs takes."""

from __future__ import annotations

import itertools
import subprocess
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.support.graphs import dense_chain
from tests.support.host import plan_of
from tests.support.states import GRAPHS
from toolchain.boards import HOST
from toolchain.codegen import generate
from toolchain.codegen.library import write_library
from toolchain.files.texts import c_string
from toolchain.ir import About, Graph
from toolchain.kernels import cmsis_nn, runtime_c
from toolchain.ops.check import check

STRICT = ("-std=c99", "-pedantic", "-fsyntax-only", "-Wall", "-Wextra", "-Wtrigraphs", "-Wcomment")
STRICT += ("-Wbidi-chars=any", "-Wno-overlength-strings", "-Werror")
NAMES = (
    *("??/", "???/", "????/", "a??/b??'c??=", "?" * 70 + "/", "?*/?"),
    *("*/", "/*", "//", "/*/", "*/*", "***/", "*", "/", "/" * 70 + "*"),
    *("\\", "*\\", "\\\n", "line\\\r\n#error no", "\\\\\\", "\\" * 90),
    *("\u202e*/ \u2066", "\u2028#error\u2029", "\ufeff\u200b", "\x00\x1b[2J\x7f", "\ud83d", "π"),
    *('"', '"; #error "', "%s%n", "'", "??", "a;" * 80 + "b??/"),
)


def renamed(graph: Graph, name: str) -> Graph:
    """Its tensors and operators under names that end in `name`, so that lines of comments do."""
    new = {old: f"{number}{name}" for number, old in enumerate(graph.tensors)} | {"": ""}
    tensors = [replace(tensor, name=new[old]) for old, tensor in graph.tensors.items()]
    ops = [
        replace(
            op,
            name=f"op{number}{name}",
            inputs=tuple(new[one] for one in op.inputs),
            outputs=tuple(new[one] for one in op.outputs),
        )
        for number, op in enumerate(graph.ops)
    ]
    ends = [[new[one] for one in side] for side in (graph.inputs, graph.outputs)]
    states = tuple(
        replace(state, input=new[state.input], output=new[state.output]) for state in graph.states
    )
    return check(replace(Graph.build(name or "x", tensors, ops, *ends), states=states))


def test_every_name_leaves_strict_c99(tmp_path: Path) -> None:
    kernels = cmsis_nn.find()
    whole = []
    for number, name in enumerate(NAMES):
        shape = dense_chain("x", (5, 4), number) if number % 4 else GRAPHS["delay line"]
        graph = renamed(shape, name)
        plan = plan_of(graph)
        size = graph.tensors[graph.outputs[0]].shape[-1]
        labels = tuple(itertools.islice(itertools.cycle(NAMES[number:] + NAMES), size))
        plan = replace(plan, about=About("00" * 32, MappingProxyType({graph.outputs[0]: labels})))
        sources = generate(plan, HOST, kernels, name=f"m{number}")
        write_library([sources], tmp_path / sources.name)
        whole += sorted((tmp_path / sources.name).glob("*.[ch]"))
    assert len(whole) > 3 * len(NAMES)
    for file in whole:
        text = file.read_text(encoding="utf-8")
        assert text.isascii() and text.replace("\n", "").isprintable(), file
    sources = [str(file) for file in whole if file.suffix == ".c"]
    include = [f"-I{file.parent}" for file in whole] + [f"-I{p}" for p in runtime_c.KERNEL_INCLUDES]
    command = ["gcc", *STRICT, *dict.fromkeys(include), "-isystem", f"{kernels}/Include", *sources]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stderr[:4000]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_string_in_c_is_the_name_it_stands_for(name: str, tmp_path: Path) -> None:
    if "\0" in name:
        return
    source = tmp_path / "s.c"
    source.write_text(
        f"#include <stdio.h>\nint main(void) {{ return puts({c_string(name)}) < 0; }}\n"
    )
    program = tmp_path / "s"
    subprocess.run(["gcc", "-std=c99", "-O0", "-Werror", source, "-o", program], check=True)
    said = subprocess.run([program], capture_output=True, check=True).stdout
    assert said == name.encode("utf-8", "surrogatepass") + b"\n"
