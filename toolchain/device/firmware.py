"""A built firmware: the model it contains, its files and sizes. Stored as `firmware.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from toolchain.boards import Board, board
from toolchain.device.protocol import TYPE_CODES
from toolchain.errors import InputError
from toolchain.files import is_scratch
from toolchain.files.records import read_json, record
from toolchain.ir import DType, Sources
from toolchain.memory.bank_layout import BankNames
from toolchain.memory.plan import Plan
from toolchain.ops.movement.input_rows import rows_of

MANIFEST = "firmware.json"


@dataclass(frozen=True)
class Port:
    """A model's input or output: its place in the arena and the type of its elements.

    `identifier` is its name in C. `constant`: an output that lies in flash, not in the arena.
    `part`: the part that it lies in, of an arena spread over banks; the offset counts from there.
    `rows`: of an input that arrives by rows, how many there are. The firmware then keeps all of it
    beside the arena, for the serial protocol, and pushes it.
    """

    name: str
    identifier: str
    offset_bytes: int
    shape: tuple[int, ...]
    dtype: DType
    constant: bool = False
    part: int = 0
    rows: int = 0

    @property
    def size_bytes(self) -> int:
        size = self.dtype.size_bytes
        for dim in self.shape:
            size *= dim
        return size

    @property
    def type_code(self) -> int:
        """The protocol's code of the element type."""
        return TYPE_CODES[self.dtype]


@dataclass(frozen=True)
class OperatorName:
    """An operator as counters count it. `blocks`: the plan's names of the operators that it
    consists of.
    """

    name: str
    kind: str
    blocks: tuple[str, ...] = ()

    @property
    def calls(self) -> int:
        """How often it runs in one inference."""
        return max(len(self.blocks), 1)


@dataclass(frozen=True)
class FirmwarePart:
    """One bank's part of a model's arena, from `offset_bytes` of the firmware's array there.

    `bank` is '' for a firmware whose arena is in one piece. `member` is its name in the model's C
    struct; '' if the model takes its arena in one piece.
    """

    size_bytes: int
    bank: str = ""
    member: str = ""
    offset_bytes: int = 0

    @property
    def symbol(self) -> str:
        """The firmware's array in that bank."""
        return f"arena_{self.bank.lower()}" if self.bank else "arena"


@dataclass(frozen=True)
class FirmwareWeights:
    """Weights outside of the model's code: the blob's bytes, its file in the firmware's folder, and
    the address where another tool puts it; None: the firmware holds it. `fetched`: the model
    fetches them from there.
    """

    size_bytes: int
    file: str
    address: int | None = None
    fetched: bool = False


