"""From a model file to something that runs: plan, C, firmware; and running it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from toolchain import cmsis_nn
from toolchain.boards import Board
from toolchain.boards import board as find_board
from toolchain.codegen import generate
from toolchain.codegen.library import write_library
from toolchain.codegen.names import model_identifier
from toolchain.cost.key import Build
from toolchain.cost.size import firmware_layout, shared_arena
from toolchain.device import host
from toolchain.device.build import build
from toolchain.device.firmware import Sizes
from toolchain.device.session import (
    MemoryUse,
    OperatorCount,
    Run,
    Session,
    StateLostError,
    open_board,
    pattern_inputs,
)
from toolchain.errors import DoesNotFitError, InputError
from toolchain.float_use import float_json
from toolchain.ir import DType, End, Graph, Plan, Sources
from toolchain.measurements import cost_model, current_build
from toolchain.output import check_folder, check_whole, free_name, replaced_folder
from toolchain.planner import (
    DEFAULT_BOARD,
    PlanOptions,
    check_fit,
    estimated_need,
    kernel_keys,
    plan_model,
    predict_latency,
)
from toolchain.records import decode, field_of, read_json
from toolchain.report.ends import end_from_json
from toolchain.report.plan import MemoryNeed, plan_json

Array = NDArray[np.generic]
Report = Callable[..., None]
PLAN_FILE = "plan.json"
KEYS_FILE = "kernels.json"
_LOSSES_BORNE = 2


def _silent(text: str, done: int | None = None, total: int | None = None) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Compiled:
    """A model compiled into `folder`. `sizes` is None on the host, where nothing is counted."""

    plan: Plan
    sources: Sources
    folder: Path
    sizes: Sizes | None


@dataclass(frozen=True)
class Inference:
    """One inference in the model's own types: outputs by name, and what it took."""

    outputs: Mapping[str, Array]
    count: int
    unit: str


def compile_model(
    model: str | Path,
    board: str = DEFAULT_BOARD,
    out: str | Path = "build",
    options: PlanOptions | None = None,
    cmsis_nn_folder: Path | None = None,
    report: Report = _silent,
    *,
    force: bool = False,
) -> Compiled:
    """Plan `model`, generate its C, build firmware for `board` into the folder `out`.

    `out` is written whole or not at all; an earlier result there is replaced, anything else is
    left alone: a folder with files that were added or changed is refused, or with `force` keeps
    what was added. Raises InputError, UnsupportedError, DoesNotFitError, MissingToolError.
    """
    target = find_board(board)
    with _generated(model, target, Path(out), options, cmsis_nn_folder, report, force) as (
        made,
        fresh,
    ):
        if target.is_host:
            report("compiling")
            host.build([host.HostModel(made.sources, made.plan.graph)], made.cmsis_nn, fresh)
            return made.compiled()
        firmware = build(
            [(made.plan, made.sources)],
            target,
            fresh,
            cmsis_nn_folder=made.cmsis_nn,
            report=lambda done, total: report("compiling", done, total),
        )
        return made.compiled(firmware.sizes)


@dataclass(frozen=True)
class SharedCompiled:
    """Models that run one at a time in one arena. Each has a folder of its own in `folder`.

    `sizes`: of the firmware that carries them all; None on the host and for a library.
    """

    models: tuple[Compiled, ...]
    folder: Path
    sizes: Sizes | None

    @property
    def arena_bytes(self) -> int:
        return shared_arena([compiled.plan for compiled in self.models]).size_bytes


