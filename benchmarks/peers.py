"""Other engines beside ours, in one run: arena, code, flash, cycles, bytes that differ.

    .venv/bin/python -m benchmarks.peers [--models DIR] [--only TEXT] [--board BOARD]
                                         [--tflm DIR] [--json FILE]

A peer is an engine whose licence lets anybody run it, built from its user's own checkout. Its
program, made of `benchmarks/_peers/`, runs two inferences of the bytes 7i on an emulated MPS2
board. What the second executed is read by the timing model of the core (`toolchain/cycles/`), as
our own firmware's is, with memories that never wait. `differ` counts output bytes that are not
those of the model's reference runtime for the same input. Flash is all that the program keeps
there, code is flash without weights; both have the start of the program in them, ours with its
serial protocol.

--tflm names a checkout of tflite-micro (Apache-2.0) after its own `make third_party_downloads`. Its
kernels are compiled with -O2, the rest with -Os, as its makefile does; g++ for Arm needs the
headers of its C++ library (Debian: libstdc++-arm-none-eabi-newlib). The arena is what its
interpreter says that it uses.

A second table has the memory that was published of engines which are closed, or which may not run
here, and what they took on silicon beside our cycles as that chip, by their sources
(`peers_published.json`, `silicon_published.json`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks._results import json_option, write_results
from benchmarks.firmware import CHIPS, MLPERF_TINY, published
from benchmarks.silicon import SHARED_MODELS
from toolchain.boards import Board
from toolchain.boards import board as find_board
from toolchain.cycles.core_timing import CoreTiming, timing_of
from toolchain.cycles.memory_system import MemorySystem
from toolchain.cycles.program import read_program
from toolchain.cycles.reading import read
from toolchain.cycles.trace import read_trace
from toolchain.deployment.profiling import profile_readings
from toolchain.deployment.verification import verify_model
from toolchain.device import trace_plugin
from toolchain.device.compiler import Unit, compile_units, find_tool, link
from toolchain.device.qemu import find_qemu
from toolchain.errors import InputError, ThimbleError
from toolchain.frontends import load_model
from toolchain.frontends.tflite.file import read_file
from toolchain.packages import lazy
from toolchain.planning.options import PlanOptions
from toolchain.reference import open_reference

elffile = lazy("elftools.elf.elffile")

SMALLEST = ("--models {shared}/models --only ad_fcae",)
PUBLISHED = Path(__file__).with_name("peers_published.json")
_HERE = Path(__file__).with_name("_peers")
_ARENA_BYTES = 1 << 20
_SECONDS = 600
_STEP = 7
_DOWNLOADS = "tensorflow/lite/micro/tools/make/downloads"
_OPERATORS: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "ADD": ("Add", ("add", "add_common")),
        "AVERAGE_POOL_2D": ("AveragePool2D", ("pooling", "pooling_common")),
        "CONV_2D": ("Conv2D", ("conv", "conv_common")),
        "DEPTHWISE_CONV_2D": ("DepthwiseConv2D", ("depthwise_conv", "depthwise_conv_common")),
        "FULLY_CONNECTED": ("FullyConnected", ("fully_connected", "fully_connected_common")),
        "MAX_POOL_2D": ("MaxPool2D", ("pooling", "pooling_common")),
        "PAD": ("Pad", ("pad", "pad_common")),
        "QUANTIZE": ("Quantize", ("quantize", "quantize_common")),
        "RESHAPE": ("Reshape", ("reshape", "reshape_common")),
        "SOFTMAX": ("Softmax", ("softmax", "softmax_common")),
    }
)
"""TFLM's name of an operator in its resolver, and the sources of its kernel."""


@dataclass(frozen=True)
class Row:
    """An engine on a model. `cycles` of an inference on the core; `differing` output bytes."""

    model: str
    engine: str
    arena_bytes: int
    code_bytes: int
    flash_bytes: int
    cycles: int
    differing: int


@dataclass(frozen=True)
class Published:
    """Memory that others published of a model: bytes of what `what` says, and the source."""

    model: str
    software: str
    what: str
    size_bytes: int
    source: str