@dataclass(frozen=True)
class FirmwareModel:
    """A generated model as the firmware sees it.

    `name` is the C prefix; `operators` are in the order in which the C counts them. `kernels` are
    the C prefixes of models that the firmware times one by one (it then has no model of its own).
    `stateful`: it keeps values from run to run, and no other model shares its `parts` of the
    firmware's arena.
    """

    name: str
    parts: tuple[FirmwarePart, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    operators: tuple[OperatorName, ...]
    kernels: tuple[str, ...] = ()
    stateful: bool = False
    weights: FirmwareWeights | None = None

    @property
    def arena_bytes(self) -> int:
        return sum(part.size_bytes for part in self.parts)

    @property
    def pushed(self) -> Port | None:
        """The input that arrives by rows."""
        return next((port for port in self.inputs if port.rows), None)

    @property
    def over_banks(self) -> bool:
        """Whether its C takes a struct of arena parts."""
        return any(part.member for part in self.parts)


def firmware_model(plan: Plan, sources: Sources, parts: tuple[FirmwarePart, ...]) -> FirmwareModel:
    """The model that `sources` were generated from, as the firmware sees it."""

    graph, arena = plan.graph, plan.arena

    def port(name: str, identifier: str) -> Port:
        tensor = graph.tensors[name]
        offset, part = arena.offsets.get(name, 0), 0
        if arena.parts:
            lies_in = arena.part_of(offset)
            offset, part = offset - lies_in.start_bytes, arena.parts.index(lies_in)
        shape, dtype = tensor.shape, tensor.dtype
        rows = 0
        if graph.pushed is not None and name == graph.pushed.input:
            rows = sum(rows_of(graph.ops[taker]).rows for taker in graph.consumers[name])
        return Port(name, identifier, offset, shape, dtype, tensor.is_constant, part, rows)

    return FirmwareModel(
        name=sources.name,
        parts=parts,
        inputs=tuple(map(port, graph.inputs, sources.inputs)),
        outputs=tuple(map(port, graph.outputs, sources.outputs)),
        operators=tuple(
            OperatorName(op.name, op.kind, tuple(graph.ops[i].name for i in op.numbers))
            for op in sources.operators
        ),
        stateful=bool(graph.states),
        weights=_outside(sources),
    )


def _outside(sources: Sources) -> FirmwareWeights | None:
    weights = sources.weights
    if weights is None:
        return None
    return FirmwareWeights(
        len(weights.data), sources.weights_file, weights.address, weights.fetched
    )


@dataclass(frozen=True)
class Sizes:
    """Bytes from the linked ELF. Flash holds code, weights and the initial values of .data.

    `code_bytes` is .text and .rodata without the model's constants (`weight_bytes`); of both the
    start-up copies `copied_bytes` to RAM, `code_copy_bytes` of them code. `stack_bytes` is the
    reserved size; the board measures what is used. `pushed_bytes`: copies of inputs that arrive by
    rows, which only this firmware needs, for the serial protocol; they count nowhere else.
    """

    code_bytes: int
    weight_bytes: int
    data_bytes: int
    bss_bytes: int
    arena_bytes: int
    stack_bytes: int
    copied_bytes: int = 0
    code_copy_bytes: int = 0
    pushed_bytes: int = 0

    @property
    def flash_bytes(self) -> int:
        return self.code_bytes + self.weight_bytes + self.data_bytes

    @property
    def ram_bytes(self) -> int:
        fixed = self.data_bytes + self.bss_bytes + self.stack_bytes
        return fixed + self.arena_bytes + self.copied_bytes


@dataclass(frozen=True)
class Linked:
    """The C files and banks that a firmware was linked of.

    `generated`: files in its folder; `kernels`: below `runtime_c`; `cmsis_nn`: below CMSIS-NN's
    folder.
    """

    generated: tuple[str, ...]
    kernels: tuple[str, ...]
    cmsis_nn: tuple[str, ...]
    banks: BankNames

    def check(self, where: str) -> None:
        """Check the files. Raises InputError for one outside of its folder."""
        for name in (*self.generated, *self.kernels, *self.cmsis_nn):
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise InputError(f"{where}: {name} is not in its folder")


@dataclass(frozen=True)
class Firmware:
    """A linked firmware in `folder`. `build_id` is also inside it, and the board reports it.

    Its models share one arena and run one at a time; `index` is that of the current one. `linked`:
    None where its C lies elsewhere. `objects`: those of models and kernels, where it was built just
    now.
    """

    folder: Path
    board: Board
    models: tuple[FirmwareModel, ...]
    sizes: Sizes
    build_id: str
    index: int = 0
    linked: Linked | None = None
    objects: tuple[Path, ...] = field(default=(), compare=False, repr=False)

    @property
    def to_flash(self) -> str:
        """Words that say how the board gets this firmware."""
        if is_scratch(self.folder):
            return "keep the build (-o DIR) and flash that"
        return f"flash it (thimble flash {self.folder})"

    @property
    def model(self) -> FirmwareModel:
        return self.models[self.index]

    @property
    def images(self) -> tuple[tuple[Path, int], ...]:
        """Files that lie in memory beside the firmware, with their addresses."""
        return tuple(
            (self.folder / model.weights.file, model.weights.address)
            for model in self.models
            if model.weights is not None and model.weights.address is not None
        )

    def with_weights(self, file: Path) -> Firmware:
        """The firmware with another blob at the address of the current model's.

        Raises InputError if it has none: its weights are in the code, or in the firmware.
        """
        weights = self.model.weights
        if weights is None or weights.address is None:
            raise InputError(
                f"the firmware in {self.folder} holds its weights: compile with --weights external "
                "--weights-address"
            )
        changed = replace(self.model, weights=replace(weights, file=str(file.resolve())))
        models = (*self.models[: self.index], changed, *self.models[self.index + 1 :])
        return replace(self, models=models)

    @property
    def elf(self) -> Path:
        return self.folder / "firmware.elf"

    @property
    def hex(self) -> Path:
        return self.folder / "firmware.hex"

    @property
    def bin(self) -> Path:
        return self.folder / "firmware.bin"

    @property
    def map(self) -> Path:
        return self.folder / "firmware.map"

    def save(self) -> None:
        """Write the manifest, which `load_firmware` reads."""
        models = [asdict(model) for model in self.models]
        for port in (p for model in models for p in (*model["inputs"], *model["outputs"])):
            port["dtype"] = port["dtype"].value
        data = {
            "board": self.board.name,
            "build_id": self.build_id,
            "sizes": asdict(self.sizes),
            "models": models,
            "linked": None if self.linked is None else asdict(self.linked),
        }
        _write(self.folder, data)

    def save_model(self, folder: Path) -> None:
        """Write to `folder`, inside the firmware's folder, which of the models it belongs to."""
        up = Path(*(".." for _ in folder.relative_to(self.folder).parts))
        _write(folder, {"firmware": up.as_posix(), "index": self.index})


def _write(folder: Path, data: Mapping[str, Any]) -> None:
    (folder / MANIFEST).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class _Whole:
    """The manifest of a firmware."""

    board: str
    build_id: str
    sizes: Sizes
    models: tuple[FirmwareModel, ...]
    linked: Linked | None = None


@dataclass(frozen=True)
class _OneOf:
    """The manifest of one of its models: where the firmware lies, from here, and which it is."""

    firmware: str
    index: int


def load_firmware(folder: Path) -> Firmware:
    """The firmware built in `folder`. Raises InputError if there is none, or it is damaged."""
    file = folder / MANIFEST
    if not file.exists():
        raise InputError(
            f"{folder} holds no firmware (no {MANIFEST}): compile into it, without --library"
        )
    try:
        data = read_json(file)
        if isinstance(data, dict) and "firmware" in data:
            one = record(_OneOf, data, str(file))
            above = Path(os.path.normpath(folder / one.firmware))
            return replace(_load_whole(above / MANIFEST, one.index), index=one.index)
        return _load_whole(file, 0)
    except InputError as error:
        raise InputError(f"{error}: the folder is damaged, compile again") from error


def _load_whole(file: Path, index: int) -> Firmware:
    """Load a manifest. Raises InputError, naming the field, where it is damaged or has no model
    `index`."""
    whole = record(_Whole, read_json(file), str(file))
    if not 0 <= index < len(whole.models):
        raise InputError(f"{file}: there is no model {index}")
    if whole.linked is not None:
        whole.linked.check(f"{file}: linked")
    for place, model in enumerate(whole.models):
        _check_ports(model, f"{file}: models[{place}]")
    return Firmware(
        file.parent,
        board(whole.board),
        whole.models,
        whole.sizes,
        whole.build_id,
        linked=whole.linked,
    )


def _check_ports(model: FirmwareModel, where: str) -> None:
    """Check inputs and outputs. Raises InputError for one outside of the model's part of the
    arena."""
    for port in (*model.inputs, *model.outputs):
        if min((*port.shape, port.offset_bytes, port.part, port.rows), default=0) < 0:
            raise InputError(f"{where}: {port.name!r} has a negative number")
        if port.constant or port.rows:
            continue
        room = model.parts[port.part].size_bytes if port.part < len(model.parts) else 0
        if port.offset_bytes + port.size_bytes > room:
            raise InputError(
                f"{where}: {port.name!r} ends at byte {port.offset_bytes + port.size_bytes:,} of "
                f"{room:,} of the arena"
            )