def compile_shared(
    models: Sequence[str | Path],
    board: str = DEFAULT_BOARD,
    out: str | Path = "build",
    options: PlanOptions | None = None,
    cmsis_nn_folder: Path | None = None,
    report: Report = _silent,
    *,
    library: bool = False,
    force: bool = False,
) -> SharedCompiled:
    """As `compile_model` (or `compile_library`) for several models that share one arena.

    `out` gets one firmware, and per model a folder that can be run, profiled and deployed by
    itself: the board is told which of its models is meant. Raises what `compile_model` raises.
    """
    target, folder = find_board(board), Path(out)
    if library:
        options = replace(options or PlanOptions(), one_bank=True)
    inputs = [Path(model) for model in models]
    check_folder(folder, force=force, inputs=inputs)
    root = cmsis_nn.find(cmsis_nn_folder, report=report)
    pairs: list[tuple[Plan, Sources]] = []
    for model in models:
        plan = plan_model(model, target.name, options, report, cost_model(target.name))
        check_fit(plan)
        taken = {sources.name.lower() for _, sources in pairs}
        name = free_name(model_identifier(plan.graph.name), taken)
        pairs.append((plan, generate(plan, target.core, root, name=name)))
    if not target.is_host:
        _check_fit_together(target, [plan for plan, _ in pairs])
    with replaced_folder(folder, force=force, inputs=inputs) as fresh:
        sizes, firmware = None, None
        if library:
            write_library([sources for _, sources in pairs], fresh)
        elif not target.is_host:
            firmware = build(
                pairs,
                target,
                fresh,
                cmsis_nn_folder=root,
                report=lambda done, total: report("compiling", done, total),
            )
            sizes = firmware.sizes
        done = []
        for index, (plan, sources) in enumerate(pairs):
            inside = fresh / sources.name
            inside.mkdir(exist_ok=True)
            if firmware is not None:
                replace(firmware, index=index).save_model(inside)
            elif not library:
                report("compiling", index, len(pairs))
                host.build([host.HostModel(sources, plan.graph)], root, inside)
            made = _Generated(plan, sources, root, folder / sources.name, inside)
            done.append(made.compiled(sizes))
        shared = {"board": target.name, "models": [sources.name for _, sources in pairs]}
        (fresh / PLAN_FILE).write_text(json.dumps(shared, indent=1) + "\n", encoding="utf-8")
    return SharedCompiled(tuple(done), folder, sizes)


def _check_fit_together(target: Board, plans: Sequence[Plan]) -> None:
    try:
        firmware_layout(target, plans)
    except DoesNotFitError as error:
        names = ", ".join(plan.graph.name for plan in plans)
        raise DoesNotFitError(
            f"{names} do not fit {target.name} together: {error}\n"
            "What could help: fewer models in one firmware, a board with more flash."
        ) from error


def compile_library(
    model: str | Path,
    board: str = DEFAULT_BOARD,
    out: str | Path = "build",
    options: PlanOptions | None = None,
    cmsis_nn_folder: Path | None = None,
    report: Report = _silent,
    *,
    force: bool = False,
) -> Compiled:
    """As `compile_model`, but only sources for someone else's project; needs no compiler."""
    target = find_board(board)
    with _generated(model, target, Path(out), options, cmsis_nn_folder, report, force) as (
        made,
        fresh,
    ):
        write_library([made.sources], fresh)
        return made.compiled()


@dataclass(frozen=True)
class _Generated:
    """A plan and its C, about to be written to `folder`."""

    plan: Plan
    sources: Sources
    cmsis_nn: Path
    folder: Path
    fresh: Path

    def compiled(self, sizes: Sizes | None = None) -> Compiled:
        """Add `plan.json` and close the work."""
        text = json.dumps(compiled_json(self.plan, sizes), indent=1) + "\n"
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
) -> Iterator[tuple[_Generated, Path]]:
    """Everything up to the C, and a fresh folder that becomes `folder` when all went well."""
    check_folder(folder, force=force, inputs=[Path(model)])
    plan = plan_model(model, target.name, options, report, cost_model(target.name))
    check_fit(plan)
    root = cmsis_nn.find(cmsis_nn_folder, report=report)
    report("generating C")
    sources = generate(plan, target.core, root)
    with replaced_folder(folder, force=force, inputs=[Path(model)]) as fresh:
        yield _Generated(plan, sources, root, folder, fresh), fresh


def _kernels_json(plan: Plan, sources: Sources, build: Build) -> dict[str, Any]:
    """Under what each counted operator is measured, so that a profile can be kept.

    None where its blocks are of several kernels or shapes: the count is their sum.
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


def compiled_json(plan: Plan, sizes: Sizes | None) -> dict[str, Any]:
    """What `plan.json` holds: the plan, with the linked firmware's sizes where there is one."""
    latency = predict_latency(plan, cost_model(plan.board))
    fields = plan_json(
        plan,
        compiled_need(plan, sizes),
        latency_total=latency.total,
        latency_unit=latency.unit,
        measured_share=latency.measured_share,
    )
    return {**fields, **float_json(plan)}


