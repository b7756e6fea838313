"""Models to a folder that another build system takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from toolchain.boards import Board
from toolchain.boards import board as find_board
from toolchain.codegen import generate
from toolchain.codegen.names import checked_name, model_identifier
from toolchain.deployment.compile import (
    check_fit_together,
    plans_together,
    step_costs,
    with_library_stacks,
)
from toolchain.deployment.measurements import cost_model
from toolchain.errors import InputError
from toolchain.export import exporter
from toolchain.export.carried import Carried, CarriedModel
from toolchain.files import check_folder, free_name, replaced_folder
from toolchain.kernels import cmsis_nn
from toolchain.memory.firmware_size import check_fit
from toolchain.memory.plan import Plan
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions
from toolchain.progress import Report, silent

_KERNEL_PREFIXES = ("thimble_", "arm_")
SHARED_PACKAGE = "thimble_models"
"""The name of a package of several models that was given none."""


@dataclass(frozen=True)
class Exported:
    """`files`: paths below `folder`, with slashes. `board`: the one that it was planned for."""

    target: str
    folder: Path
    files: tuple[str, ...]
    models: tuple[CarriedModel, ...]
    board: Board


def export_models(  # noqa: PLR0913 - the public interface: a keyword each
    models: Sequence[str | Path],
    target: str,
    out: str | Path,
    board: str = "",
    options: PlanOptions | None = None,
    cmsis_nn_folder: Path | None = None,
    report: Report = silent,
    *,
    name: str = "",
    share_arena: bool = False,
    kernels_from: str | Path | None = None,
    force: bool = False,
) -> Exported:
    """Plan models for a board (or chip, or part number; default: the target's) and write them as a
    package for `target` into the folder `out`, completely or not at all.

    Kernels are in it once, however many models call them. `name` names the package, and the model
    where there is only one. With `share_arena` the models run one at a time in one arena.
    `kernels_from`: another export of the same program, whose kernels this one leaves out. Raises
    what `compile_library` raises, and InputError for a target that is not known, and where that
    other export holds another version of a kernel.
    """
    wanted = exporter(target)
    folder, inputs = Path(out), [Path(model) for model in models]
    if not inputs:
        raise InputError("no model to export")
    if share_arena and len(inputs) < 2:
        raise InputError("one model has its arena alone: leave out --share-arena")
    preprocess = None if options is None else options.preprocess
    if preprocess is not None and len(inputs) > 1:
        raise InputError("--preprocess is for one model: export the others by themselves")
    if name:
        checked_name(name)
    theirs = {} if kernels_from is None else _kernels_in(Path(kernels_from), folder)
    check_folder(folder, force=force, inputs=inputs)
    on = find_board(board or wanted.board)
    plans = _plans(inputs, on, options or PlanOptions(), share_arena, report)
    root = cmsis_nn.find(cmsis_nn_folder, report=report)
    report("generating C")
    made: list[CarriedModel] = []
    for plan in plans:
        taken = {model.name.lower() for model in made}
        identifier = name if len(plans) == 1 and name else model_identifier(plan.graph.name)
        identifier = free_name(identifier, taken)
        sources = generate(
            plan, on.core, root, name=identifier, costs=step_costs(plan), preprocess=preprocess
        )
        made.append(CarriedModel(plan, sources))
    stacked = with_library_stacks([model.sources for model in made], on, root)
    made = [replace(model, sources=one) for model, one in zip(made, stacked, strict=True)]
    package = name or (made[0].name if len(made) == 1 else SHARED_PACKAGE)
    carried = Carried(package, tuple(made), on, root, share_arena)
    files = wanted.files(carried)
    if theirs:
        carried = replace(carried, elsewhere=_shared(carried, files, theirs))
        files = wanted.files(carried)
    with replaced_folder(folder, force=force, inputs=inputs) as fresh:
        for path, content in files.items():
            file = fresh / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                file.write_bytes(content)
            else:
                file.write_text(content, encoding="utf-8", newline="\n")
    return Exported(wanted.name, folder, tuple(sorted(files)), carried.models, on)


def _kernels_in(other: Path, folder: Path) -> Mapping[str, Path]:
    """The kernels' files of the export in `other`, by name. Raises InputError for a folder without
    any, and for the one that is to be written."""
    if other.resolve() == folder.resolve():
        raise InputError(f"--kernels-from {other} is the folder that is to be written")
    found = {p.name: p for p in sorted(other.rglob("*.c")) if p.name.startswith(_KERNEL_PREFIXES)}
    if not found:
        raise InputError(f"--kernels-from {other} holds no kernels: name the folder of an export")
    return found


def _shared(
    carried: Carried, files: Mapping[str, str | bytes], theirs: Mapping[str, Path]
) -> frozenset[str]:
    """The kernels of a package that another one holds, too. Raises InputError where they differ."""
    shared = set()
    for path, text in files.items():
        name = PurePosixPath(path).name
        if name not in carried.kernels or name not in theirs:
            continue
        if theirs[name].read_bytes() != (text.encode() if isinstance(text, str) else text):
            raise InputError(
                f"{theirs[name]} is another version of this kernel, or for another build system: "
                "export both packages anew, for one target"
            )
        shared.add(name)
    return frozenset(shared)


def _plans(
    models: Sequence[Path], on: Board, options: PlanOptions, share_arena: bool, report: Report
) -> list[Plan]:
    if share_arena:
        plans = plans_together(models, on, replace(options, one_bank=True), report)
        if not on.is_host:
            check_fit_together(on, plans)
    else:
        costs = cost_model(on.name)
        plans = [plan_model(model, on.name, options, report, costs) for model in models]
    for plan in plans:
        check_fit(plan)
    return plans
