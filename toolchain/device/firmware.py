"""What a built firmware is: the model it carries, its files, its sizes; kept as `firmware.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from toolchain.boards import Board, board
from toolchain.device.protocol import TYPE_CODES
from toolchain.errors import InputError
from toolchain.ir import DType, Plan, Sources

MANIFEST = "firmware.json"


@dataclass(frozen=True)
class Port:
    """A model's input or output: its place in the arena and the type of its elements.

    `identifier` is its name in C. `constant`: an output that lies in flash, not in the arena.
    """

    name: str
    identifier: str
    offset_bytes: int
    shape: tuple[int, ...]
    dtype: DType
    constant: bool = False

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
    name: str
    kind: str


@dataclass(frozen=True)
class FirmwareModel:
    """A generated model as the firmware sees it.

    `name` is the C prefix; `operators` are in the order in which the C counts them. `kernels` are
    the C prefixes of models that the firmware times one by one (then it has no model of its own).
    `stateful`: it keeps values from run to run.
    """

    name: str
    arena_bytes: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    operators: tuple[OperatorName, ...]
    kernels: tuple[str, ...] = ()
    stateful: bool = False


def firmware_model(plan: Plan, sources: Sources) -> FirmwareModel:
    """The model that `sources` were generated from, as the firmware sees it."""

    graph = plan.graph

    def port(name: str, identifier: str) -> Port:
        tensor = graph.tensors[name]
        offset = plan.arena.offsets.get(name, 0)
        return Port(name, identifier, offset, tensor.shape, tensor.dtype, tensor.is_constant)

    return FirmwareModel(
        name=sources.name,
        arena_bytes=plan.arena.size_bytes,
        inputs=tuple(map(port, graph.inputs, sources.inputs)),
        outputs=tuple(map(port, graph.outputs, sources.outputs)),
        operators=tuple(OperatorName(graph.ops[i].name, graph.ops[i].kind) for i in sources.calls),
        stateful=bool(graph.states),
    )


@dataclass(frozen=True)
class Sizes:
    """Bytes from the linked ELF. Flash holds code, weights and the initial values of .data.

    `code_bytes` is .text and .rodata apart from the model's constants (`weight_bytes`).
    `stack_bytes` is what is reserved; what is used is measured on the board.
    """

    code_bytes: int
    weight_bytes: int
    data_bytes: int
    bss_bytes: int
    arena_bytes: int
    stack_bytes: int

    @property
    def flash_bytes(self) -> int:
        return self.code_bytes + self.weight_bytes + self.data_bytes

    @property
    def ram_bytes(self) -> int:
        return self.data_bytes + self.bss_bytes + self.arena_bytes + self.stack_bytes


@dataclass(frozen=True)
class Firmware:
    """A linked firmware in `folder`. `build_id` is also inside it, and the board tells it."""

    folder: Path
    board: Board
    model: FirmwareModel
    sizes: Sizes
    build_id: str

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
        """Write the manifest from which `load_firmware` reads it back."""
        model = asdict(self.model)
        for port in (*model["inputs"], *model["outputs"]):
            port["dtype"] = port["dtype"].value
        data = {
            "board": self.board.name,
            "build_id": self.build_id,
            "sizes": asdict(self.sizes),
            "model": model,
        }
        text = json.dumps(data, indent=1) + "\n"
        (self.folder / MANIFEST).write_text(text, encoding="utf-8")


def _port(data: Mapping[str, Any]) -> Port:
    shape = tuple(int(dim) for dim in data["shape"])
    return Port(
        name=str(data["name"]),
        identifier=str(data["identifier"]),
        offset_bytes=int(data["offset_bytes"]),
        shape=shape,
        dtype=DType(data["dtype"]),
        constant=bool(data["constant"]),
    )


def _parse(folder: Path, data: Mapping[str, Any]) -> Firmware:
    model = data["model"]
    return Firmware(
        folder=folder,
        board=board(data["board"]),
        model=FirmwareModel(
            name=model["name"],
            arena_bytes=model["arena_bytes"],
            inputs=tuple(_port(port) for port in model["inputs"]),
            outputs=tuple(_port(port) for port in model["outputs"]),
            operators=tuple(OperatorName(**op) for op in model["operators"]),
            kernels=tuple(model["kernels"]),
            stateful=bool(model["stateful"]),
        ),
        sizes=Sizes(**data["sizes"]),
        build_id=data["build_id"],
    )


def load_firmware(folder: Path) -> Firmware:
    """The firmware built in `folder`. Raises InputError if there is none, or it is damaged."""
    file = folder / MANIFEST
    try:
        return _parse(folder, json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise InputError(f"{folder} holds no firmware (no {MANIFEST}): compile into it") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is damaged ({error}): compile again") from error