def compiled_need(plan: Plan, sizes: Sizes | None) -> MemoryNeed:
    """RAM and flash of the linked firmware, or the estimate where nothing was linked."""
    if sizes is None:
        return estimated_need(plan)
    return MemoryNeed(sizes.ram_bytes, sizes.flash_bytes, sizes.code_bytes, estimated=False)


class Runner(Protocol):
    """What runs a compiled model on the graph's own types: a session with a board, or the host."""

    def run(self, inputs: Mapping[str, Array]) -> Run: ...

    def operator_counts(self) -> tuple[OperatorCount, ...]: ...

    def memory_use(self) -> MemoryUse: ...

    def clear_state(self) -> None: ...


class _HostSession:
    """A model on this machine, where nothing is counted."""

    def __init__(self, program: host.HostProgram, ends: Graph) -> None:
        self.program = program
        self.ends = ends
        self._restart = True

    def run(self, inputs: Mapping[str, Array]) -> Run:
        given = [inputs[name] for name in self.ends.inputs]
        results = self.program.run(given, restart=self._restart)
        self._restart = False
        return Run(dict(zip(self.ends.outputs, results, strict=True)), 0, "instructions")

    def clear_state(self) -> None:
        self._restart = True

    def operator_counts(self) -> tuple[OperatorCount, ...]:
        return ()

    def memory_use(self) -> MemoryUse:
        return MemoryUse(0, 0)


class Deployment:
    """A compiled model on a running board; takes and gives the model's own types.

    `stateful`: the model keeps values from run to run, until `clear_state`.
    """

    def __init__(self, session: Runner, compiled: CompiledModel) -> None:
        self.session = session
        self.inputs = compiled.inputs
        self.outputs = compiled.outputs
        self.stateful = compiled.stateful

    def run(self, inputs: Mapping[str, Array]) -> Inference:
        """One inference. `inputs` by name, in the model's own shape and type.

        Raises InputError for a missing, extra or ill-shaped input, LinkError where the board fails.
        """
        extra = set(inputs) - {end.name for end in self.inputs}
        if extra:
            known = ", ".join(end.name for end in self.inputs)
            raise InputError(f"the model has no input {sorted(extra)[0]!r}; it has: {known}")
        converted: dict[str, Array] = {}
        for end in self.inputs:
            if end.name not in inputs:
                raise InputError(f"input {end.name!r} is missing")
            values = np.asarray(inputs[end.name])
            expected = end.model_dtype.value
            if values.dtype.name != expected or values.size != end.tensor.elements:
                raise InputError(
                    f"input {end.name!r} takes {expected}{list(end.model_shape)}, "
                    f"not {values.dtype.name}{list(values.shape)}"
                )
            converted[end.name] = end.to_graph(values.reshape(end.model_shape))
        return self._inference(self.session.run(converted))

    def run_sequence(self, frames: Sequence[Mapping[str, Array]]) -> Inference:
        """Inferences one after another, the state anew before the first.

        Outputs are stacked along a new first axis where there are several; the count is the
        largest. Raises as `run`.
        """
        done = self._sequence(frames)
        if len(done) == 1:
            return done[0]
        outputs = {end.name: np.stack([d.outputs[end.name] for d in done]) for end in self.outputs}
        return Inference(outputs, max(d.count for d in done), done[0].unit)

    def _sequence(self, frames: Sequence[Mapping[str, Array]]) -> list[Inference]:
        """All frames in turn; once more from the first where the board lost the state."""
        for _ in range(_LOSSES_BORNE):
            with contextlib.suppress(StateLostError):
                self.clear_state()
                return [self.run(frame) for frame in frames]
        self.clear_state()
        return [self.run(frame) for frame in frames]

    def _inference(self, done: Run) -> Inference:
        outputs = {end.name: end.to_model(done.outputs[end.name]) for end in self.outputs}
        return Inference(outputs, done.count, done.unit)

    def clear_state(self) -> None:
        """Give the model's state its initial value, as before the first run."""
        if self.stateful:
            self.session.clear_state()

    def pattern(self, seed: int) -> dict[str, Array] | None:
        """Random inputs that the board can make by itself, for `run_pattern`.

        None where it cannot: on the host, and for a model that does not take bytes.
        """
        bytes_only = all(
            end.tensor.dtype is DType.INT8 and end.model_dtype is not DType.FLOAT32
            for end in self.inputs
        )
        if not isinstance(self.session, Session) or not bytes_only:
            return None
        made = pattern_inputs(self.session.firmware, seed)
        return {end.name: end.to_model(made[end.name]) for end in self.inputs}

    def run_pattern(self, seed: int) -> Inference:
        """One inference on `pattern(seed)`, which need not pass through the serial port."""
        if not isinstance(self.session, Session):
            raise InputError("only a board makes its own inputs")
        return self._inference(self.session.run_pattern(seed))

    def operator_counts(self) -> tuple[OperatorCount, ...]:
        """What each operator took in the last run."""
        return self.session.operator_counts()

    def memory_use(self) -> MemoryUse:
        """Stack and arena bytes that were really touched since reset."""
        return self.session.memory_use()