@dataclass(frozen=True)
class Tflm:
    """TensorFlow Lite Micro with CMSIS-NN's kernels, from a checkout."""

    root: Path

    name = "TFLM + CMSIS-NN"

    def units(self, model: bytes, target: Board) -> list[Unit]:
        """What is compiled for a model. Raises InputError where the checkout is not complete, or
        for an operator that this peer does not name.
        """
        downloads = self.root / _DOWNLOADS
        for part in ("flatbuffers", "gemmlowp", "ruy", "cmsis_nn"):
            if not (downloads / part).is_dir():
                raise InputError(
                    f"--tflm {self.root}: there is no {_DOWNLOADS}/{part}; in the checkout, run: "
                    "make -f tensorflow/lite/micro/tools/make/Makefile third_party_downloads"
                )
        names = sorted({op.name for op in read_file(model).ops})
        unknown = [name for name in names if name not in _OPERATORS]
        if unknown:
            raise InputError(f"TFLM as a peer: no sources are named of {', '.join(unknown)}")
        arm = downloads / "cmsis_nn"
        headers = (*(downloads / n for n in ("flatbuffers/include", "gemmlowp", "ruy")), arm)
        includes = (_HERE, self.root, *headers, arm / "Include")
        common = (
            *target.compiler_flags,
            *("-ffunction-sections", "-fdata-sections", "-fno-unwind-tables", "-w"),
            *("-fno-asynchronous-unwind-tables", "-DTF_LITE_STATIC_MEMORY", "-DCMSIS_NN"),
            *("-DTF_LITE_STRIP_ERROR_STRINGS", "-DNDEBUG"),
        )
        plus = (*common, "-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics")
        calls = " ".join(f"resolver.Add{_OPERATORS[name][0]}();" for name in names)
        defines = (f"-DPEER_OPERATORS={calls}", f"-DPEER_ARENA_BYTES={_ARENA_BYTES}")
        kernels = {file for name in names for file in _OPERATORS[name][1]}
        return [
            Unit(_HERE / "tflm.cc", (*plus, "-Os", *defines), includes),
            *(Unit(file, (*plus, "-Os"), includes) for file in self._core()),
            *(Unit(file, (*plus, "-O2"), includes) for file in self._kernels(kernels)),
            *(
                Unit(file, (*common, "-std=gnu11", "-O2"), includes)
                for file in sorted((arm / "Source").rglob("*.c"))
                if not file.stem.endswith(("f16", "f32"))
            ),
        ]

    def _core(self) -> list[Path]:
        lite = self.root / "tensorflow/lite"
        folders = ("", "arena_allocator", "memory_planner", "tflite_bridge")
        files = [file for name in folders for file in (lite / "micro" / name).glob("*.cc")]
        files += (lite / "core").rglob("*.cc")
        files += (self.root / "tensorflow/compiler/mlir/lite").rglob("*.cc")
        return _sources(files)

    def _kernels(self, names: Iterable[str]) -> list[Path]:
        lite = self.root / "tensorflow/lite"
        folder = lite / "micro/kernels"
        files = [folder / "kernel_util.cc", *(lite / "kernels").rglob("*.cc")]
        for name in names:
            fast = folder / "cmsis_nn" / f"{name}.cc"
            files.append(fast if fast.is_file() else folder / f"{name}.cc")
        return _sources(files)


def _sources(files: Iterable[Path]) -> list[Path]:
    left_out = ("test", "mock", "fake", "recording")
    return sorted({file for file in files if not any(part in file.stem for part in left_out)})


