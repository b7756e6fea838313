"""Firmware of many kernels, of which one runs on request: single-operator models in one arena."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolchain.boards import Board
from toolchain.codegen import generate
from toolchain.cost.key import Key
from toolchain.device.build import BuildOptions, ModelFiles, build_files
from toolchain.device.firmware import Firmware, FirmwareModel, FirmwarePart, OperatorName
from toolchain.errors import DoesNotFitError
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn
from toolchain.memory.firmware_size import firmware_layout
from toolchain.memory.plan import Plan
from toolchain.ops.preference import Preference
from toolchain.planner import plan_graph
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.planning.room import lone_form
from toolchain.resources import RUNTIME_C

BATCH = 64
"""Most kernels in one firmware."""


@dataclass(frozen=True)
class Kernel:
    """One operator as a graph of its own, and the key it is measured under.

    `copies`: sizes in bytes, if it only makes copies. `apart`: its tensors must not share bytes, or
    there would be nothing left to do. `preference`: whose kernel it is. `title`: which, where an
    operator has several forms of one (`ops.kernel.Kernel.title`).
    """

    key: Key
    graph: Graph
    copies: tuple[int, ...] = ()
    apart: bool = False
    preference: Preference = Preference.AUTO
    title: str = ""


def planned_kernels(
    kernels: Sequence[Kernel], target: Board, skipped: list[str]
) -> Iterator[tuple[Kernel, Plan]]:
    """Each kernel that fits the board, and its plan; a line in `skipped` for each that does not."""
    for kernel in kernels:
        options = PlanOptions(one_bank=True, kernels=kernel.preference, optimise=Optimise.SIZE)
        plan = plan_graph(kernel.graph, target, options.unsplit)
        plan = lone_form(plan, kernel.title) if kernel.title else plan
        plan = _apart(plan) if kernel.copies or kernel.apart else plan
        try:
            firmware_layout(target, [plan])
        except DoesNotFitError as error:
            skipped.append(f"{kernel.key.shape}: {error}")
            continue
        yield kernel, plan


def batches_of(
    planned: Iterator[tuple[Kernel, Plan]], target: Board
) -> Iterator[list[tuple[Kernel, Plan]]]:
    """Batches of kernels for one firmware each: as many as fit, BATCH at most."""
    batch: list[tuple[Kernel, Plan]] = []
    for entry in planned:
        try:
            firmware_layout(target, [plan for _, plan in (*batch, entry)])
        except DoesNotFitError:
            yield batch
            batch = []
        batch.append(entry)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def firmware_of(
    batch: Sequence[tuple[Kernel, Plan]], target: Board, root: Path, folder: Path
) -> Firmware:
    """Generate each kernel as a model of its own and link them all."""
    plans = [plan for _, plan in batch]
    made = [generate(plan, target.core, root, name=f"kernel{i}") for i, plan in enumerate(plans)]
    for sources in made:
        for name, text in sources.files.items():
            (folder / name).write_text(text, encoding="utf-8")
    tree = cmsis_nn.tree(root).include.parent
    files = ModelFiles(
        generated=tuple(folder / name for sources in made for name in sources.run_files),
        kernels=_united(RUNTIME_C, [sources.runtime for sources in made]),
        cmsis_nn=_united(tree, [sources.cmsis_nn for sources in made]),
        cmsis_nn_include=tree / "Include",
    )
    model = FirmwareModel(
        name="kernels",
        parts=(FirmwarePart(max(plan.arena.size_bytes for plan in plans)),),
        inputs=(),
        outputs=(),
        operators=(OperatorName("kernel", "any"),),
        kernels=tuple(sources.name for sources in made),
    )
    return build_files(
        target, [model], files, folder, firmware_layout(target, plans), BuildOptions(kernels=True)
    )


def _united(folder: Path, listed: Sequence[Sequence[str]]) -> tuple[Path, ...]:
    return tuple(folder / name for name in sorted({name for names in listed for name in names}))


def _apart(plan: Plan) -> Plan:
    """The plan, with every tensor in bytes of its own, so that nothing is a view."""
    offsets, end = {}, 0
    for name, tensor in plan.graph.tensors.items():
        offsets[name] = end
        end += -(-tensor.size_bytes // 16) * 16
    arena = replace(plan.arena, offsets=offsets, size_bytes=end, lower_bound_bytes=end)
    return replace(plan, arena=arena)