@contextmanager
def deployed(folder: str | Path, port: str | None = None) -> Iterator[Deployment]:
    """The model compiled into `folder`, running on its board (see `open_board`)."""
    path = Path(folder)
    before = _check_whole(path)
    found = compiled_model(path)
    if found.board.is_host:
        tensors = {end.name: end.tensor for end in (*found.inputs, *found.outputs)}.values()
        inputs, outputs = ([end.name for end in side] for side in (found.inputs, found.outputs))
        ends = Graph.build(path.name, tensors, (), inputs, outputs)
        built = Sources(path.name, {}, (), (), (), (), (), (), 0)
        model = host.HostModel(built, ends)
        with host.HostProgram(path / host.PROGRAM, [model]) as program:
            _check_same(path, before)
            yield Deployment(_HostSession(program, ends), found)
    else:
        with open_board(path, port) as session:
            _check_same(path, before)
            yield Deployment(session, found)


@dataclass(frozen=True)
class CompiledModel:
    """What `plan.json` says of a model. `stateful`: it keeps values from run to run."""

    board: Board
    inputs: tuple[End, ...]
    outputs: tuple[End, ...]
    stateful: bool


def compiled_model(folder: str | Path) -> CompiledModel:
    """What was compiled into `folder`. Raises InputError where nothing was, or not all is there."""
    file, data = _read(Path(folder))
    where = str(file)
    if "models" in data:
        names = field_of(data, "models", tuple[str, ...], where)
        folders = ", ".join(str(Path(folder) / name) for name in names)
        raise InputError(f"{folder} holds several models; name one of: {folders}")
    try:
        sides = [
            [
                end_from_json(entry, f"{where}: {side}[{i}]")
                for i, entry in enumerate(field_of(data, side, tuple[Any, ...], where))
            ]
            for side in ("inputs", "outputs")
        ]
        stateful = bool(field_of(data, "states", Any, where))
    except InputError as error:
        raise InputError(f"{error}: the folder is damaged, compile again") from error
    board = find_board(field_of(data, "board", str, where))
    return CompiledModel(board, tuple(sides[0]), tuple(sides[1]), stateful)


def compiled_board(folder: str | Path) -> Board:
    """The board that a folder was compiled for. Raises InputError where nothing was."""
    file, data = _read(Path(folder))
    return find_board(field_of(data, "board", str, str(file)))


def _read(folder: Path) -> tuple[Path, Mapping[str, Any]]:
    """PLAN_FILE and the object in it."""
    file = folder / PLAN_FILE
    _check_whole(folder)
    if not file.exists():
        raise InputError(f"{folder} holds no compiled model: `thimble compile` makes one")
    data: Mapping[str, Any] = decode(Mapping[str, Any], read_json(file), str(file))
    return file, data


def _check_whole(folder: Path) -> str:
    """Raise InputError where not all is there that was compiled; else what stands for it all."""
    return check_whole(folder, "compile again")


def _check_same(folder: Path, before: str) -> None:
    """Raise InputError where another result came into `folder` while this one was read."""
    if _check_whole(folder) != before:
        raise InputError(f"{folder} was replaced while it was read: run again")
