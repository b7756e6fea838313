"""From a model file to a folder with firmware, or with C sources for another project."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from toolchain.boards import Board, naming
from toolchain.boards import board as find_board
from toolchain.codegen import Costs, generate
from toolchain.codegen.library import write_library
from toolchain.codegen.names import checked_name, model_identifier
from toolchain.codegen.stack import with_stack
from toolchain.cost.key import Build
from toolchain.deployment.folder import KEYS_FILE, PLAN_FILE, PREPROCESS
from toolchain.deployment.measurements import cost_model, current_build
from toolchain.deployment.weights import (
    external_options,
    external_plan,
    intel_hex,
    placed,
    save_layout,
)
from toolchain.device import host
from toolchain.device.build import (
    BuildOptions,
    build,
    firmware_stacks,
    library_stacks,
    stack_to_reserve,
)
from toolchain.device.firmware import Firmware, Sizes
from toolchain.device.stand_in import library_of
from toolchain.errors import DoesNotFitError, Overflow
from toolchain.files import check_folder, free_name, replaced_folder, scratch_folder
from toolchain.files.notebook import Card, Told
from toolchain.ir import External, Sources, StackNeed
from toolchain.kernels import cmsis_nn
from toolchain.memory.firmware_size import (
    MemoryNeed,
    check_fit,
    estimated_need,
    firmware_layout,
    larger_board,
    shared_arena,
)
from toolchain.memory.plan import Plan
from toolchain.planner import plan_model
from toolchain.planning.copies import with_linked_code
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.preprocess.option import Preprocess, preprocess_json
from toolchain.progress import Report, silent
from toolchain.quantise.float_use import float_json
from toolchain.report.latency import Latency, kernel_keys, predict_latency
from toolchain.report.plan import plan_json


@dataclass(frozen=True, repr=False)
class Compiled(Told):
    """A model compiled into `folder`. `sizes` is None on the host, where nothing is counted."""

    plan: Plan
    sources: Sources
    folder: Path
    sizes: Sizes | None

    def card(self) -> Card:
        """The plan's, with the folder, and RAM and flash as linked."""
        card, sizes = self.plan.card(), self.sizes
        linked = (
            ()
            if sizes is None
            else (
                ("RAM", f"{sizes.ram_bytes:,} B as linked"),
                ("flash", f"{sizes.flash_bytes:,} B as linked"),
            )
        )
        facts = (*card.facts, *linked, ("folder", str(self.folder)))
        return replace(card, kind="Compiled", facts=facts)


def compile_model(
    model: str | Path,
    board: str,
    out: str | Path = "build",
    options: PlanOptions | None = None,
    cmsis_nn_folder: Path | None = None,
    report: Report = silent,
    *,
    force: bool = False,
    name: str = "",
    external: External | None = None,
) -> Compiled:
    """Plan `model`, generate its C, build firmware for `board` into the folder `out`.

    `out` is written completely or not at all. An earlier result there is replaced, and other files
    are never touched: a folder with added or changed files is refused, or with `force` keeps the
    added ones. `name` is the model's in C, by default made from its file's. `external`: its weights
    lie in a blob outside of the code. Raises InputError,
    UnsupportedError, DoesNotFitError, MissingToolError.
    """
    target = find_board(board)
    target.check_firmware()
    with _generated(
        model, target, Path(out), options, cmsis_nn_folder, report, force, name, external
    ) as (
        made,
        fresh,
    ):
        if target.is_host:
            report("compiling")
            host.build([host.HostModel(made.sources, made.plan.graph)], made.cmsis_nn, fresh)
            return made.compiled()
        firmware, stacks = _built([(made.plan, made.sources)], target, fresh, made.cmsis_nn, report)
        _check_flash(firmware.sizes, made.plan, options)
        plan = with_linked_code(made.plan, firmware.sizes.code_copy_bytes)
        (sources,) = _with_stacks([made.sources], stacks, fresh)
        return replace(made, plan=plan, sources=sources).compiled(firmware.sizes)