def measured(peer: Tflm, file: Path, target: Board, timing: CoreTiming) -> Row:
    """A peer's program of a model, run. Raises InputError where the peer does not take it."""
    model = file.read_bytes()
    units = peer.units(model, target)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        assembly = folder / "model.S"
        (folder / "model.tflite").write_bytes(model)
        assembly.write_text(_MODEL.format(file=folder / "model.tflite"), encoding="utf-8")
        flags = (*target.compiler_flags, "-Os", "-ffunction-sections")
        units += [Unit(_HERE / "main.c", flags, (_HERE,)), Unit(assembly, flags, ())]
        elf = folder / "peer.elf"
        objects = (*compile_units(units), _library("libm.a", target))
        link(objects, target.compiler_flags, _HERE / "mps2.ld", elf)
        memory = MemorySystem()
        request = trace_plugin.request(
            target, elf, memory.plugin_arguments(), folder / "counts.txt"
        )
        said = _run(target, elf, request.option)
        trace = read_trace(request.file, memory.region_names).run(-1)
        reading = read(trace, read_program(elf, find_tool("objdump")), timing)
        flash = _flash_bytes(elf)
    if "failed" in said:
        raise InputError(f"{peer.name} on {file.stem}: {said['failed'][0]}")
    outputs = b"".join(bytes.fromhex(line) for line in said["output"])
    wanted = b"".join(value.tobytes() for value in _reference(file))
    if len(outputs) != len(wanted):
        raise InputError(f"{peer.name} on {file.stem}: {len(outputs)} bytes, not {len(wanted)}")
    pairs = zip(outputs, wanted, strict=True)
    return Row(
        model=file.stem,
        engine=peer.name,
        arena_bytes=int(said["arena"][0]),
        code_bytes=flash - len(model),
        flash_bytes=flash,
        cycles=round(reading.cycles.total),
        differing=sum(one != other for one, other in pairs),
    )


_MODEL = """
    .section .peer_model, "a"
    .global peer_model
    .balign 16
peer_model:
    .incbin "{file}"
"""


def _library(name: str, target: Board) -> Path:
    """A library of the compiler's for the core."""
    command = [find_tool("gcc"), *target.compiler_flags, f"-print-file-name={name}"]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


