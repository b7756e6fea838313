"""Generated C of every shape, for tools that read it: checkers, analysers, other compilers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from tests.host_c.test_banks import two_banks
from tests.support import floats, split_graphs, wide
from tests.support.host import plan_of
from tests.support.states import GRAPHS
from toolchain.boards import HOST, Core
from toolchain.codegen import generate
from toolchain.codegen.library import write_library
from toolchain.ir import About
from toolchain.ir.merged import merged
from toolchain.kernels import cmsis_nn
from toolchain.memory.plan import Plan
from toolchain.ops import forms
from toolchain.ops.check import check
from toolchain.partition import Scheme, split
from toolchain.planner import plan_model
from toolchain.planning.rows import stream_input

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
CORTEX_M4 = Core("cortex-m4", dsp=True, fpu=True)


def plans(core: Core) -> Iterator[tuple[str, Plan]]:
    """Plans by name. For a Cortex-M4: plain, in blocks, with an input by rows, with state, of
    float32, of int16, with branches and loops; for the host: over two banks.
    """
    if core == HOST:
        yield "banks", two_banks()[0]
        return
    digits = plan_model(DIGITS, "netduinoplus2")
    labels = MappingProxyType({digits.graph.outputs[0]: tuple("0123456789")})
    yield "plain", replace(digits, about=About(digits.about.sha256, labels))
    whole = check(split_graphs.inverted_bottleneck(np.random.default_rng(3), 12, 4, 16, 4))
    scheme = Scheme(tuple(op.name for op in whole.ops), (whole.outputs[0], 1), 3)
    yield "blocks", plan_of(check(split(whole, scheme)), core)
    streamed = check(stream_input(whole))
    scheme = Scheme(tuple(op.name for op in streamed.ops), (streamed.outputs[0], 1), 3)
    yield "rows", plan_of(check(split(streamed, scheme)), core)
    yield "state", plan_of(check(GRAPHS["delay line"]), core)
    yield "floats", plan_of(check(floats.mixed()), core)
    yield "wide", plan_of(check(wide.network()), core)
    rng = np.random.default_rng(1)
    held = [forms()[kind].sample(rng) for kind in ("branch", "while_loop")]
    yield "control", plan_of(check(merged(held)), core)


def write_samples(folder: Path, core: Core) -> dict[str, Path]:
    """The library of each plan in a folder of its own, by name."""
    written = {}
    for name, plan in plans(core):
        written[name] = folder / name
        written[name].mkdir(parents=True)
        write_library([generate(plan, core, cmsis_nn.find(), name=name)], written[name])
    return written