def _built(
    pairs: Sequence[tuple[Plan, Sources]],
    target: Board,
    folder: Path,
    cmsis_nn_folder: Path,
    report: Report,
) -> tuple[Firmware, tuple[StackNeed, ...]]:
    """Firmware, and the stack of each of its models; linked again with a larger stack where the
    bound of a model, beside the firmware's own frames, exceeds the usual one."""

    def made(options: BuildOptions) -> tuple[Firmware, tuple[StackNeed, ...]]:
        firmware = build(
            pairs, target, folder, options, cmsis_nn_folder=cmsis_nn_folder, report=report
        )
        return firmware, firmware_stacks(firmware)

    usual = BuildOptions()
    firmware, stacks = made(usual)
    wanted = stack_to_reserve(stacks)
    if wanted <= usual.stack_bytes:
        return firmware, stacks
    report(f"linking with {wanted:,} bytes of stack")
    return made(replace(usual, stack_bytes=wanted))


def _with_stacks(
    models: Sequence[Sources], stacks: Sequence[StackNeed], folder: Path
) -> list[Sources]:
    """The models with what their functions take of the stack, their headers in `folder` too; as
    they are where that is not known."""
    if not stacks:
        return list(models)
    made = [with_stack(*pair) for pair in zip(models, stacks, strict=True)]
    for sources in made:
        header = f"{sources.name}.h"
        (folder / header).write_text(sources.files[header], encoding="utf-8")
    return made


def with_library_stacks(
    models: Sequence[Sources], target: Board, cmsis_nn_folder: Path
) -> list[Sources]:
    """The models of a library, with their stack where a compiler for the core is installed."""
    with scratch_folder() as folder:
        stacks = library_stacks(models, target, folder, cmsis_nn_folder)
    if not stacks:
        return list(models)
    return [with_stack(*pair) for pair in zip(models, stacks, strict=True)]


def _check_flash(sizes: Sizes, plan: Plan, options: PlanOptions | None) -> None:
    """Whether the linked firmware takes no more than was asked for: code was estimated before."""
    most = None if options is None else options.flash_bytes
    if most is not None and sizes.flash_bytes > most:
        excess = sizes.flash_bytes - most
        raise DoesNotFitError(
            f"{plan.graph.name} takes {sizes.flash_bytes:,} bytes of flash as linked, {excess:,} "
            f"more than --flash {most:,}: its code was estimated to be smaller.",
            remedies=[f"--flash {most - excess}", "--optimise size"],
            overflows=[Overflow("flash", sizes.flash_bytes, most, is_flash=True)],
        )


@dataclass(frozen=True)
class SharedCompiled:
    """Models that run one at a time in one arena. Each has a folder of its own in `folder`.

    `sizes` are those of the firmware that contains them all; None on the host and for a library.
    """

    models: tuple[Compiled, ...]
    folder: Path
    sizes: Sizes | None

    @property
    def arena_bytes(self) -> int:
        return shared_arena([compiled.plan for compiled in self.models]).size_bytes


def compile_shared(
    models: Sequence[str | Path],
    board: str,
    out: str | Path = "build",
    options: PlanOptions | None = None,
    cmsis_nn_folder: Path | None = None,
    report: Report = silent,
    *,
    library: bool = False,
    force: bool = False,
) -> SharedCompiled:
    """As `compile_model` (or `compile_library`), for several models that share one arena.

    `out` gets one firmware, and for each model a folder that can be run, profiled and deployed by
    itself; the board is told which of its models is meant. Raises what `compile_model` raises.
    """
    target, folder = find_board(board), Path(out)
    if library:
        options = replace(options or PlanOptions(), one_bank=True)
    else:
        target.check_firmware()
    inputs = [Path(model) for model in models]
    check_folder(folder, force=force, inputs=inputs)
    root = cmsis_nn.find(cmsis_nn_folder, report=report)
    pairs: list[tuple[Plan, Sources]] = []
    for plan in plans_together(models, target, options or PlanOptions(), report):
        check_fit(plan)
        taken = {sources.name.lower() for _, sources in pairs}
        name = free_name(model_identifier(plan.graph.name), taken)
        sources = generate(plan, target.core, root, name=name, costs=step_costs(plan))
        pairs.append((plan, sources))
    if not target.is_host:
        check_fit_together(target, [plan for plan, _ in pairs])
    plans, made_of = [plan for plan, _ in pairs], [sources for _, sources in pairs]
    with replaced_folder(folder, force=force, inputs=inputs) as fresh:
        sizes, firmware = None, None
        if library:
            made_of = with_library_stacks(made_of, target, root)
            write_library(made_of, fresh)
        elif not target.is_host:
            firmware, stacks = _built(pairs, target, fresh, root, report)
            sizes = firmware.sizes
            made_of = _with_stacks(made_of, stacks, fresh)
        done = []
        for index, (plan, sources) in enumerate(zip(plans, made_of, strict=True)):
            inside = fresh / sources.name
            inside.mkdir(exist_ok=True)
            if firmware is not None:
                replace(firmware, index=index).save_model(inside)
            elif not library:
                report("compiling", index, len(pairs))
                host.build([host.HostModel(sources, plan.graph)], root, inside)
            made = _Generated(plan, sources, root, folder / sources.name, inside)
            done.append(made.compiled(sizes))
        shared = {**naming(target.name), "models": [sources.name for _, sources in pairs]}
        (fresh / PLAN_FILE).write_text(json.dumps(shared, indent=1) + "\n", encoding="utf-8")
    return SharedCompiled(tuple(done), folder, sizes)