def _run(target: Board, elf: Path, plugin: str) -> dict[str, list[str]]:
    """What a program says, by the first word of its lines. Raises InputError if it does not end."""
    assert target.emulator is not None
    command = [find_qemu(), "-machine", target.emulator.machine, "-kernel", str(elf)]
    command += ["-nodefaults", "-display", "none", "-monitor", "none", "-serial", "none"]
    command += ["-icount", f"shift={target.emulator.icount_shift}", "-plugin", plugin]
    command += ["-semihosting-config", "enable=on,target=native"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(f"the program ran for {_SECONDS} s and did not end") from error
    said: dict[str, list[str]] = {}
    for line in (done.stdout + done.stderr).splitlines():
        name, _, value = line.partition(" ")
        said.setdefault(name, []).append(value)
    if not said.keys() & {"output", "failed"}:
        raise InputError(f"the program said nothing: {done.stderr.strip()[:200]}")
    return said


def _flash_bytes(elf: Path) -> int:
    """Bytes that a program keeps in flash: its sections there, and what its data begins with."""
    with elf.open("rb") as file:
        sections = list(elffile.ELFFile(file).iter_sections())
    kept = (s for s in sections if s["sh_flags"] & 2 and s["sh_type"] != "SHT_NOBITS")
    return sum(int(s["sh_size"]) for s in kept)


def _reference(file: Path) -> tuple[NDArray[np.generic], ...]:
    """The reference's outputs for the bytes 7i."""
    graph = load_model(file)
    inputs = []
    for name in graph.inputs:
        tensor = graph.tensors[name]
        count = tensor.size_bytes
        given = (_STEP * np.arange(count) % 256).astype(np.uint8)
        inputs.append(given.view(tensor.dtype.numpy).reshape(tensor.shape))
    return open_reference(file).run(inputs)


def ours(file: Path, target: Board, chips: Sequence[str]) -> tuple[Row, dict[str, int]]:
    """Our firmware, verified with random inputs, and its cycles on each of the chips."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "build"
        result = verify_model(file, target.name, runs=3, options=PlanOptions(), out=folder)
        sizes = result.compiled.sizes
        assert sizes is not None
        plain, *others = profile_readings(folder, ["", *chips], runs=2)
    row = Row(
        model=file.stem,
        engine="Thimble",
        arena_bytes=sizes.arena_bytes,
        code_bytes=sizes.code_bytes,
        flash_bytes=sizes.flash_bytes,
        cycles=plain.total,
        differing=result.differing,
    )
    return row, {profile.board: profile.total for profile in others}


def side_by_side(rows: Sequence[Row], target: Board) -> Table:
    shown = Table("model", "engine", title=f"on {target.name}, memories without wait states")
    for heading in ("arena B", "code B", "flash B", "M cycles", "ours / theirs", "differ"):
        shown.add_column(heading, justify="right", no_wrap=True)
    own = {row.model: row for row in rows if row.engine == "Thimble"}
    for row in rows:
        ratio = "-" if row is own[row.model] else f"{own[row.model].cycles / row.cycles:.2f}"
        shown.add_row(
            row.model,
            row.engine,
            *(f"{value:,}" for value in (row.arena_bytes, row.code_bytes, row.flash_bytes)),
            f"{row.cycles / 1e6:.3f}",
            ratio,
            str(row.differing),
        )
    return shown


def read_published(file: Path) -> list[Published]:
    """The rows of `peers_published.json`."""
    return [Published(**row) for row in json.loads(file.read_text(encoding="utf-8"))]


def by_others(rows: Sequence[Row], cycles: Mapping[str, Mapping[str, int]]) -> Table:
    """Memory and million cycles that others published, beside ours."""
    shown = Table("model", "software", "what", title="published by others")
    for heading in ("theirs", "ours", "ours / theirs"):
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column("source")
    own = {row.model: row for row in rows if row.engine == "Thimble"}
    for each in read_published(PUBLISHED):
        row = own.get(each.model)
        if row is None:
            continue
        bytes_of = {"arena": row.arena_bytes, "code": row.code_bytes, "flash": row.flash_bytes}
        mine = bytes_of[each.what]
        ratio = f"{mine / each.size_bytes:.2f}"
        sizes = (f"{each.size_bytes:,} B", f"{mine:,} B")
        shown.add_row(each.model, each.software, each.what, *sizes, ratio, each.source)
    for model, on_chips in cycles.items():
        for chip, count in on_chips.items():
            for software, millions in published(model, chip):
                mine_millions = count / 1e6
                shown.add_row(
                    model,
                    software,
                    f"M cycles, {chip}",
                    f"{millions:.3f}",
                    f"{mine_millions:.3f}",
                    f"{mine_millions / millions:.2f}",
                    "silicon_published.json",
                )
    return shown


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--board", default="mps2-an386", help="an emulated MPS2 board")
    parser.add_argument(
        "--models", type=Path, default=SHARED_MODELS, help="folder of .tflite files"
    )
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--tflm", type=Path, help="a checkout of tflite-micro, its downloads made")
    json_option(parser)
    wanted = parser.parse_args(argv)
    target = find_board(wanted.board)
    timing = timing_of(target.core.name)
    if timing is None or target.emulator is None or not target.emulator.machine.startswith("mps2"):
        parser.error(
            f"{wanted.board}: an emulated MPS2 board is wanted, of a core with a timing model"
        )
    console, rows, cycles = Console(width=160), list[Row](), dict[str, dict[str, int]]()
    peers = [] if wanted.tflm is None else [Tflm(wanted.tflm.resolve())]
    for name in (name for name in MLPERF_TINY if wanted.only in name):
        file = wanted.models / f"{name}.tflite"
        try:
            row, cycles[name] = ours(file, target, CHIPS.get(target.core.name, ()))
            rows.append(row)
            rows += [measured(peer, file, target, timing) for peer in peers]
        except ThimbleError as error:
            console.print(f"{name}: {error}", markup=False)
    console.print(side_by_side(rows, target))
    console.print(by_others(rows, cycles))
    write_results(wanted.json, rows)
    return 0 if rows and all(row.differing == 0 for row in rows if row.engine == "Thimble") else 1


if __name__ == "__main__":
    sys.exit(main())