def plans_together(
    models: Sequence[str | Path], target: Board, options: PlanOptions, report: Report
) -> list[Plan]:
    """The plans of models that share an arena. A model stays unsplit if splitting it saves nothing
    of the arena, because another model needs as much, unless time alone counts. If the flash has no
    room for the quicker kernels of all models, none has any. Their constants stay in flash.
    """
    options = replace(options, copy_constants=False)
    costs = cost_model(target.name)
    plans = [plan_model(model, target.name, options, report, costs) for model in models]
    left = options.flash_of(target) - sum(estimated_need(plan).flash_bytes for plan in plans)
    if left < 0 and any(plan.spent.operators for plan in plans) and not target.is_host:
        options = replace(options, optimise=Optimise.SIZE)  # together they would spend it twice
        plans = [plan_model(model, target.name, options, report, costs) for model in models]
    most_bytes = max(plan.arena.size_bytes for plan in plans)
    return [
        plan_model(model, target.name, options.unsplit, report, costs)
        if options.splits_nearly_free
        and options.optimise is not Optimise.SPEED
        and 0 < plan.unsplit_bytes <= most_bytes
        and not (plan.graph.states or plan.arena.parts)
        else plan
        for model, plan in zip(models, plans, strict=True)
    ]


def check_fit_together(target: Board, plans: Sequence[Plan]) -> None:
    """Check models in one firmware, with one arena. Raises DoesNotFitError where they need too
    much."""
    try:
        firmware_layout(target, plans)
    except DoesNotFitError as error:
        names = ", ".join(plan.graph.name for plan in plans)
        raise DoesNotFitError(
            f"{names} do not fit {target.name} together: {error.message}.",
            remedies=[
                "fewer models in one firmware",
                *(larger_board(lack) for lack in error.overflows),
            ],
            overflows=error.overflows,
        ) from error


def compile_library(
    model: str | Path,
    board: str,
    out: str | Path = "build",
    options: PlanOptions | None = None,
    cmsis_nn_folder: Path | None = None,
    report: Report = silent,
    *,
    force: bool = False,
    name: str = "",
    external: External | None = None,
) -> Compiled:
    """As `compile_model`, but writes only C sources for another project. Needs no compiler."""
    target = find_board(board)
    with _generated(
        model, target, Path(out), options, cmsis_nn_folder, report, force, name, external
    ) as (
        made,
        fresh,
    ):
        (sources,) = with_library_stacks([made.sources], target, made.cmsis_nn)
        made = replace(made, sources=sources)
        write_library([sources], fresh)
        library = library_of(made.plan, made.sources, target) if target.is_core else None
        if library is not None:
            library.save(fresh)
        return made.compiled()


@dataclass(frozen=True)
class _Generated:
    """A plan and its C, about to be written to `folder`."""

    plan: Plan
    sources: Sources
    cmsis_nn: Path
    folder: Path
    fresh: Path
    preprocess: Preprocess | None = None

    def compiled(self, sizes: Sizes | None = None) -> Compiled:
        """Add `plan.json` and close the work."""
        fields = compiled_json(self.plan, sizes, self.sources.stack)
        if self.preprocess is not None:
            fields[PREPROCESS] = preprocess_json(self.preprocess)
        text = json.dumps(fields, indent=1) + "\n"
        (self.fresh / PLAN_FILE).write_text(text, encoding="utf-8")
        build = current_build(self.cmsis_nn) if sizes is not None else None
        if build is not None:
            text = json.dumps(_kernels_json(self.plan, self.sources, build), indent=1) + "\n"
            (self.fresh / KEYS_FILE).write_text(text, encoding="utf-8")
        return Compiled(self.plan, self.sources, self.folder, sizes)


@contextmanager
def _generated(
    model: str | Path,
    target: Board,
    folder: Path,
    options: PlanOptions | None,
    cmsis_nn_folder: Path | None,
    report: Report,
    force: bool,
    name: str,
    external: External | None,
) -> Iterator[tuple[_Generated, Path]]:
    """Plan and generate C, with a fresh folder that becomes `folder` when all went well."""
    if name:
        checked_name(name)
    check_folder(folder, force=force, inputs=[Path(model)])
    if external is not None:
        options = external_options(options or PlanOptions(), external)
    plan = plan_model(model, target.name, options, report, cost_model(target.name))
    if external is not None:
        plan = external_plan(plan, external)
    check_fit(plan)
    root = cmsis_nn.find(cmsis_nn_folder, report=report)
    report("generating C")
    sources = generate(
        plan,
        target.core,
        root,
        name=name,
        costs=step_costs(plan),
        external=external is not None,
        preprocess=None if options is None else options.preprocess,
    )
    sources = placed(sources, external)
    with replaced_folder(folder, force=force, inputs=[Path(model)]) as fresh:
        if sources.weights is not None:
            save_layout(sources, target.name, options or PlanOptions(), fresh)
            if sources.weights.address is not None:
                text = intel_hex(sources.weights.data, sources.weights.address)
                hex_file = Path(sources.weights_file).with_suffix(".hex")
                (fresh / hex_file).write_text(text, encoding="ascii")
        preprocess = None if options is None else options.preprocess
        yield _Generated(plan, sources, root, folder, fresh, preprocess), fresh


def _kernels_json(plan: Plan, sources: Sources, build: Build) -> dict[str, Any]:
    """The key under which each counted operator is measured, so that a profile can be kept.

    None where its blocks have several kernels or shapes: the count is their sum.
    """
    keys, estimates = kernel_keys(plan), predict_latency(plan).counts
    entries: list[dict[str, Any] | None] = []
    for op in sources.operators:
        first, *others = op.numbers
        key = keys[first]
        alone = key is not None and all(keys[i] == key for i in others)
        entries.append(
            {**asdict(key), "estimate": estimates[first], "calls": len(op.numbers)}
            if key is not None and alone
            else None
        )
    return {**asdict(build), "operators": entries}


def compiled_json(plan: Plan, sizes: Sizes | None, stack: StackNeed | None) -> dict[str, Any]:
    """The content of `plan.json`: the plan, with the linked firmware's sizes if there is one, and
    the stack of its C if that was compiled."""
    fields = plan_json(plan, compiled_need(plan, sizes), known_latency(plan))
    return {**fields, **float_json(plan), "stack": None if stack is None else asdict(stack)}


def known_latency(plan: Plan) -> Latency:
    """The latency of a plan by what this machine's database has of its board, else predicted."""
    return predict_latency(plan, cost_model(plan.board))


def step_costs(plan: Plan) -> Costs:
    """`known_latency` for the code that runs a model in steps."""
    latency = known_latency(plan)
    return Costs(latency.counts, latency.unit, latency.basis.text)


def compiled_need(plan: Plan, sizes: Sizes | None) -> MemoryNeed:
    """RAM and flash of the linked firmware, or the estimate if nothing was linked."""
    if sizes is None:
        return estimated_need(plan)
    return MemoryNeed(sizes.ram_bytes, sizes.flash_bytes, sizes.code_bytes, estimated=False)
